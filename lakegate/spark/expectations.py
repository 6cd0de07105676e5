# SPDX-License-Identifier: Apache-2.0
"""State expectations of a dataset as data, count their violations, and record the results.

An expectation of rows is a SQL condition that is true for a violation. Null is no violation, so a rule about a value
does not require that the value is present. All row expectations of a dataset are counted in one pass. A unique key is
an expectation of the whole dataset, and takes a pass of its own.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lakegate.spark.schemas import QUALITY_RESULTS
from lakegate.spark.tables import Changes, merge, with_row_hash


class Severity(StrEnum):
    """The effect of violations beyond the tolerated share: `warn` records them, `fail` also stops the run."""

    WARN = "warn"
    FAIL = "fail"


class Outcome(StrEnum):
    """The outcome of an expectation."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """Expectation of each row.

    `violated_by`: SQL condition of a violation. `tolerated_share`: share of rows (0 to 1) that may violate it.
    """

    name: str
    description: str
    severity: Severity
    violated_by: str
    tolerated_share: float = 0.0


class UniqueKey(msgspec.Struct, frozen=True, kw_only=True):
    """Expectation of the dataset: no two rows agree in `columns`.

    Each row beyond the first of its key is a violation.
    """

    name: str
    description: str
    severity: Severity
    columns: tuple[str, ...]
    tolerated_share: float = 0.0


class NotEmpty(msgspec.Struct, frozen=True, kw_only=True):
    """Expectation of the dataset: it has at least `rows` rows. Each missing row is a violation."""

    name: str
    description: str
    severity: Severity
    rows: int = 1
    tolerated_share: float = 0.0


Rule = Expectation | UniqueKey | NotEmpty


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one expectation on one dataset."""

    dataset: str
    expectation: str
    description: str
    severity: Severity
    rows_checked: int
    violations: int
    tolerated_share: float
    outcome: Outcome


def judge(dataset: str, rule: Rule, rows: int, violations: int) -> Result:
    """Return the result for a count of violations.

    Beyond the tolerated share, the severity decides about the outcome.
    """
    share = violations / rows if rows else float(violations > 0)
    if share <= rule.tolerated_share:
        outcome = Outcome.PASSED
    else:
        outcome = Outcome.FAILED if rule.severity is Severity.FAIL else Outcome.WARNED
    return Result(
        dataset=dataset,
        expectation=rule.name,
        description=rule.description,
        severity=rule.severity,
        rows_checked=rows,
        violations=violations,
        tolerated_share=rule.tolerated_share,
        outcome=outcome,
    )


def evaluate(dataset: str, frame: DataFrame, rules: Sequence[Rule]) -> list[Result]:
    """Count the violations of every rule in `frame`, and return the results in the order of the rules."""
    by_row = [rule for rule in rules if isinstance(rule, Expectation)]
    counted = [f.count_if(f.expr(rule.violated_by)).alias(f"rule_{number}") for number, rule in enumerate(by_row)]
    row = frame.agg(f.count("*").alias("rows"), *counted).collect()[0]
    rows = int(row["rows"])
    violations = {rule.name: int(row[f"rule_{number}"]) for number, rule in enumerate(by_row)}
    for rule in rules:
        match rule:
            case UniqueKey(columns=columns):
                violations[rule.name] = rows - frame.select(*columns).distinct().count()
            case NotEmpty(rows=minimum):
                violations[rule.name] = max(0, minimum - rows)
            case _:
                pass
    return [judge(dataset, rule, rows, violations[rule.name]) for rule in rules]


def failures(results: Iterable[Result]) -> list[Result]:
    """Return the results that must stop a run."""
    return [result for result in results if result.outcome is Outcome.FAILED]


def as_rows(session: SparkSession, delivery: str, results: Sequence[Result]) -> DataFrame:
    """Return the results as a DataFrame with the columns of the table and the row hash."""
    columns = QUALITY_RESULTS.business_columns
    schema = type(QUALITY_RESULTS.schema)([QUALITY_RESULTS.schema[name] for name in columns])
    rows = [
        (
            delivery,
            result.dataset,
            result.expectation,
            result.description,
            result.severity.value,
            result.rows_checked,
            result.violations,
            result.tolerated_share,
            result.outcome.value,
        )
        for result in results
    ]
    return with_row_hash(session.createDataFrame(rows, schema), QUALITY_RESULTS)


def record(session: SparkSession, delivery: str, results: Sequence[Result], at: datetime) -> Changes:
    """Merge the results of one delivery; those of other deliveries stay. `at`: the time of the change."""
    rows = as_rows(session, delivery, results)
    return merge(session, QUALITY_RESULTS, rows, at, only=f"delivery = '{delivery}'")
