# SPDX-License-Identifier: Apache-2.0
"""Storage of quality results as rows of `ops.quality_results`.

A result belongs to a delivery. A repeated check of the same delivery with the same outcome changes nothing; a changed
rule updates its row.
"""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from lakegate.spark.quality.expectations import Result
from lakegate.spark.schemas import QUALITY_RESULTS
from lakegate.spark.tables import Changes, merge, with_row_hash


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
