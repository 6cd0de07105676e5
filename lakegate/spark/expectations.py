# SPDX-License-Identifier: Apache-2.0
"""Expectations of datasets: describe them as data, count their violations, and record the results.

An expectation of rows is a SQL condition that is true for a violation. Null is no violation, so a rule about a value
does not require that the value is present. All row expectations of a dataset are counted in one pass. A unique key is
an expectation of the whole dataset, and takes a pass of its own.

The expectations of each dataset of this lakehouse are here, with the tolerated share of violations. Severity `fail` is
for faults that would make the tables wrong: an unreadable value, contradictory times, a duplicate row. Severity `warn`
is for missing or implausible values, such as a tail number that is not in the register. The tolerated shares of missing
values are those of the known data, rounded up, so that a new gap causes a warning.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lakegate.spark.schemas import (
    AIRCRAFT,
    CARRIER_DELAYS_BY_WEATHER,
    FLIGHTS,
    QUALITY_RESULTS,
    ROUTE_PUNCTUALITY,
    WEATHER,
    Table,
)
from lakegate.spark.tables import Changes, merge, with_row_hash


class Severity(StrEnum):
    """The effect if more rows than tolerated violate an expectation: `warn` records them, `fail` also stops the run."""

    WARN = "warn"
    FAIL = "fail"


class Outcome(StrEnum):
    """The outcome of an expectation."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of each row.

    `violated_by`: SQL condition of a violation. `tolerated_share`: share of rows (0 to 1) that may violate it.
    """

    name: str
    description: str
    severity: Severity
    violated_by: str
    tolerated_share: float = 0.0


class UniqueKey(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the whole dataset: no two rows have equal values in `columns`.

    Each row beyond the first of its key is a violation.
    """

    name: str
    description: str
    severity: Severity
    columns: tuple[str, ...]
    tolerated_share: float = 0.0


