# SPDX-License-Identifier: Apache-2.0
"""Statements for a real Trino, each with the permission checks that decide about it.

No expected outcome is written here: the tests ask the gateway by `batch-check`, and Trino has to act accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.stack.world import Person, World

_ALL = "id,region,ssn"


class Cell:
    """A statement and its checks. All of them must pass; of checks separated by a bar, one must.

    A check is `<kind> <name> <action>`. A namespace is `.` or one below it. After `read_columns` follow the columns. In
    the statement `{s}` is the schema. `{t}`, `{v}` and `{f}` are a table, a view and a schema created for this run.
    `{n}` is an unused name, `{tn}` the table's name alone, `{old}` and `{new}` are snapshots of `orders`.
    """

    def __init__(self, sql: str, *needs: str) -> None:
        self.sql = sql
        self.needs = needs

    def __repr__(self) -> str:
        return self.sql


#: Marks a statement that is denied to every user, so that no check is needed.
NO_USER = "nobody"

READS = f"table orders read_columns {_ALL}"
WRITES = ("table orders write_data", "table orders commit")

CELLS = [
    # ---- looking ----
    Cell("show schemas from ice", "warehouse list_namespaces"),
    Cell("show tables from {s}", "namespace . list_tables"),
    Cell("show columns from {s}.orders", "table orders get_metadata | table orders read_columns"),
    Cell("describe {s}.lent", "view lent get_metadata"),
    Cell("show create table {s}.orders", "table orders get_metadata"),
    Cell("show create view {s}.lent", "view lent get_metadata"),
    Cell("show stats for {s}.orders", READS),
    # ---- reading ----
    Cell("select * from {s}.orders", READS),
    Cell("select id, region from {s}.orders", "table orders read_columns id,region"),
    Cell("select id from {s}.orders where ssn = '1'", "table orders read_columns id,ssn"),
    Cell("select id from {s}.orders order by ssn", "table orders read_columns id,ssn"),
    Cell("select count(ssn) from {s}.orders", "table orders read_columns ssn"),
    Cell("select a.id from {s}.orders a join {s}.orders b using (ssn)", "table orders read_columns id,ssn"),
    Cell("select count(*) from {s}.orders", "table orders read_columns"),
    Cell('select id, "$path" from {s}.orders', "table orders read_data"),
    Cell("select id from {s}.orders for version as of {old}", "table orders read_columns id"),
    Cell('select file_path from {s}."orders$files"', "table orders read_data"),
    Cell('select * from {s}."orders$partitions"', "table orders read_data"),
    Cell('select snapshot_id from {s}."orders$snapshots"', "table orders read_data"),
    Cell('select * from {s}."orders$history"', "table orders read_data"),
    Cell('select count(*) from {s}."orders$manifests"', "table orders read_data"),
    Cell('select * from {s}."orders$properties"', "table orders read_data"),
    Cell("select id from table(ice.system.table_changes('{s}', 'orders', {old}, {new}))", "table orders read_data"),
    Cell("select * from {s}.shared", "view shared select", "table orders read_columns region"),
    # Trino also checks the rights of the view's owner, at the bridge and at the catalog.
    Cell("select * from {s}.lent", "view lent select"),
    # ---- changing rows ----
    Cell("insert into {s}.orders values (9, 'EU', '9')", *WRITES),
    Cell("update {s}.orders set region = 'XX' where id = 9", *WRITES, "table orders read_columns id"),
    Cell("delete from {s}.orders where id = 9", *WRITES, "table orders read_columns id"),
    Cell(
        "merge into {s}.orders o using (values 9) n (i) on o.id = n.i when not matched then insert (id) values (n.i)",
        *WRITES,
        "table orders read_columns id",
    ),
    Cell("truncate table {t}", "table {t} write_data", "table {t} commit"),
    # ---- changing tables ----
    Cell("comment on table {s}.orders is 'said'", "table orders commit"),
    Cell("comment on column {t}.word is 'said'", "table {t} commit"),
    Cell("alter table {t} add column more varchar", "table {t} commit"),
    Cell("alter table {t} rename column word to said", "table {t} commit"),
    Cell("alter table {t} drop column word", "table {t} commit"),
    Cell("alter table {t} set properties format = 'ORC'", "table {t} commit"),
    Cell("alter table {t} execute optimize", "table {t} write_data", "table {t} commit"),
    Cell("alter table {t} execute expire_snapshots", "table {t} write_data", "table {t} commit"),
    Cell("create table {s}.{n} (id bigint)", "namespace . create_table"),
    Cell(
        "create table {s}.{n} as select id from {s}.orders", "namespace . create_table", "table orders read_columns id"
    ),
    Cell("create table {s}.{n} (id bigint) with (location = 's3://elsewhere/placed')", NO_USER),
    Cell("alter table {t} rename to {s}.{n}", "table {t} rename"),
    Cell("drop table {t}", "table {t} drop"),
    # ---- schemas ----
    Cell('create schema "{s}.{n}"', "namespace . create_namespace"),
    Cell("create schema {n}", "warehouse create_namespace"),
    Cell("create schema {n} with (location = 's3://elsewhere/schema')", NO_USER),
    Cell("drop schema {f}", "namespace {f} delete"),
    # ---- views ----
    Cell("create view {s}.{n} security invoker as select 1 a", "namespace . create_view"),
    Cell(
        "create view {s}.{n} security invoker as select id from {s}.orders",
        "namespace . create_view",
        "table orders read_columns id",
    ),
    Cell("comment on view {v} is 'said'", "view {v} commit"),
    Cell("alter view {v} rename to {s}.{n}", "view {v} rename"),
    Cell("drop view {v}", "view {v} drop"),
    # ---- procedures, and statements that are denied to every user
    Cell("call ice.system.rollback_to_snapshot('{s}', 'orders', {new})", "warehouse delete", "table orders commit"),
    Cell("call ice.system.unregister_table('{s}', '{tn}')", "table {t} drop"),
    Cell("set session ice.expire_snapshots_min_retention = '0s'", NO_USER),
    Cell("set session authorization alice", NO_USER),
]


@dataclass(frozen=True)
class Names:
    """The names of one run: the schema, and the objects created for it."""

    schema: str
    table: str = ""
    view: str = ""
    below: str = ""


def allowed(world: World, principal: Person, person: Person, needs: tuple[str, ...], names: Names) -> bool:
    """Return the gateway's decision about the user, as it answers the engine `principal`."""
    if NO_USER in needs:
        return False
    expected = [
        [_Question(world, each, names) for each in need.split(" | ")] for need in ("warehouse get_config", *needs)
    ]
    flat = [question for alternatives in expected for question in alternatives]
    answer = principal.post(
        "/management/v1/action/batch-check",
        {
            "delegated": True,
            "checks": [{"identity": {"user": person.id}, "operation": each.operation} for each in flat],
        },
    )
    assert answer.status_code == 200, answer.text
    answers = dict(zip(map(id, flat), answer.json()["results"], strict=True))
    return all(any(each.holds(answers[id(each)]) for each in alternatives) for alternatives in expected)


class _Question:
    """A parsed check: `<kind> [<name>] <action> [<columns>]`."""

    def __init__(self, world: World, text: str, names: Names) -> None:
        kind, *rest = text.split(" ")
        on: dict[str, Any] = {"warehouse-id": world.warehouse}
        self._columns: frozenset[str] = frozenset()
        if kind != "warehouse":
            name = rest.pop(0)
            on["namespace"] = [names.schema, names.below] if name == "{f}" else [names.schema]
            if kind != "namespace":
                on[kind] = {"{t}": names.table, "{v}": names.view}.get(name, name)
        if len(rest) > 1:
            self._columns = frozenset(rest.pop().split(","))
        self.operation = {kind: {**on, "action": rest[0]}}

    def holds(self, result: Mapping[str, Any]) -> bool:
        """Return True if the result allows the action, for all needed columns."""
        return bool(result["allowed"]) and ("columns" not in result or self._columns <= set(result["columns"]))
