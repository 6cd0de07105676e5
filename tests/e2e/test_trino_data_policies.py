# SPDX-License-Identifier: Apache-2.0
"""Data policies on a real Trino, from their creation to the cells that each user sees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.engines.trino import Refused
from tests.support.engines.trino_calls import counted, pytestmark
from tests.support.engines.trino_lake import Lake
from tests.support.engines.trino_restrictions import ROWS, WAYS
from tests.support.stack.columns import give
from tests.support.stack.world import Person, World

__all__ = ["pytestmark"]

_SELECT = "select id, name, ssn, contact from {s}.people order by id"
#: What all users see of the visible rows: the two masks of `ssn` together, the mask of `name`, and that of `contact`.
_MASKED = [[id, "x" * len(name), "nnn-nn", None] for id, name in enumerate(("Ann", "Bob", "Cyd", "Dan", "HIDDEN"), 1)]
#: Values that the reader never sees: of the rows 1 and 5, and of masked columns.
_SECRETS = ("HIDDEN", "1999-09-09", "1990-01-01", "Bob", "Cyd", *(f"{n}{n}{n}-{n}{n}" for n in range(1, 6)), "+2", "+3")


@dataclass
class Policies:
    """Writes data policies and bindings to the database; all are deleted at the end."""

    world: World
    made: list[str] = field(default_factory=list)

    def make(
        self, definition: object, type: str, on: str, *, applies_to: str = "everyone", append: bool = False
    ) -> str:
        """Bind a new policy to an object of the type and return its id."""
        id = str(uuid4())
        self.world.sql(
            """
            with policy as (
                insert into data_policies (id, project_id, name, name_key, definition, applies_to, allow_append)
                select $1::uuid, project_id, $1::text, $1::text, $2::jsonb, $3, $4 from warehouses where id = $5::uuid
                returning id),
            binding as (
                insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by)
                select id, $6, $7::uuid, $5::uuid, 'test' from policy)
            update warehouses set data_policy_revision = gen_random_uuid() where id = $5::uuid
            """,
            id,
            json.dumps(definition),
            applies_to,
            append,
            self.world.warehouse,
            type,
            on,
        )
        self.made.append(id)
        return id

    def delete(self) -> None:
        self.world.sql("delete from data_policies where id::text = any($1::text[])", self.made)
        self.world.sql(
            "update warehouses set data_policy_revision = "
            "case when exists (select from data_policies) then gen_random_uuid() end where id = $1::uuid",
            self.world.warehouse,
        )


def _mask(action: str, column: str) -> dict[str, Any]:
    return {"kind": "mask", "action": action, "columns": [{"name": column}]}


_FILTER = {
    "kind": "row-filter",
    "test": {
        "type": "or",
        "operands": [
            {"type": "in", "column": {"name": "city"}, "values": ["rome"]},
            {"type": "in", "column": {"name": "viewer"}, "values": {"type": "attribute", "source": "principal"}},
        ],
    },
}


#: Names and values that would end a quoted name or text, or begin another expression, if they were not quoted.
_ODD_NAMES = ('a"b', "a'b", "back\\slash", "new\nline", "semi;--", "ünï", "UPPER", "select", "a.b", "x" * 500)
_ODD_TEXTS = (
    "x' OR '1'='1",
    "o''k",
    "\\",
    "\\'",
    "new\nline",
    "--",
    "/*",
    '"',
    "ünï\U0001f600",
    "\u2028",
    "${x}",
    "?",
    "%s",
)
_POSITIVE = {
    "kind": "row-filter",
    "test": {"type": "compare", "operator": "gt", "column": {"name": "id"}, "value": 0},
}


@dataclass(frozen=True)
class Site:
    """The restricted tables `people` and `grown`."""

    world: World
    lake: Lake
    table_id: Callable[[str], str]
    old: str

    def run(self, person: Person, sql: str) -> list[list[object]]:
        off = {"ice.collect_extended_statistics_on_write": "false"}
        return self.lake.trino.run(person, sql.format(s=self.lake.schema, old=self.old), session=off)


def _fill_odd(lake: Lake) -> None:
    """Create a table with the odd names. Each row has one of the odd texts in all columns, and the last row another."""
    columns = ["id bigint", *('"' + name.replace('"', '""') + '" varchar' for name in _ODD_NAMES)]
    texts = ["'" + text.replace("'", "''") + "'" for text in (*_ODD_TEXTS, "hidden")]
    rows = [f"({', '.join([str(number), *[text] * len(_ODD_NAMES)])})" for number, text in enumerate(texts)]
    lake.trino.run(lake.owner, f"create table {lake.schema}.odd ({', '.join(columns)})")
    lake.trino.run(lake.owner, f"insert into {lake.schema}.odd values {', '.join(rows)}")


@pytest.fixture(scope="module")
def site(world: World, lake: Lake) -> Iterator[Site]:
    def id_of(name: str) -> str:
        row = world.sql("select id from tables where name = $1 order by created_at desc limit 1", name)[0]
        return str(row["id"])

    viewer = f"case id when 2 then '{lake.reader.id}' when 5 then '{lake.owner.id}' else '-' end"
    for sql in (
        f"create table {{s}}.people as select t.*, cast({viewer} as varchar) viewer "
        f"from (values {ROWS}) t (id, name, ssn, city, x, born, phone)",
        "create table {s}.empty (id bigint)",
        "create table {s}.grown (id bigint, city varchar, viewer varchar)",
        "insert into {s}.grown values (1, 'oslo', '-'), (2, 'rome', '-')",
    ):
        lake.trino.run(lake.owner, sql.format(s=lake.schema))
    snapshots = f'select snapshot_id from {lake.schema}."people$snapshots" order by committed_at desc limit 1'
    old = str(lake.trino.run(lake.owner, snapshots)[0][0])
    lake.trino.run(lake.owner, f"alter table {lake.schema}.people rename column phone to contact")
    _fill_odd(lake)
    people = id_of("people")
    for column in ("id", "ssn", "city", "viewer"):
        assert give(world, people, column, lake.columns).status_code == 204
    policies = Policies(world)
    try:
        policies.make(_mask("show-last-4", "ssn"), "table", people)
        policies.make(_mask("mask-alphanum", "ssn"), "namespace", world.namespace_id(lake.schema), append=True)
        policies.make(_mask("mask-alphanum", "name"), "namespace", world.namespace_id(lake.schema), append=True)
        policies.make(_mask("replace-with-null", "contact"), "table", people)
        policies.make(_FILTER, "table", people)
        policies.make(_FILTER, "table", id_of("grown"), append=True)
        odd = id_of("odd")
        columns = [{"name": name} for name in _ODD_NAMES]
        policies.make({"kind": "mask", "action": "mask-alphanum", "columns": columns}, "table", odd)
        shown = {"type": "in", "column": columns[0], "values": list(_ODD_TEXTS)}
        policies.make({"kind": "row-filter", "test": shown}, "table", odd)
        yield Site(world, lake, id_of, old)
    finally:
        policies.delete()


def test_each_user_sees_the_cells_that_its_policies_permit(site: Site) -> None:
    lake = site.lake
    rome = [_MASKED[2], _MASKED[3]]
    assert site.run(lake.manager, _SELECT) == rome
    assert site.run(lake.owner, _SELECT) == [*rome, _MASKED[4]], "owners are restricted too"
    assert site.run(lake.reader, _SELECT) == [_MASKED[1], *rome]
    assert site.run(lake.columns, "select id, ssn from {s}.people order by id") == [[row[0], row[2]] for row in rome]
    for person, sql in ((lake.columns, "select name from {s}.people"), (lake.stranger, "select id from {s}.people")):
        with pytest.raises(Refused):
            site.run(person, sql)
    assert site.run(lake.reader, "select count(*) from {s}.people") == [[3]]
    assert site.run(lake.reader, "select count(*) from {s}.people where ssn = '333-33'") == [[0]]


def test_names_and_texts_of_policies_are_quoted(site: Site) -> None:
    rows = [
        [number, *[re.sub("[0-9]", "n", re.sub("[^0-9(),.@-]", "x", text))] * len(_ODD_NAMES)]
        for number, text in enumerate(_ODD_TEXTS)
    ]
    assert site.run(site.lake.reader, "select * from {s}.odd order by id") == rows
    assert site.run(site.lake.reader, "select count(*) from {s}.odd") == [[len(_ODD_TEXTS)]]


def test_no_statement_shows_a_value_that_policies_hide(site: Site) -> None:
    for sql in WAYS:
        try:
            shown = str(site.run(site.lake.reader, sql))
        except Refused as refused:
            shown = str(refused)
        assert not [secret for secret in _SECRETS if secret in shown], (sql, shown)
        assert "Division by zero" not in shown, sql


def test_a_restricted_owner_does_not_change_rows(site: Site) -> None:
    for sql in ("delete from {s}.people", "truncate table {s}.people", "insert into {s}.people (id) values (9)"):
        with pytest.raises(Refused):
            site.run(site.lake.owner, sql)
    assert site.run(site.lake.owner, "select count(*) from {s}.people") == [[3]]


def test_rows_are_appended_where_the_policy_permits_it(site: Site) -> None:
    owner = site.lake.owner
    site.run(owner, "insert into {s}.grown values (3, 'rome', '-')")
    assert site.run(owner, "select id from {s}.grown order by 1") == [[2], [3]]
    with pytest.raises(Refused, match="row filter"):
        site.run(owner, "insert into {s}.grown values (4, 'oslo', '-')")
    with pytest.raises(Refused):
        site.run(owner, "delete from {s}.grown where id = 3")


def test_an_insert_succeeds_without_the_statistics_that_trino_commits_after_it(site: Site) -> None:
    """Trino collects statistics when it fills an empty table. An append does not permit their commit."""
    lake, policies = site.lake, Policies(site.world)
    try:
        policies.make(_POSITIVE, "table", site.table_id("empty"), append=True)
        lake.trino.run(lake.owner, f"insert into {lake.schema}.empty values 1")
        with pytest.raises(Refused, match="row filter"):
            lake.trino.run(lake.owner, f"insert into {lake.schema}.empty values -1")
        assert site.run(lake.owner, "select id from {s}.empty") == [[1]]
    finally:
        policies.delete()


def test_a_view_that_runs_as_its_owner_shows_nothing_of_a_restricted_table(site: Site) -> None:
    """Trino names the owner to the catalog, without a token of the owner: a name gets no keys."""
    lake = site.lake
    site.run(lake.owner, "create view {s}.mine as select id, name, ssn, contact from {s}.people")
    for person in (lake.reader, lake.stranger, lake.columns):
        with pytest.raises(Refused):
            site.run(person, "select * from {s}.mine")


def test_a_new_policy_restricts_the_next_statement(site: Site) -> None:
    policies = Policies(site.world)
    try:
        policies.make(
            {"kind": "row-filter", "test": {"type": "constant", "value": False}}, "table", site.table_id("people")
        )
        assert site.run(site.lake.reader, "select id from {s}.people") == []
    finally:
        policies.delete()
    assert len(site.run(site.lake.reader, "select id from {s}.people")) == 3


def _published() -> dict[str, tuple[int, int]]:
    """Return (requests to the bridge, to the gateway) of statements of a restricted user, from `docs/trino.md`."""
    text = (Path(__file__).parents[2] / "docs" / "trino.md").read_text()
    rows = re.findall(r"^\| `(.+)` \| [a-z ,]+ \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {statement: (int(bridge), int(gateway)) for statement, bridge, gateway in rows}


@pytest.mark.parametrize("sql", _published())
def test_statement_of_a_restricted_user_makes_the_documented_number_of_requests(site: Site, sql: str) -> None:
    """Only masks add requests. Trino's own columns, which the user may not read, add none."""
    lake = site.lake
    lake.trino.run(lake.reader, "select 1")
    with counted(site.world, lake) as calls:
        lake.trino.run(lake.reader, sql.format(s=lake.schema))
    assert (calls.bridge, calls.gateway) == _published()[sql]