class NotEmpty(msgspec.Struct, frozen=True, kw_only=True):
    """An expectation of the whole dataset: it has at least `rows` rows. Each missing row is a violation."""

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
    """Return the result of an expectation for a number of violations.

    If it exceeds the tolerated share, the outcome depends on the severity.
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
    """Count the violations of every rule in `frame`. Return the results in the order of the rules."""
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
    """Write the results of one delivery into the table. Results of other deliveries stay. `at`: the time of the
    change.
    """
    rows = as_rows(session, delivery, results)
    return merge(session, QUALITY_RESULTS, rows, at, only=f"delivery = '{delivery}'")


_NUMERIC = MappingProxyType(
    {
        "airlines": {},
        "airports": {"lat": "double", "lon": "double", "alt": "int", "tz": "int"},
        "planes": {"year": "int", "engines": "int", "seats": "int", "speed": "int"},
        "weather": {
            **dict.fromkeys(
                ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib"), "double"
            ),
            **dict.fromkeys(("year", "month", "day", "hour", "wind_dir"), "int"),
            "time_hour": "timestamp",
        },
        "flights": {
            **dict.fromkeys(("year", "month", "day", "hour", "minute", "flight", "distance", "air_time"), "int"),
            **dict.fromkeys(
                ("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"), "int"
            ),
            "time_hour": "timestamp",
        },
    }
)


def unreadable(column: str, kind: str) -> str:
    """Return the SQL condition that a value of the column is neither absent nor of the type `kind`."""
    return f"(trim(`{column}`) NOT IN ('NA', '') AND try_cast(trim(`{column}`) AS {kind}) IS NULL)"


def delivered(source: str) -> tuple[Rule, ...]:
    """Return the expectations of a delivered file. They are checked on bronze, before values are converted to types."""
    rules: list[Rule] = [
        NotEmpty(name="not_empty", description="the delivery has rows", severity=Severity.FAIL),
    ]
    if _NUMERIC[source]:
        condition = " OR ".join(unreadable(column, kind) for column, kind in _NUMERIC[source].items())
        rules.append(
            Expectation(
                name="readable_values",
                description="every value is absent or of its column's type",
                severity=Severity.FAIL,
                violated_by=condition,
            )
        )
    return tuple(rules)


def _keyed(table: Table) -> tuple[Rule, ...]:
    missing = " OR ".join(f"`{name}` IS NULL" for name in table.key)
    return (
        Expectation(
            name="key_present",
            description=f"{', '.join(table.key)} are known",
            severity=Severity.FAIL,
            violated_by=missing,
        ),
        UniqueKey(
            name="key_unique",
            description=f"one row per {', '.join(table.key)}",
            severity=Severity.FAIL,
            columns=table.key,
        ),
    )


def _rule(name: str, description: str, severity: Severity, violated_by: str, tolerated_share: float = 0.0) -> Rule:
    return Expectation(
        name=name, description=description, severity=severity, violated_by=violated_by, tolerated_share=tolerated_share
    )


OF_WEATHER: tuple[Rule, ...] = (
    *_keyed(WEATHER),
    _rule(
        "plausible_observation",
        "humidity within 0 and 100 %, wind from 0 to 360 degrees, nothing negative",
        Severity.WARN,
        "relative_humidity_percent NOT BETWEEN 0 AND 100 OR wind_direction_degrees NOT BETWEEN 0 AND 360 "
        "OR wind_speed_mph < 0 OR precipitation_inches < 0 OR visibility_miles < 0",
    ),
    _rule("pressure_known", "the pressure was measured", Severity.WARN, "pressure_millibar IS NULL", 0.11),
)

OF_AIRCRAFT: tuple[Rule, ...] = (
    *_keyed(AIRCRAFT),
    _rule("seats_positive", "an aircraft has seats", Severity.FAIL, "seats IS NULL OR seats <= 0"),
    _rule("built_year_known", "the year of construction is known", Severity.WARN, "built_year IS NULL", 0.03),
)

OF_FLIGHTS: tuple[Rule, ...] = (
    *_keyed(FLIGHTS),
    _rule("carrier_known", "every carrier is among the airlines", Severity.FAIL, "carrier_name IS NULL"),
    _rule("origin_known", "every origin is among the airports", Severity.FAIL, "origin_name IS NULL"),
    _rule(
        "distance_positive", "the distance is positive", Severity.FAIL, "distance_miles IS NULL OR distance_miles <= 0"
    ),
    _rule(
        "times_agree",
        "the UTC departure shows the delivered date and hour on the clocks of the origin",
        Severity.FAIL,
        "scheduled_departure IS NULL "
        "OR hour(from_utc_timestamp(scheduled_departure, origin_time_zone)) <> scheduled_local_hour "
        "OR to_date(from_utc_timestamp(scheduled_departure, origin_time_zone)) <> flight_date",
    ),
    _rule(
        "block_time_plausible",
        "between scheduled departure and arrival lie 20 minutes to 13 hours",
        Severity.FAIL,
        "timestampdiff(MINUTE, scheduled_departure, scheduled_arrival) NOT BETWEEN 20 AND 780",
        0.001,
    ),
    _rule(
        "delay_plausible",
        "no departure is two hours early or a day late",
        Severity.WARN,
        "departure_delay_minutes NOT BETWEEN -120 AND 1440",
    ),
    _rule(
        "destination_known", "the destination is among the airports", Severity.WARN, "destination_name IS NULL", 0.03
    ),
    _rule("tail_number_known", "the aircraft is named", Severity.WARN, "tail_number IS NULL", 0.01),
    _rule("aircraft_known", "the aircraft is in the register", Severity.WARN, "aircraft_model IS NULL", 0.16),
    _rule("weather_known", "the weather at departure was observed", Severity.WARN, "NOT weather_observed", 0.01),
)

OF_ROUTE_PUNCTUALITY: tuple[Rule, ...] = (
    *_keyed(ROUTE_PUNCTUALITY),
    _rule(
        "counts_add_up",
        "on time <= arrived, and arrived and cancelled together <= flights",
        Severity.FAIL,
        "on_time > arrived OR arrived + cancelled > flights",
    ),
)

OF_CARRIER_DELAYS: tuple[Rule, ...] = (
    *_keyed(CARRIER_DELAYS_BY_WEATHER),
    _rule(
        "counts_add_up",
        "delayed <= arrived, and arrived and cancelled together <= flights",
        Severity.FAIL,
        "delayed > arrived OR arrived + cancelled > flights",
    ),
)

OF_UTILISATION: tuple[Rule, ...] = (
    _rule("key_present", "tail_number, month are known", Severity.FAIL, "tail_number IS NULL OR month IS NULL"),
    _rule(
        "days_within_month",
        "no aircraft serves more than 31 days of a month, or flies on fewer than one",
        Severity.FAIL,
        "days_in_service NOT BETWEEN 1 AND 31",
    ),
    _rule(
        "hours_within_day",
        "no aircraft is in the air for more than 24 hours of a day",
        Severity.FAIL,
        "air_hours_per_day_in_service > 24",
    ),
)
