# SPDX-License-Identifier: Apache-2.0
"""Spark moves tables: it renames them, changes their namespace, registers them again, and purges them."""

from __future__ import annotations

import time

import pytest

from tests.support.engines.spark import Session, Spark, SparkRefused, metadata
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

_PURGED_SECONDS = 60


def below(world: World, location: str) -> set[str]:
    """Return the keys below a location of the object store."""
    return {key for key, _ in world.objects(location.removeprefix(f"s3://{world.bucket}/") + "/")}


def test_a_table_is_renamed_inside_and_across_namespaces_with_its_rows(world: World, ns: str, admin: Session) -> None:
    admin.sql(f"CREATE NAMESPACE lake.{ns}.deep")
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    uuid = metadata(world, ns, "t")["table-uuid"]
    admin.sql(f"ALTER TABLE lake.{ns}.t RENAME TO {ns}.u")
    admin.sql(f"INSERT INTO lake.{ns}.u VALUES (2)")
    admin.sql(f"ALTER TABLE lake.{ns}.u RENAME TO {ns}.deep.v")
    admin.sql(f"INSERT INTO lake.{ns}.deep.v VALUES (3)")
    assert admin.sql(f"SELECT id FROM lake.{ns}.deep.v ORDER BY id") == [(1,), (2,), (3,)]
    assert admin.sql(f"SHOW TABLES IN lake.{ns}") == []
    assert metadata(world, f"{ns}%1Fdeep", "v")["table-uuid"] == uuid
    # The old name is free again, and a table created under it is a different table.
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 9 AS id")
    assert admin.sql(f"SELECT id FROM lake.{ns}.t") == [(9,)]
    assert admin.sql(f"SELECT id FROM lake.{ns}.deep.v ORDER BY id") == [(1,), (2,), (3,)]
    with pytest.raises(SparkRefused, match="AlreadyExists"):
        admin.sql(f"ALTER TABLE lake.{ns}.t RENAME TO {ns}.deep.v")
    with pytest.raises(SparkRefused, match="NOT_FOUND"):
        admin.sql(f"ALTER TABLE lake.{ns}.u RENAME TO {ns}.w")


def test_a_dropped_table_is_registered_again_from_its_files(world: World, ns: str, admin: Session) -> None:
    """A drop deletes the files too, unless a table property says that the table does not own them."""
    admin.sql(f"CREATE TABLE lake.{ns}.t TBLPROPERTIES ('gc.enabled' = 'false') AS SELECT 1 AS id, 'kept' AS word")
    snapshot = metadata(world, ns, "t")["current-snapshot-id"]
    file = world.admin.get(f"{world.root}/namespaces/{ns}/tables/t").json()["metadata-location"]
    admin.sql(f"DROP TABLE lake.{ns}.t")
    with pytest.raises(SparkRefused, match="NOT_FOUND"):
        admin.sql(f"SELECT * FROM lake.{ns}.t")
    [(current, rows, files)] = admin.sql(
        f"CALL lake.system.register_table(table => '{ns}.back', metadata_file => '{file}')"
    )
    assert (current, rows, files) == (snapshot, 1, 1)
    assert admin.sql(f"SELECT * FROM lake.{ns}.back") == [(1, "kept")]
    admin.sql(f"INSERT INTO lake.{ns}.back VALUES (2, 'new')")
    assert admin.value(f"SELECT count(*) FROM lake.{ns}.back") == 2
    with pytest.raises(SparkRefused, match="Forbidden: The metadata file"):
        admin.sql(f"CALL lake.system.register_table(table => '{ns}.twice', metadata_file => '{file}')")
    assert [name for _, name, _ in admin.sql(f"SHOW TABLES IN lake.{ns}")] == ["back"]


@pytest.mark.parametrize("purge", ["", " PURGE"])
def test_purged_table_leaves_no_file_and_its_neighbour_is_intact(
    world: World, ns: str, admin: Session, purge: str
) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT id FROM range(3)")
    admin.sql(f"DELETE FROM lake.{ns}.t WHERE id = 1")
    admin.sql(f"CREATE TABLE lake.{ns}.neighbour AS SELECT 7 AS id")
    location = metadata(world, ns, "t")["location"]
    assert len(below(world, location)) > 5
    admin.sql(f"DROP TABLE lake.{ns}.t{purge}")
    deadline = time.monotonic() + _PURGED_SECONDS
    while left := below(world, location):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert admin.sql(f"SHOW TABLES IN lake.{ns}") == [(ns, "neighbour", False)]
    assert admin.sql(f"SELECT * FROM lake.{ns}.neighbour") == [(7,)]


def test_unauthorized_user_gets_refusals_and_changes_nothing(
    world: World, ns: str, admin: Session, spark: Spark
) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    admin.sql(f"INSERT OVERWRITE lake.{ns}.t VALUES (1)")
    carol = Session(spark, world.carol, label=unique("carol"))
    with pytest.raises(SparkRefused, match="NOT_FOUND|NoSuch"):
        carol.sql(f"SELECT * FROM lake.{ns}.t")
    found = metadata(world, ns, "t")
    world.grant("select", world.carol, "table", found["table-uuid"])
    before = (
        world.admin.get(f"{world.root}/namespaces/{ns}/tables/t").json()["metadata-location"],
        below(world, found["location"]),
    )
    carol = Session(spark, world.carol, label=unique("carol"))
    assert carol.sql(f"SELECT * FROM lake.{ns}.t") == [(1,)]
    for statement in (
        f"ALTER TABLE lake.{ns}.t ADD COLUMN x INT",
        f"ALTER TABLE lake.{ns}.t CREATE BRANCH mine",
        f"ALTER TABLE lake.{ns}.t RENAME TO {ns}.mine",
        f"DROP TABLE lake.{ns}.t",
        f"DROP TABLE lake.{ns}.t PURGE",
        f"CREATE TABLE lake.{ns}.mine (id INT)",
        f"CREATE OR REPLACE TABLE lake.{ns}.t (id INT)",
        f"CALL lake.system.rollback_to_snapshot('{ns}.t', {found['snapshots'][0]['snapshot-id']})",
        f"CALL lake.system.expire_snapshots(table => '{ns}.t', older_than => now(), retain_last => 1)",
        f"DROP NAMESPACE lake.{ns}",
        f"CREATE NAMESPACE lake.{ns}.mine",
    ):
        with pytest.raises(SparkRefused, match="ForbiddenException: Forbidden"):
            carol.sql(statement)
    for statement in (f"INSERT INTO lake.{ns}.t VALUES (2)", f"REPLACE TABLE lake.{ns}.t AS SELECT 2 AS id"):
        with pytest.raises(SparkRefused, match="Access Denied"):
            carol.sql(statement)
    after = (
        world.admin.get(f"{world.root}/namespaces/{ns}/tables/t").json()["metadata-location"],
        below(world, found["location"]),
    )
    assert after == before
