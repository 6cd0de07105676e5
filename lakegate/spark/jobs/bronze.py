# SPDX-License-Identifier: Apache-2.0
"""Bronze layer: the delivered values, unchanged and as text. Each row has the name of its file.

Each row contains the content hash of its file, so loading a file and recording that it is loaded are one commit. After
an interrupted run the table contains all rows of the file or none, and the next run can see which.
"""

from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lakegate.spark.schemas import SOURCE_SHA256, Table, delivered_schema
from lakegate.spark.sources import Source


def read_delivery(session: SparkSession, source: Source, csv: Path) -> DataFrame:
    """Return the rows of a delivered CSV file, with all columns as text.

    The header must name exactly the expected columns in their order, and every row must have as many fields. Otherwise
    the read fails (`enforceSchema=false`, `FAILFAST`), so that no value is assigned to a wrong column.
    """
    return (
        session.read.schema(delivered_schema(source.name))
        .option("header", "true")
        .option("enforceSchema", "false")
        .option("mode", "FAILFAST")
        .csv(csv.absolute().as_uri())
    )


def with_origin(frame: DataFrame, source: Source, at: datetime) -> DataFrame:
    """Add the ingestion columns: file name, content hash, and time of loading."""
    return (
        frame.withColumn("_source_file", f.lit(source.path.name))
        .withColumn(SOURCE_SHA256, f.lit(source.sha256))
        .withColumn("_ingested_at", f.lit(at).cast("timestamp"))
    )


def of_delivery(bronze: DataFrame, sha256: str) -> DataFrame:
    """Return the rows of the delivery with this content hash. The same delivery can be loaded again later."""
    return bronze.where(f.col(SOURCE_SHA256) == sha256)


def is_loaded(session: SparkSession, table: Table, source: Source) -> bool:
    """Return True if the table already contains the content of this file."""
    return not of_delivery(session.table(table.ident), source.sha256).isEmpty()


def load(session: SparkSession, table: Table, source: Source, csv: Path, at: datetime) -> int:
    """Append a delivery in one commit, and return the number of its rows. `at`: the time of loading."""
    rows = with_origin(read_delivery(session, source, csv), source, at)
    rows.writeTo(table.ident).append()
    return of_delivery(session.table(table.ident), source.sha256).count()
