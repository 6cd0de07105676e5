# SPDX-License-Identifier: Apache-2.0
"""Spark and views: creation, changes, and that a view gives its reader no right to the tables below it."""

from __future__ import annotations

import pytest

from tests.support.engines.spark import Session, Spark, SparkRefused, metadata
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_view_is_made_described_replaced_renamed_and_dropped(world: World, ns: str, admin: Session) -> None:
    view = f"lake.{ns}.v"
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, word)")
    admin.sql(
        f"CREATE VIEW {view} (number COMMENT 'which', said) COMMENT 'all of it' TBLPROPERTIES ('p' = 'q') "
        f"AS SELECT id, word FROM lake.{ns}.t"
    )
    assert admin.sql(f"SELECT said FROM {view} WHERE number = 2") == [("b",)]
    assert admin.sql(f"SHOW VIEWS IN lake.{ns}") == [(ns, "v", False)]
    assert [name for _, name, _ in admin.sql(f"SHOW TABLES IN lake.{ns}")] == ["t"]
    assert admin.sql(f"DESCRIBE {view}") == [("number", "int", "which"), ("said", "string", "")]
    shown = admin.value(f"SHOW CREATE TABLE {view}")
    assert f"SELECT id, word FROM lake.{ns}.t" in shown
    assert "COMMENT 'all of it'" in shown
    admin.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('r' = 's')")
    admin.sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES ('p')")
    properties = dict(admin.sql(f"SHOW TBLPROPERTIES {view}"))
    assert (properties.get("p"), properties["r"]) == (None, "s")
    admin.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT max(id) AS top FROM lake.{ns}.t")
    admin.sql(f"CREATE VIEW IF NOT EXISTS {view} AS SELECT 'not me' AS x")
    assert admin.sql(f"SELECT * FROM {view}") == [(2,)]
    versions = world.admin.get(f"{world.root}/namespaces/{ns}/views/v").json()["metadata"]["versions"]
    assert [each["version-id"] for each in versions] == [1, 2]
    admin.sql(f"ALTER VIEW {view} RENAME TO lake.{ns}.w")
    assert admin.sql(f"SELECT * FROM lake.{ns}.w") == [(2,)]
    with pytest.raises(SparkRefused, match="NOT_FOUND"):
        admin.sql(f"SELECT * FROM {view}")
    admin.sql(f"DROP VIEW lake.{ns}.w")
    with pytest.raises(SparkRefused, match="NoSuchViewException"):
        admin.sql(f"DROP VIEW lake.{ns}.w")


def test_table_and_view_do_not_replace_each_other(ns: str, admin: Session) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t AS SELECT 1 AS id")
    admin.sql(f"CREATE VIEW lake.{ns}.v AS SELECT id FROM lake.{ns}.t")
    for statement, expected in {
        f"CREATE TABLE lake.{ns}.v (id INT)": "TableAlreadyExists",
        f"CREATE OR REPLACE TABLE lake.{ns}.v (id INT)": "View with same name already exists",
        f"CREATE OR REPLACE VIEW lake.{ns}.t AS SELECT 2 AS id": "Table with same name already exists",
        f"ALTER VIEW lake.{ns}.v RENAME TO lake.{ns}.t": "ViewAlreadyExists",
        f"ALTER TABLE lake.{ns}.t RENAME TO {ns}.v": "TableAlreadyExists",
        f"DROP TABLE lake.{ns}.v": "NoSuchTableException",
        f"DROP VIEW lake.{ns}.t": "NoSuchViewException",
    }.items():
        with pytest.raises(SparkRefused, match=expected):
            admin.sql(statement)
    assert admin.sql(f"SELECT * FROM lake.{ns}.v") == [(1,)]
    assert admin.sql(f"SHOW VIEWS IN lake.{ns}") == [(ns, "v", False)]


def test_view_gives_its_reader_no_table_access(world: World, ns: str, admin: Session, spark: Spark) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.closed AS SELECT 1 AS id, 'secret' AS word")
    admin.sql(f"CREATE VIEW lake.{ns}.v AS SELECT id FROM lake.{ns}.closed")
    view = world.admin.get(f"{world.root}/namespaces/{ns}/views/v").json()["metadata"]["view-uuid"]
    world.grant("describe", world.carol, "view", view)
    carol = Session(spark, world.carol, label=ns)
    assert carol.sql(f"SHOW VIEWS IN lake.{ns}") == [(ns, "v", False)]
    assert carol.sql(f"SHOW TABLES IN lake.{ns}") == []
    with pytest.raises(SparkRefused, match=f"TABLE_OR_VIEW_NOT_FOUND.*`{ns}`.`closed`"):
        carol.sql(f"SELECT * FROM lake.{ns}.v")
    for statement in (
        f"CREATE OR REPLACE VIEW lake.{ns}.v AS SELECT 2 AS id",
        f"ALTER VIEW lake.{ns}.v SET TBLPROPERTIES ('a' = 'b')",
        f"ALTER VIEW lake.{ns}.v RENAME TO lake.{ns}.mine",
        f"DROP VIEW lake.{ns}.v",
    ):
        with pytest.raises(SparkRefused, match="ForbiddenException"):
            carol.sql(statement)
    world.grant("select", world.carol, "table", metadata(world, ns, "closed")["table-uuid"])
    assert carol.sql(f"SELECT * FROM lake.{ns}.v") == [(1,)]
