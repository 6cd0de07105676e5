# SPDX-License-Identifier: Apache-2.0
"""The record of quality: results as rows of `ops.quality_results`.

A result belongs to a delivery, so checking the same delivery again with the same outcome changes nothing, and a rule
that was sharpened shows up as an update of its row.
"""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from gateway.pipeline.quality.expectations import Result
from gateway.pipeline.schemas import QUALITY_RESULTS
from gateway.pipeline.tables import Changes, merge, with_row_hash


def as_rows(session: SparkSession, delivery: str, results: Sequence[Result]) -> DataFrame:
    """Results as a DataFrame in the columns of the table, with row hash."""
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
    """Merges the results of one delivery; those of other deliveries stay."""
    rows = as_rows(session, delivery, results)
    return merge(session, QUALITY_RESULTS, rows, at, only=f"delivery = '{delivery}'")
