# SPDX-License-Identifier: Apache-2.0
"""Spark's procedures: maintenance of files and snapshots, and staged changes that are reviewed before publication.

Each procedure uses the table's vended short-lived keys, which list and delete only below the table's prefix.
"""

from __future__ import annotations

import pytest

from tests.support.engines.spark import Session, Spark, SparkRefused, metadata
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

_MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read', 'format-version' = '2'"


def snapshots(world: World, ns: str) -> list[int]:
    """Return the ids of all snapshots of the table `t`, oldest first."""
    return [each["snapshot-id"] for each in metadata(world, ns, "t")["snapshots"]]


def keys(world: World, ns: str) -> dict[str, str]:
    """Return a map from object key to location, for all objects below the table `t`."""
    location = metadata(world, ns, "t")["location"]
    prefix = location.removeprefix(f"s3://{world.bucket}/") + "/"
    return {key: f"s3://{world.bucket}/{key}" for key, _ in world.objects(prefix)}


def test_compaction_and_expiry_delete_old_files(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ({_MERGE_ON_READ})")
    for first in (0, 2, 4):
        admin.sql(f"INSERT INTO {table} SELECT CAST(id AS INT) FROM range({first}, {first + 2})")
    admin.sql(f"DELETE FROM {table} WHERE id = 3")
    before = {key for key in keys(world, ns) if key.endswith(".parquet")}
    assert len(before) == 4
    [(rewritten, added, *_)] = admin.sql(
        f"CALL lake.system.rewrite_data_files(table => '{ns}.t', "
        "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
    )
    assert (rewritten, added) == (3, 1)
    admin.sql(f"INSERT INTO {table} VALUES (6)")
    admin.sql(f"CALL lake.system.rewrite_manifests('{ns}.t')")
    assert admin.value(f"SELECT count(*) FROM {table}.manifests WHERE content = 0") == 1
    [(data, position, *_)] = admin.sql(
        f"CALL lake.system.expire_snapshots(table => '{ns}.t', older_than => now(), retain_last => 1)"
    )
    assert (data, position) == (3, 1)
    after = {key for key in keys(world, ns) if key.endswith(".parquet")}
    assert (len(after), after & before) == (2, set())
    assert len(snapshots(world, ns)) == 1
    assert admin.sql(f"SELECT id FROM {table} ORDER BY id") == [(0,), (1,), (2,), (4,), (5,), (6,)]


def test_orphan_files_are_found_and_removed_with_the_tables_own_keys(
    world: World, ns: str, admin: Session, spark: Spark
) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    admin.sql(f"CALL lake.system.compute_table_stats('{ns}.t')")
    live = keys(world, ns)
    folder = metadata(world, ns, "t")["location"].removeprefix(f"s3://{world.bucket}/")
    lost = f"{folder}/data/lost.parquet"
    world.s3.put_object(Bucket=world.bucket, Key=lost, Body=b"lost")
    # The SQL procedure refuses an interval below 24 hours, so this is a dry run; the Java action accepts any interval.
    call = f"CALL lake.system.remove_orphan_files(table => '{ns}.t', prefix_listing => true"
    assert admin.sql(f"{call})") == []
    assert lost in keys(world, ns)
    id = metadata(world, ns, "t")["table-uuid"]
    world.grant("select", world.carol, "table", id)
    # The action returns the files that it tried to delete; the keys of a reader cannot delete them.
    assert Session(spark, world.carol, label=ns).remove_orphans(f"lake.{ns}.t") == {f"s3://{world.bucket}/{lost}"}
    assert keys(world, ns).keys() == live.keys() | {lost}
    assert admin.remove_orphans(f"lake.{ns}.t") == {f"s3://{world.bucket}/{lost}"}
    assert keys(world, ns) == live
    assert admin.sql(f"SELECT * FROM lake.{ns}.t") == [(1,)]


def test_main_moves_between_snapshots(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    admin.sql(f"INSERT INTO {table} VALUES (2)")
    admin.sql(f"INSERT INTO {table} VALUES (3)")
    one, two, three = snapshots(world, ns)
    assert [id for id, _ in admin.sql(f"CALL lake.system.ancestors_of('{ns}.t')")] == [three, two, one]
    assert admin.sql(f"CALL lake.system.rollback_to_snapshot('{ns}.t', {one})") == [(three, one)]
    assert admin.sql(f"SELECT id FROM {table}") == [(1,)]
    # A snapshot that is no longer an ancestor cannot be a target of rollback, but it can be set as current.
    with pytest.raises(SparkRefused, match="ancestor"):
        admin.sql(f"CALL lake.system.rollback_to_snapshot('{ns}.t', {two})")
    assert admin.sql(f"CALL lake.system.set_current_snapshot('{ns}.t', {two})") == [(one, two)]
    assert admin.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
    assert admin.sql(f"CALL lake.system.cherrypick_snapshot('{ns}.t', {three})") == [(three, three)]
    assert admin.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,), (3,)]
    when = admin.value(f"SELECT committed_at FROM {table}.snapshots WHERE snapshot_id = {two}")
    admin.sql(f"CALL lake.system.rollback_to_timestamp('{ns}.t', TIMESTAMP '{when}' + INTERVAL 1 MILLISECOND)")
    assert metadata(world, ns, "t")["current-snapshot-id"] == two


def test_staged_write_is_visible_after_publication(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} TBLPROPERTIES ('write.wap.enabled' = 'true') AS SELECT 1 AS id")
    admin.sql("SET spark.wap.id = checked-by-hand")
    try:
        admin.sql(f"INSERT INTO {table} VALUES (2)")
    finally:
        admin.sql("RESET spark.wap.id")
    assert admin.sql(f"SELECT id FROM {table}") == [(1,)]
    admin.sql(f"CALL lake.system.publish_changes('{ns}.t', 'checked-by-hand')")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
    with pytest.raises(SparkRefused, match="already"):
        admin.sql(f"CALL lake.system.publish_changes('{ns}.t', 'checked-by-hand')")


def test_session_branch_write_is_visible_to_its_session_only(
    world: World, ns: str, admin: Session, spark: Spark
) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} TBLPROPERTIES ('write.wap.enabled' = 'true') AS SELECT 1 AS id")
    writer = Session(spark, world.admin, label=ns)
    writer.sql("SET spark.wap.branch = stage")
    writer.sql(f"INSERT INTO {table} VALUES (2)")
    assert writer.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
    assert admin.sql(f"SELECT id FROM {table}") == [(1,)]
    admin.sql(f"REFRESH TABLE {table}")
    admin.sql(f"CALL lake.system.fast_forward('{ns}.t', 'main', 'stage')")
    assert admin.sql(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,)]
