# SPDX-License-Identifier: Apache-2.0
"""Change tables: create a table, compute the differences from its rows, and merge only those.

`plan_changes` compares natural keys and row hashes with the rows of the table. If nothing differs, nothing is written
and no snapshot is created. An unchanged metadata location therefore means an unchanged table.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from lakegate.spark.schemas import ROW_HASH, UPDATED_AT, Table

_OPERATION = "_operation"
_OLD_HASH = "_old_hash"


class Changes(msgspec.Struct, frozen=True):
    """Numbers of rows that a write inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def any(self) -> bool:
        """Return True if the write changed at least one row."""
        return (self.inserted + self.updated + self.deleted) > 0


class Fingerprint(msgspec.Struct, frozen=True):
    """The state of a table. If two fingerprints are equal, neither data nor metadata were written in between."""

    metadata_location: str
    snapshot_id: int | None


def create_statement(table: Table) -> str:
    """Return the `CREATE TABLE` statement of a table. If the table exists, the statement makes no commit and no
    error.
    """
    columns = ", ".join(
        f"`{field.name}` {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        for field in table.schema.fields
    )
    partitioning = f" PARTITIONED BY ({table.partitioned_by})" if table.partitioned_by else ""
    comment = table.comment.replace("'", "\\'")
    return f"CREATE TABLE IF NOT EXISTS {table.ident} ({columns}) USING iceberg{partitioning} COMMENT '{comment}'"


def with_row_hash(frame: DataFrame, table: Table) -> DataFrame:
    """Return `frame` reduced to the table's business columns, cast to their types, with their hash in `_row_hash`.

    The hash is SHA-256 of a JSON document. Spark's `xxhash64` of columns is not suitable, because it skips nulls: a
    value that moves to the next column would not change it.
    """
    columns = [f.col(name).cast(table.schema[name].dataType).alias(name) for name in table.business_columns]
    typed = frame.select(*columns)
    document = f.to_json(f.struct(*[f.col(name) for name in table.business_columns]))
    return typed.withColumn(ROW_HASH, f.sha2(document, 256))


def plan_changes(candidate: DataFrame, current: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the rows of `candidate` that are new or differ from `current`, and the keys that only `current` has.

    Both have `_row_hash`. The result has the columns of `candidate` and `_operation` (insert, update, delete). In a
    delete the business columns are null except for the key.
    """
    old = current.select(*key, f.col(ROW_HASH).alias(_OLD_HASH))
    operation = (
        f.when(f.col(ROW_HASH).isNull(), "delete")
        .when(f.col(_OLD_HASH).isNull(), "insert")
        .when(f.col(ROW_HASH) != f.col(_OLD_HASH), "update")
    )
    joined = candidate.join(old, list(key), "full_outer").withColumn(_OPERATION, operation)
    return joined.where(f.col(_OPERATION).isNotNull()).drop(_OLD_HASH)


def count_changes(changes: DataFrame) -> Changes:
    """Return the numbers of operations in a result of `plan_changes`."""
    counts = {row[_OPERATION]: int(row["count"]) for row in changes.groupBy(_OPERATION).count().collect()}
    return Changes(counts.get("insert", 0), counts.get("update", 0), counts.get("delete", 0))


def merge(session: SparkSession, table: Table, candidate: DataFrame, at: datetime, only: str | None = None) -> Changes:
    """Make the rows of the table equal to `candidate` in one commit. If nothing differs, make no commit.

    `candidate` has `_row_hash`; the engine refuses the merge if it has several rows with one key. `at` is written into
    the changed rows. `only` (a SQL condition): rows for which it is not true are not changed.
    """
    current = session.table(table.ident)
    planned = plan_changes(candidate, current if only is None else current.where(only), table.key)
    changes = count_changes(planned)
    if changes.any:
        _apply(table, planned.withColumn(UPDATED_AT, f.lit(at).cast("timestamp")))
    return changes


def _apply(table: Table, planned: DataFrame) -> None:
    """Execute `MERGE INTO` through the DataFrame API.

    With SQL the source would be a temporary view, which Spark 4.1 refuses over cached rows.
    """
    on = " AND ".join(f"`{table.name}`.`{name}` = change.`{name}`" for name in table.key)
    assignments = {name: f.col(f"change.{name}") for name in table.schema.names}
    (
        planned.alias("change")
        .mergeInto(table.ident, f.expr(on))
        .whenMatched(f.expr(f"change.{_OPERATION} = 'delete'"))
        .delete()
        .whenMatched()
        .update(assignments)
        .whenNotMatched(f.expr(f"change.{_OPERATION} = 'insert'"))
        .insert(assignments)
        .merge()
    )


def ensure_tables(session: SparkSession, tables: Iterable[Table]) -> None:
    """Create those namespaces and tables that are missing. Existing ones are not changed."""
    requested = list(tables)
    existing = {row[0] for row in session.sql("SHOW NAMESPACES").collect()}
    for namespace in dict.fromkeys(table.namespace for table in requested):
        if namespace not in existing:
            session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        present = {row["tableName"] for row in session.sql(f"SHOW TABLES IN {namespace}").collect()}
        for table in requested:
            if table.namespace == namespace and table.name not in present:
                session.sql(create_statement(table))


def fingerprint(session: SparkSession, table: Table) -> Fingerprint:
    """Return the current metadata file and snapshot of a table. They are read from its metadata log."""
    log = session.table(f"{table.ident}.metadata_log_entries")
    row = log.orderBy(f.desc("timestamp"), f.desc("latest_sequence_number")).limit(1).collect()[0]
    return Fingerprint(metadata_location=row["file"], snapshot_id=row["latest_snapshot_id"])
