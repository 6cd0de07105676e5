# SPDX-License-Identifier: Apache-2.0
"""Statements of several users on a real Trino, which asks the bridge for permission and acts for the users at the
catalog.

Opt-in by `make test-trino`, which sets LAKEGATE_TEST_TRINO: see `tests/support/engines/trino.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.engines.trino import Refused
from tests.support.engines.trino_calls import Calls, counted, pytestmark
from tests.support.engines.trino_cells import CELLS, Cell, Names, allowed
from tests.support.engines.trino_lake import Lake
from tests.support.stack.exchanging import ACCESS_TOKEN, unsigned
from tests.support.stack.world import Person, World, unique

__all__ = ["pytestmark"]


def _made_for(world: World, lake: Lake, sql: str) -> Names:
    """Create, as the manager, the objects that this statement needs."""
    table = view = below = ""
    if "{t}" in sql or "{tn}" in sql:
        table = world.table(lake.schema).name
    if "{v}" in sql:
        view = unique("v")
        lake.trino.run(world.admin, f"create view {lake.schema}.{view} security invoker as select 1 a")
    if "{f}" in sql:
        below = unique("below")
        made = world.admin.post(f"{world.root}/namespaces", {"namespace": [lake.schema, below]})
        assert made.status_code == 200, made.text
    return Names(lake.schema, table, view, below)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_trino_enforces_the_gateways_decision_for_each_user(world: World, lake: Lake, cell: Cell) -> None:
    """Run the statement as unprivileged users first: after the owner's run its objects may be dropped."""
    found, expected = {}, {}
    for name, person in lake.people.items():
        names = _made_for(world, lake, cell.sql)
        statement = cell.sql.format(
            s=lake.schema,
            t=f"{lake.schema}.{names.table}",
            tn=names.table,
            v=f"{lake.schema}.{names.view}",
            f=f'"{lake.schema}.{names.below}"',
            n=unique("new"),
            old=lake.snapshots[0],
            new=lake.snapshots[1],
        )
        expected[name] = allowed(world, world.etl, person, cell.needs, names)
        found[name] = lake.may(person, statement)
    assert found == expected
    assert not found["stranger"]


def test_rows_are_read_as_written(lake: Lake) -> None:
    rows = lake.trino.run(lake.reader, f"select id, region from {lake.schema}.orders where id < 3 order by id")
    assert rows == [[1, "EU"], [2, "US"]]
    assert lake.trino.run(lake.other, f"select * from {lake.schema}.lent order by 1")[0] == ["EU"]


def test_a_definer_view_lends_nothing_to_an_ownerless_view_below_it(world: World, lake: Lake) -> None:
    """Trino would read the inner view's tables as the owner of the outer view, and sends the bridge no view chain."""
    name = unique("nested")
    for sql in (
        f"create view {lake.schema}.{name}_in security invoker as select region from {lake.schema}.orders",
        f"create view {lake.schema}.{name}_own as select region from {lake.schema}.orders",
        f"create view {lake.schema}.{name} as select region from {lake.schema}.{name}_in",
        f"create view {lake.schema}.{name}_chain as select region from {lake.schema}.{name}_own",
    ):
        lake.trino.run(lake.owner, sql)
    for outer in (name, f"{name}_chain"):
        view = world.admin.get(f"{world.root}/namespaces/{lake.schema}/views/{outer}").json()
        world.grant("select", lake.other, "view", view["metadata"]["view-uuid"])
    assert lake.may(lake.owner, f"select * from {{s}}.{name}"), "the owner must read with its own rights"
    assert not lake.may(lake.other, f"select * from {{s}}.{name}")
    assert lake.may(lake.other, f"select * from {{s}}.{name}_chain"), (
        "the inner view must run with the rights of its own owner"
    )


def test_lists_hold_the_objects_visible_to_each_user(lake: Lake) -> None:
    def listed(person: Person, sql: str) -> set[str]:
        return {name for (name,) in lake.trino.run(person, sql.format(s=lake.schema))}

    for person in (lake.owner, lake.reader, lake.other):
        assert lake.schema in listed(person, "show schemas from ice")
    assert {"orders", "lent", "shared"} <= listed(lake.reader, "show tables from {s}")
    # The views of the nested-views test are visible to this user and stay until the end of the module.
    seen = {name for name in listed(lake.other, "show tables from {s}") if not name.startswith("nested_")}
    assert seen == {"lent"}


# ---- Trino acts for its users by tokens that it exchanges ------------------------------------------------------------


def test_trino_without_delegate_acts_for_no_user(world: World, lake: Lake) -> None:
    """The rule applies within a session too: the token that Trino already holds loses its effect."""
    reading, source = "select id from {s}.orders", unique("session")
    assert lake.may(lake.reader, reading, source=source)
    world.revoke("delegate", lake.service, "warehouse", world.warehouse)
    try:
        assert not lake.may(lake.reader, reading, source=source), "a session without delegate must be refused"
        with pytest.raises(Refused):
            lake.trino.run(lake.reader, reading.format(s=lake.schema))
        own = {"token": lake.reader.token}
        assert lake.may(lake.reader, reading, extra=own), "the user's own token must suffice without delegate"
    finally:
        world.grant("delegate", lake.service, "warehouse", world.warehouse)
    assert lake.may(lake.reader, reading, source=source)


