# SPDX-License-Identifier: Apache-2.0
"""Bronze: the delivery, byte for byte as text, each row knowing the file it came from.

A delivery is recorded by the content hash of its file in the rows themselves, so recording and loading are one commit:
a run that was killed leaves either all of a file or nothing of it, and the next run knows which.
"""

from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from gateway.pipeline.schemas import SOURCE_SHA256, Table, delivered_schema
from gateway.pipeline.sources import Source


def read_delivery(session: SparkSession, source: Source, csv: Path) -> DataFrame:
    """The rows of a delivered CSV file, all columns text.

    The header must name exactly the columns expected in their order and every row must have as many fields; otherwise
    reading fails (`enforceSchema=false`, `FAILFAST`) instead of shifting values into the wrong column.
    """
    return (
        session.read.schema(delivered_schema(source.name))
        .option("header", "true")
        .option("enforceSchema", "false")
        .option("mode", "FAILFAST")
        .csv(csv.absolute().as_uri())
    )


def with_origin(frame: DataFrame, source: Source, at: datetime) -> DataFrame:
    """Adds the ingestion columns: file name, content hash, and the moment of loading."""
    return (
        frame.withColumn("_source_file", f.lit(source.path.name))
        .withColumn(SOURCE_SHA256, f.lit(source.sha256))
        .withColumn("_ingested_at", f.lit(at).cast("timestamp"))
    )


def of_delivery(bronze: DataFrame, sha256: str) -> DataFrame:
    """The rows of one delivery. Named by hash, not "the latest": an older file delivered again counts again."""
    return bronze.where(f.col(SOURCE_SHA256) == sha256)


def is_loaded(session: SparkSession, table: Table, source: Source) -> bool:
    """Whether this very content is in the table already."""
    return not of_delivery(session.table(table.ident), source.sha256).isEmpty()


def load(session: SparkSession, table: Table, source: Source, csv: Path, at: datetime) -> int:
    """Appends a delivery in one commit; answers the number of its rows."""
    rows = with_origin(read_delivery(session, source, csv), source, at)
    rows.writeTo(table.ident).append()
    return of_delivery(session.table(table.ident), source.sha256).count()
