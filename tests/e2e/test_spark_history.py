# SPDX-License-Identifier: Apache-2.0
"""Spark and the history of a table: branches, tags, time travel and metadata tables."""

from __future__ import annotations

import pytest

from tests.support.engines.spark import Session, SparkRefused, metadata
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_branch_is_written_separately_and_main_fast_forwards(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, v)")
    admin.sql(f"ALTER TABLE {table} CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    admin.sql(f"INSERT INTO {table}.branch_audit VALUES (3, 'c')")
    admin.sql(f"UPDATE {table}.branch_audit SET v = 'B' WHERE id = 2")
    admin.sql(f"DELETE FROM {table}.branch_audit WHERE id = 1")
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "a"), (2, "b")]
    assert admin.sql(f"SELECT * FROM {table} VERSION AS OF 'audit' ORDER BY id") == [(2, "B"), (3, "c")]
    with pytest.raises(SparkRefused, match="AlreadyExists|already exists"):
        admin.sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    admin.sql(f"CALL lake.system.fast_forward('{ns}.t', 'main', 'audit')")
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [(2, "B"), (3, "c")]
    admin.sql(f"ALTER TABLE {table} DROP BRANCH audit")
    assert admin.sql(f"SELECT name, type FROM {table}.refs") == [("main", "BRANCH")]
    admin.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert admin.value(f"SELECT count(*) FROM {table}") == 3


def test_tag_keeps_its_snapshot(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    first = admin.value(f"SELECT snapshot_id FROM {table}.snapshots")
    admin.sql(f"ALTER TABLE {table} CREATE TAG released RETAIN 30 DAYS")
    admin.sql(f"INSERT INTO {table} VALUES (2)")
    assert admin.sql(f"SELECT id FROM {table}.tag_released") == [(1,)]
    assert metadata(world, ns, "t")["refs"]["released"] == {
        "snapshot-id": first,
        "type": "tag",
        "max-ref-age-ms": 30 * 24 * 3600 * 1000,
    }
    admin.sql(f"ALTER TABLE {table} REPLACE TAG released")
    assert admin.sql(f"SELECT id FROM {table} VERSION AS OF 'released' ORDER BY id") == [(1,), (2,)]
    with pytest.raises(SparkRefused, match="Cannot write to table with time travel"):
        admin.sql(f"INSERT INTO {table}.tag_released VALUES (3)")
    admin.sql(f"ALTER TABLE {table} DROP TAG released")
    with pytest.raises(SparkRefused, match="released"):
        admin.sql(f"SELECT id FROM {table} VERSION AS OF 'released'")


def test_time_travel_uses_the_schema_of_its_snapshot(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    first, when = admin.sql(f"SELECT snapshot_id, committed_at FROM {table}.snapshots")[0]
    admin.sql(f"ALTER TABLE {table} ADD COLUMN word STRING")
    admin.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    assert admin.sql(f"SELECT * FROM {table} VERSION AS OF {first}") == [(1,)]
    assert admin.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{when}'") == [(1,)]
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [(1, None), (2, "b")]
    with pytest.raises(SparkRefused, match="older than"):
        admin.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '2001-01-01 00:00:00'")


def test_spark_metadata_tables_show_the_history(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT, day DATE) PARTITIONED BY (day)")
    admin.sql(f"INSERT INTO {table} VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-02')")
    admin.sql(f"INSERT INTO {table} VALUES (3, DATE '2024-01-02')")
    admin.sql(f"DELETE FROM {table} WHERE day = DATE '2024-01-01'")
    assert admin.sql(f"SELECT operation FROM {table}.snapshots ORDER BY committed_at") == [
        ("append",),
        ("append",),
        ("delete",),
    ]
    known = [each["snapshot-id"] for each in metadata(world, ns, "t")["snapshots"]]
    assert admin.sql(f"SELECT snapshot_id, is_current_ancestor FROM {table}.history") == [(id, True) for id in known]
    assert admin.sql(f"SELECT partition.day, record_count, file_count FROM {table}.partitions") == [
        ("2024-01-02", 2, 2)
    ]
    assert admin.sql(f"SELECT content, record_count FROM {table}.files") == [(0, 1), (0, 1)]
    assert admin.value(f"SELECT count(*) FROM {table}.all_data_files") > 3
    assert admin.sql(f"SELECT status, count(*) FROM {table}.entries GROUP BY 1 ORDER BY 1")[-1] == (2, 1)
    assert admin.value(f"SELECT sum(added_data_files_count) FROM {table}.all_manifests") >= 3
    admin.sql(f"CALL lake.system.compute_partition_stats('{ns}.t')")
    [statistics] = metadata(world, ns, "t")["partition-statistics"]
    assert statistics["snapshot-id"] == known[-1]
    [latest] = admin.sql(f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    found = world.admin.get(f"{world.root}/namespaces/{ns}/tables/t").json()
    assert latest == (found["metadata-location"],)


def test_changelog_between_snapshots_has_its_rows(ns: str, admin: Session) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    admin.sql(f"INSERT INTO lake.{ns}.t VALUES (2)")
    admin.sql(f"DELETE FROM lake.{ns}.t WHERE id = 1")
    view = f"changes_of_{ns}"
    admin.sql(f"CALL lake.system.create_changelog_view(table => '{ns}.t', changelog_view => '{view}')")
    result = admin.sql(f"SELECT id, _change_type, _change_ordinal FROM {view} ORDER BY _change_ordinal")
    assert result == [(1, "INSERT", 0), (2, "INSERT", 1), (1, "DELETE", 2)]
    admin.sql(f"DROP VIEW {view}")