def test_the_bearer_of_a_user_as_extra_credential_has_the_users_rights(lake: Lake) -> None:
    for name, may in (("stranger", False), ("reader", True), ("owner", True)):
        person = lake.people[name]
        for way in ("token", ACCESS_TOKEN):
            # Under its own name Trino sends the token to the catalog unchanged; under the other name Trino exchanges
            # it.
            assert lake.may(person, "select id from {s}.orders", extra={way: person.token}) is may, (name, way)


@pytest.mark.parametrize("name", [ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:id_token", "token"])
def test_user_cannot_choose_the_user_trino_acts_for(world: World, lake: Lake, name: str) -> None:
    """Extra credentials reach the catalog before Trino's own claim. A bare user name is not a valid token."""
    forged = {name: unsigned(lake.owner.id.removeprefix("oidc~"))}
    before = world.sql("select count(*) as n from tables where name like 'forged%'")[0]["n"]
    for person in (lake.reader, lake.stranger):
        with pytest.raises(Refused):
            lake.trino.run(person, f"create table {lake.schema}.{unique('forged')} (id bigint)", extra=forged)
        with pytest.raises(Refused):
            lake.trino.run(person, f"select id from {lake.schema}.orders", extra=forged)
    # The bridge allows the owner everything, so the refusal comes from the catalog.
    with pytest.raises(Refused):
        lake.trino.run(lake.owner, f"create table {lake.schema}.{unique('forged')} (id bigint)", extra=forged)
    assert world.sql("select count(*) as n from tables where name like 'forged%'")[0]["n"] == before


def test_session_user_cannot_be_switched(lake: Lake) -> None:
    """Trino would keep the session under the original user's name, with the token of the user that opened it."""
    source = unique("lent")
    assert not lake.may(lake.owner, "set session authorization analyst", source=source)
    assert not lake.may(lake.reader, "insert into {s}.orders values (8, 'EU', '8')", source=source)
    assert lake.may(lake.reader, "select id from {s}.orders", source=source)


# ---- rights of views -------------------------------------------------------------------------------------------------


def test_view_is_read_with_its_owners_current_rights(world: World, lake: Lake) -> None:
    """A user with a grant on the view alone reads it; when its owner loses the right to grant, no user can."""
    namespace = world.namespace_id(lake.schema)
    assert not lake.may(lake.other, "select id from {s}.orders")
    assert lake.may(lake.other, "select * from {s}.lent")
    world.revoke("ownership", lake.owner, "namespace", namespace)
    world.strip(lake.owner)
    try:
        assert not lake.may(lake.other, "select * from {s}.lent")
        world.grant("select", lake.owner, "namespace", namespace)
        assert not lake.may(lake.other, "select * from {s}.lent"), (
            "an owner without a grant right must not lend its right through a view"
        )
    finally:
        world.grant("ownership", lake.owner, "namespace", namespace)
    assert lake.may(lake.other, "select * from {s}.lent")


def test_view_lends_only_rights_its_owner_may_grant(world: World, lake: Lake) -> None:
    """The reader may create views but not grant: a view that runs with the reader's rights works for no other user."""
    namespace = world.namespace_id(lake.schema)
    world.grant("create", lake.reader, "namespace", namespace)
    name = unique("lent")
    try:
        assert lake.may(lake.reader, f"create view {{s}}.{name} as select region from {{s}}.orders")
        assert lake.may(lake.reader, f"select * from {{s}}.{name}")
        made = world.admin.get(f"{world.root}/namespaces/{lake.schema}/views/{name}").json()
        world.grant("select", lake.stranger, "view", made["metadata"]["view-uuid"])
        assert not lake.may(lake.stranger, f"select * from {{s}}.{name}")
    finally:
        world.revoke("create", lake.reader, "namespace", namespace)
        world.strip(lake.stranger)


def test_revoked_right_is_refused_at_the_next_statement(world: World, lake: Lake) -> None:
    namespace, source = world.namespace_id(lake.schema), unique("session")
    assert not lake.may(lake.stranger, "select * from {s}.orders", source=source)
    world.grant("select", lake.stranger, "namespace", namespace)
    assert lake.may(lake.stranger, "select * from {s}.orders", source=source)
    world.revoke("select", lake.stranger, "namespace", namespace)
    assert not lake.may(lake.stranger, "select * from {s}.orders", source=source)


# ---- cost of a statement ---------------------------------------------------------------------------------------------


def _published() -> dict[str, Calls]:
    """Return the table of `docs/trino.md`: the cost for the owner in a new session, including the token exchange."""
    text = (Path(__file__).parents[2] / "docs" / "trino.md").read_text()
    rows = re.findall(r"^\| `(.+)` \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {statement: Calls(*map(int, counts)) for statement, *counts in rows}


COSTS = _published()


@pytest.mark.parametrize("sql", COSTS)
def test_statement_makes_a_bounded_number_of_calls(world: World, lake: Lake, sql: str) -> None:
    lake.may(lake.owner, "select 1")
    with counted(world, lake) as calls:
        assert lake.may(lake.owner, sql)
    assert (calls.bridge, calls.gateway) == (COSTS[sql].bridge, COSTS[sql].gateway)
    # Trino reports its scan to the catalog afterwards; that request may arrive after the count.
    assert calls.catalog in (COSTS[sql].catalog, COSTS[sql].catalog - 1)
