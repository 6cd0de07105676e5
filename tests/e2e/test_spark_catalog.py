# SPDX-License-Identifier: Apache-2.0
"""Spark and the catalog: namespaces, table definitions, and changes to both."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings import java_home, search_path
from lakegate.local import jdk
from lakegate.spark.classes import class_archive
from tests.support.engines.spark import Session, Spark, SparkRefused, jars, metadata
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_java_maps_the_recorded_classes(spark: Spark) -> None:
    """Java ignores a file that does not fit to its version or to the class path, and then says nothing."""
    archive = class_archive(jars(), jdk.find(java_home(), search_path()))
    assert archive is not None
    assert str(archive) in Path(f"/proc/{spark.java_process()}/maps").read_text()


def test_namespaces_nest_have_properties_and_are_dropped_when_empty(ns: str, admin: Session) -> None:
    admin.sql(f"CREATE NAMESPACE lake.{ns}.sub WITH DBPROPERTIES ('team' = 'flights', 'x' = '1')")
    admin.sql(f"ALTER NAMESPACE lake.{ns}.sub SET PROPERTIES ('x' = '2', 'y' = '3')")
    admin.sql(f"ALTER NAMESPACE lake.{ns}.sub UNSET PROPERTIES ('y')")
    admin.sql(f"COMMENT ON NAMESPACE lake.{ns}.sub IS 'below'")
    assert admin.sql(f"SHOW NAMESPACES IN lake.{ns}") == [(f"{ns}.sub",)]
    properties = dict(admin.sql(f"DESCRIBE NAMESPACE EXTENDED lake.{ns}.sub"))
    assert properties["Comment"] == "below"
    assert "(team,flights), (x,2))" in properties["Properties"]
    admin.sql(f"CREATE TABLE lake.{ns}.sub.t (id INT)")
    with pytest.raises(SparkRefused, match="NamespaceNotEmptyException"):
        admin.sql(f"DROP NAMESPACE lake.{ns}.sub")
    admin.sql(f"DROP TABLE lake.{ns}.sub.t")
    admin.sql(f"DROP NAMESPACE lake.{ns}.sub")
    assert admin.sql(f"SHOW NAMESPACES IN lake.{ns}") == []


def test_column_changes_do_not_rewrite_rows(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id BIGINT NOT NULL, word STRING COMMENT 'said', n INT, s STRUCT<x: INT>)")
    admin.sql(f"INSERT INTO {table} VALUES (1, 'a', 10, named_struct('x', 5)), (2, 'b', 20, named_struct('x', 6))")
    admin.sql(f"ALTER TABLE {table} ADD COLUMNS (d DATE COMMENT 'day' AFTER id)")
    admin.sql(f"ALTER TABLE {table} ADD COLUMN s.y STRING")
    admin.sql(f"ALTER TABLE {table} RENAME COLUMN word TO label")
    admin.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
    admin.sql(f"ALTER TABLE {table} ALTER COLUMN n FIRST")
    admin.sql(f"ALTER TABLE {table} ALTER COLUMN label COMMENT 'called'")
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [
        (10, 1, None, "a", [5, None]),
        (20, 2, None, "b", [6, None]),
    ]
    admin.sql(f"ALTER TABLE {table} DROP COLUMN s")
    admin.sql(f"ALTER TABLE {table} DROP COLUMNS (n, d)")
    # A new column with the name of a dropped one is a different column: the old values do not return.
    admin.sql(f"ALTER TABLE {table} ADD COLUMN n STRING")
    admin.sql(f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL")
    admin.sql(f"INSERT INTO {table} VALUES (NULL, 'c', 'new')")
    assert admin.sql(f"SELECT * FROM {table} ORDER BY label") == [(1, "a", None), (2, "b", None), (None, "c", "new")]
    described = admin.sql(f"DESCRIBE TABLE {table}")
    assert described == [("id", "bigint", None), ("label", "string", "called"), ("n", "string", None)]


def test_every_column_type_is_read_as_written(ns: str, admin: Session) -> None:
    columns = (
        "b BOOLEAN, f FLOAT, d DOUBLE, dec DECIMAL(12, 3), day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, raw BINARY, "
        "m MAP<STRING, ARRAY<INT>>, a ARRAY<STRUCT<x: INT, y: STRING>>"
    )
    admin.sql(f"CREATE TABLE lake.{ns}.types ({columns})")
    admin.sql(
        f"INSERT INTO lake.{ns}.types VALUES (true, 1.5, 2.25, 1234.567, DATE '2024-02-29', "
        "TIMESTAMP '2024-02-29 23:59:59.123456', TIMESTAMP_NTZ '2024-02-29 01:02:03', X'00FF', "
        "map('k', array(1, 2)), array(named_struct('x', 1, 'y', 'z')))"
    )
    [row] = admin.sql(f"SELECT *, hex(raw) FROM lake.{ns}.types")
    assert row[:7] == (True, 1.5, 2.25, "1234.567", "2024-02-29", "2024-02-29 23:59:59.123456", "2024-02-29 01:02:03")
    assert row[8:] == ({"k": [1, 2]}, [[1, "z"]], "00FF")


def test_partitioning_evolves_and_old_files_keep_theirs(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id BIGINT, ts TIMESTAMP) PARTITIONED BY (days(ts))")
    admin.sql(f"INSERT INTO {table} VALUES (1, TIMESTAMP '2024-01-02 03:00:00')")
    admin.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id) AS shard")
    admin.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD days(ts) WITH months(ts)")
    admin.sql(f"INSERT INTO {table} VALUES (2, TIMESTAMP '2024-03-04 05:00:00')")
    admin.sql(f"ALTER TABLE {table} DROP PARTITION FIELD shard")
    admin.sql(f"INSERT INTO {table} VALUES (3, TIMESTAMP '2024-05-06 07:00:00')")
    specs = admin.sql(f"SELECT spec_id, count(*) FROM {table}.files GROUP BY 1 ORDER BY 1")
    assert [count for _, count in specs] == [1, 1, 1]
    assert len({spec for spec, _ in specs}) == 3
    assert admin.sql(f"SELECT id FROM {table} WHERE ts < TIMESTAMP '2024-04-01 00:00:00' ORDER BY id") == [(1,), (2,)]
    default = metadata(world, ns, "t")["default-spec-id"]
    [fields] = [each["fields"] for each in metadata(world, ns, "t")["partition-specs"] if each["spec-id"] == default]
    assert [(field["transform"], field["name"]) for field in fields] == [("month", "ts_month")]


def test_sort_order_distribution_identifier_fields_and_properties_are_kept(
    world: World, ns: str, admin: Session
) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t (id BIGINT NOT NULL, word STRING) TBLPROPERTIES ('a' = '1', 'b' = '2')")
    admin.sql(f"ALTER TABLE lake.{ns}.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY word DESC NULLS LAST, id")
    admin.sql(f"ALTER TABLE lake.{ns}.t SET IDENTIFIER FIELDS id")
    admin.sql(f"ALTER TABLE lake.{ns}.t SET TBLPROPERTIES ('a' = '3', 'c' = 'kept')")
    admin.sql(f"ALTER TABLE lake.{ns}.t UNSET TBLPROPERTIES ('b')")
    found = metadata(world, ns, "t")
    [order] = [each for each in found["sort-orders"] if each["order-id"] == found["default-sort-order-id"]]
    assert [(field["source-id"], field["direction"]) for field in order["fields"]] == [(2, "desc"), (1, "asc")]
    assert found["schemas"][-1]["identifier-field-ids"] == [1]
    shown = dict(admin.sql(f"SHOW TBLPROPERTIES lake.{ns}.t"))
    assert (shown["a"], shown["c"], shown["write.distribution-mode"]) == ("3", "kept", "hash")
    assert "b" not in shown
    admin.sql(f"ALTER TABLE lake.{ns}.t DROP IDENTIFIER FIELDS id")
    admin.sql(f"ALTER TABLE lake.{ns}.t WRITE UNORDERED")
    assert metadata(world, ns, "t")["default-sort-order-id"] == 0


def test_tables_created_and_replaced_by_queries_keep_their_history(ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} PARTITIONED BY (even) AS SELECT id, id % 2 = 0 AS even FROM range(4)")
    assert admin.sql(f"SELECT id, even FROM {table} ORDER BY id") == [(0, True), (1, False), (2, True), (3, False)]
    first = admin.value(f"SELECT snapshot_id FROM {table}.snapshots")
    admin.sql(f"REPLACE TABLE {table} AS SELECT 'only' AS word")
    assert admin.sql(f"SELECT * FROM {table}") == [("only",)]
    admin.sql(f"CREATE OR REPLACE TABLE {table} TBLPROPERTIES ('k' = 'v') AS SELECT 1 AS id, 'x' AS word")
    assert admin.sql(f"SELECT * FROM {table}") == [(1, "x")]
    assert admin.sql(f"SELECT id FROM {table} VERSION AS OF {first} ORDER BY id") == [(0,), (1,), (2,), (3,)]
    admin.sql(f"CREATE OR REPLACE TABLE {table} (n INT)")
    assert admin.sql(f"SELECT * FROM {table}") == []
    admin.sql(f"CREATE OR REPLACE TABLE lake.{ns}.fresh AS SELECT 5 AS five")
    assert admin.sql(f"SELECT * FROM lake.{ns}.fresh") == [(5,)]
    admin.sql(f"CREATE TABLE IF NOT EXISTS {table} AS SELECT 9 AS nine")
    assert admin.sql(f"SELECT * FROM {table}") == []
    for verb in ("CREATE TABLE", "CREATE VIEW"):
        with pytest.raises(SparkRefused, match="AlreadyExists"):
            admin.sql(f"{verb} {table} AS SELECT 9 AS nine")
    with pytest.raises(SparkRefused, match="NOT_FOUND"):
        admin.sql(f"REPLACE TABLE lake.{ns}.absent AS SELECT 9 AS nine")


def test_a_query_that_fails_leaves_no_table(world: World, ns: str, admin: Session) -> None:
    with pytest.raises(SparkRefused, match="broken on purpose"):
        admin.sql(
            f"CREATE TABLE lake.{ns}.half AS SELECT CAST(raise_error('broken on purpose') AS INT) AS e FROM range(2)"
        )
    assert admin.sql(f"SHOW TABLES IN lake.{ns}") == []
    admin.sql(f"CREATE TABLE lake.{ns}.half AS SELECT 1 AS id")
    with pytest.raises(SparkRefused, match="broken on purpose"):
        admin.sql(
            f"REPLACE TABLE lake.{ns}.half AS SELECT CAST(raise_error('broken on purpose') AS INT) AS e FROM range(2)"
        )
    assert admin.sql(f"SELECT * FROM lake.{ns}.half") == [(1,)]


def test_names_keep_their_spelling_and_are_case_insensitive(ns: str, admin: Session) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.Mixed AS SELECT 1 AS id")
    admin.sql(f"CREATE TABLE lake.{ns}.`with space` AS SELECT 2 AS `a b`")
    admin.sql(f"CREATE TABLE lake.{ns}.`dotted.name` AS SELECT 3 AS id")
    admin.sql(f"CREATE TABLE lake.{ns}.`größe` AS SELECT 4 AS id")
    assert {name for _, name, _ in admin.sql(f"SHOW TABLES IN lake.{ns}")} == {
        "Mixed",
        "with space",
        "dotted.name",
        "größe",
    }
    assert admin.sql(f"SELECT * FROM lake.{ns}.mixed") == [(1,)]
    assert admin.sql(f"SELECT `a b` FROM lake.{ns}.`with space`") == [(2,)]
    assert admin.sql(f"SELECT * FROM lake.{ns}.`dotted.name`") == [(3,)]
    assert admin.sql(f"SELECT * FROM lake.{ns}.`GRÖSSE`") == [(4,)]


def test_paged_lists_are_complete(world: World, ns: str, spark: Spark) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        world.table(ns, name)
    paging = Session(spark, world.admin, label=unique("paging"))
    paging.sql("SET `spark.sql.catalog.lake.rest-page-size` = 2")
    assert sorted(name for _, name, _ in paging.sql(f"SHOW TABLES IN lake.{ns}")) == names


def test_grant_and_revocation_apply_to_the_next_statement(world: World, ns: str, admin: Session, spark: Spark) -> None:
    """Spark revalidates its cached table with `If-None-Match`: a 304 must not be sent after the right is revoked."""
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    table = metadata(world, ns, "t")["table-uuid"]
    carol = Session(spark, world.carol, label=unique("carol"))
    carol.sql("SET `spark.sql.catalog.lake.cache-enabled` = false")
    read = f"SELECT id FROM lake.{ns}.t"
    for _ in range(2):
        world.grant("select", world.carol, "table", table)
        assert carol.sql(read) == [(1,)]
        assert carol.sql(read) == [(1,)]
        world.revoke("select", world.carol, "table", table)
        with pytest.raises(SparkRefused, match="NOT_FOUND|NoSuch"):
            carol.sql(read)
