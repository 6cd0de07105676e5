# SPDX-License-Identifier: Apache-2.0
"""Spark changes rows: by rewriting files (copy on write) and by writing delete files (merge on read)."""

from __future__ import annotations

import pytest

from tests.support.engines.spark import Session, SparkRefused

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def modes(mode: str) -> str:
    """Return the table properties that choose copy on write or merge on read."""
    return ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))


@pytest.mark.parametrize(
    ("version", "mode", "left"),
    [
        (2, "copy-on-write", set()),
        (2, "merge-on-read", {"PARQUET"}),
        (3, "merge-on-read", {"PUFFIN"}),  # a deletion vector
    ],
)
def test_rows_are_updated_deleted_and_merged(ns: str, admin: Session, version: int, mode: str, left: set[str]) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT, v STRING) TBLPROPERTIES ('format-version' = '{version}', {modes(mode)})")
    admin.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')")
    admin.sql(f"UPDATE {table} SET v = upper(v) WHERE id IN (1, 2)")
    admin.sql(f"DELETE FROM {table} WHERE id = 3")
    admin.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (2, 'two'), (4, NULL), (9, 'nine') AS s(id, v)) s "
        "ON t.id = s.id WHEN MATCHED AND s.v IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET t.v = s.v "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET t.v = 'alone'"
    )
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "A"), (2, "two"), (5, "alone"), (9, "nine")]
    assert {kind for (kind,) in admin.sql(f"SELECT DISTINCT file_format FROM {table}.delete_files")} == left
    # A delete that covers whole files rewrites none and writes no delete file.
    admin.sql(f"TRUNCATE TABLE {table}")
    assert admin.sql(f"SELECT * FROM {table}") == []
    operations = [operation for (operation,) in admin.sql(f"SELECT operation FROM {table}.snapshots")]
    assert (operations[0], operations[-1], len(operations)) == ("append", "delete", 5)


def test_overwriting_replaces_all_or_the_partitions_that_are_written(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT, day DATE) PARTITIONED BY (day)")
    admin.sql(f"INSERT INTO {table} VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-02'), (3, DATE '2024-01-03')")
    admin.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        admin.sql(f"INSERT OVERWRITE {table} VALUES (22, DATE '2024-01-02')")
    finally:
        admin.sql("RESET spark.sql.sources.partitionOverwriteMode")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY day") == [(1,), (22,), (3,)]
    admin.sql(f"INSERT OVERWRITE {table} PARTITION (day = DATE '2024-01-03') SELECT 33")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY day") == [(1,), (22,), (33,)]
    admin.sql(f"INSERT INTO {table} REPLACE WHERE day < DATE '2024-01-03' SELECT 11, DATE '2024-01-01'")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY day") == [(11,), (33,)]
    admin.sql(f"INSERT INTO {table} BY NAME SELECT DATE '2024-01-04' AS day, 4 AS id")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY day") == [(11,), (33,), (4,)]
    admin.sql(f"INSERT OVERWRITE {table} VALUES (9, DATE '2024-01-09')")
    assert admin.sql(f"SELECT id FROM {table}") == [(9,)]


def test_contradictory_merge_is_refused_without_a_change(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('format-version' = '2')")
    admin.sql(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(SparkRefused, match="MERGE_CARDINALITY_VIOLATION"):
        admin.sql(
            f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 5), (1, 6) AS s(id, n)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET t.id = s.n"
        )
    assert admin.sql(f"SELECT * FROM {table}") == [(1,)]
