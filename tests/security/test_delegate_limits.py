# SPDX-License-Identifier: Apache-2.0
"""Limits of `delegate`: an exchanged token never reaches further than the limits of a live grant of its engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.stack.exchanging import acting, send, unsigned
from tests.support.stack.lifecycle import until
from tests.support.stack.roles import make
from tests.support.stack.world import Person, Table, World, error_triple


@pytest.fixture
def engine(world: World) -> Iterator[Person]:
    """Yield an engine without grants, and remove its grants afterwards."""
    world.strip(world.etl)
    yield world.etl
    world.strip(world.etl)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table that carol and steward may read."""
    table = world.table(ns)
    for person in (world.carol, world.steward):
        world.grant("select", person, "table", table.uuid)
    return table


def limit(world: World, engine: Person, acts_for: dict[str, Any] | None, *, by: Person | None = None) -> None:
    """Grant `delegate` on the warehouse with these limits, in place of the grantor's former ones."""
    entry = {"privilege": "delegate", "principal": {"user": engine.id}}
    entry |= {} if acts_for is None else {"acts-for": acts_for}
    path = f"/management/v1/warehouse/{world.warehouse}/grants"
    answer = (by or world.admin).post(path, {"writes": [entry]})
    assert answer.status_code == 204, answer.text


def refused(world: World, engine: Person, user: Person, *, proven: bool = True) -> None:
    """Assert that the engine gets no token for the user."""
    token = user.token if proven else unsigned(user.id.partition("~")[2])
    answer: httpx.Response = send(world, engine.token, subject_token=token)
    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client"), answer.text


def hidden(person: Person, table: Table) -> None:
    """Assert that each way to the table gets the answer of an absent one."""
    for path in (table.path, f"{table.path}/credentials"):
        assert error_triple(person.get(path))[:2] == (404, "NoSuchTableException"), path
    write = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert error_triple(person.post(table.path, write))[0] == 404


def recorded(world: World, user: Person, word: str) -> None:
    """Assert that the audit record of a refused request of the user names the limit with this word."""

    def found() -> bool:
        rows = world.sql(
            "select convert_from(record, 'UTF8')::jsonb #>> '{decisions,0,policy_reasons,0}' as reason from audit_log "
            "where actor_id = $1 and convert_from(record, 'UTF8')::jsonb #>> '{decisions,0,failure}' = "
            "'OutsideDelegateLimits'",
            user.id,
        )
        return any(word in row["reason"] for row in rows)

    until(found, f"an audit record with {word!r}")


@pytest.mark.threat("LG-DEC-20")
def test_new_grant_excludes_administrators_and_an_explicit_flag_includes_them(
    world: World, engine: Person, table: Table
) -> None:
    limit(world, engine, None)
    assert acting(world, engine, world.carol).get(table.path).status_code == 200
    for proven in (True, False):
        refused(world, engine, world.admin, proven=proven)
    limit(world, engine, {"administrators": True})
    assert acting(world, engine, world.admin).get(table.path).status_code == 200


@pytest.mark.parametrize("privilege", ["ownership", "manage_grants", "project_admin", "security_admin", "admin"])
def test_user_that_becomes_an_administrator_is_excluded_from_the_next_request(
    world: World, engine: Person, table: Table, privilege: str
) -> None:
    limit(world, engine, None)
    person = world.stranger()
    world.grant("select", person, "table", table.uuid)
    exchanged = acting(world, engine, person)
    assert exchanged.get(table.path).status_code == 200
    kind, id = {
        "project_admin": ("project", world.project),
        "security_admin": ("project", world.project),
        "admin": ("server", ""),
    }.get(privilege, ("warehouse", world.warehouse))
    world.grant(privilege, person, kind, id)
    try:
        hidden(exchanged, table)
        refused(world, engine, person)
        assert person.get(table.path).status_code == 200, "the user's own token must keep its rights"
        recorded(world, person, "administrator")
    finally:
        world.revoke(privilege, person, kind, id)
    assert exchanged.get(table.path).status_code == 200


def test_administrator_by_role_is_excluded_also_while_it_assumes_another_role(
    world: World, engine: Person, table: Table
) -> None:
    limit(world, engine, None)
    person = world.stranger()
    administrators, readers = make(world), make(world)
    for role in (administrators, readers):
        path = f"/management/v1/permissions/role/{role['id']}/assignments"
        assert world.admin.post(path, {"writes": [{"type": "assignee", "user": person.id}]}).status_code == 204
    reading = {"writes": [{"type": "select", "role": readers["id"]}]}
    assert world.admin.post(world.grants_path("table", table.uuid), reading).status_code == 204
    exchanged = acting(world, engine, person)
    assumed = {"x-assume-role": readers["id"]}
    assert exchanged.get(table.path, headers=assumed).status_code == 200
    managing = {"writes": [{"type": "manage_grants", "role": administrators["id"]}]}
    assert world.admin.post(world.grants_path("warehouse", world.warehouse), managing).status_code == 204
    assert exchanged.get(table.path, headers=assumed).status_code == 404
    hidden(exchanged, table)
    for role in (administrators, readers):
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


@pytest.mark.threat("LG-DEC-20")
def test_narrower_limits_refuse_a_token_that_was_issued_before(world: World, engine: Person, table: Table) -> None:
    limit(world, engine, {"users": [world.carol.id, world.steward.id]})
    carol, steward = acting(world, engine, world.carol), acting(world, engine, world.steward)
    for person in (carol, steward):
        assert person.get(f"{table.path}/credentials").status_code == 200
    limit(world, engine, {"users": [world.carol.id]})
    assert carol.get(f"{table.path}/credentials").status_code == 200
    hidden(steward, table)
    refused(world, engine, world.steward)
    recorded(world, world.steward, "names the user")
    world.revoke("delegate", engine, "warehouse", world.warehouse)
    hidden(carol, table)


@pytest.mark.threat("LG-DEC-20")
@pytest.mark.parametrize("kind", ["warehouse", "project"])
def test_narrower_limits_change_the_revision_on_which_requests_in_progress_rest(
    world: World, engine: Person, kind: str
) -> None:
    """A request that was admitted before is decided again before its commit only if the revision has changed."""
    rows = {"warehouse": ("warehouses", world.warehouse), "project": ("server", None)}[kind]

    def revision() -> str:
        found = world.sql(f"select revision::text, id::text from {rows[0]}")
        return next(str(row["revision"]) for row in found if rows[1] in (None, row["id"]))

    below = f"warehouse/{world.warehouse}" if kind == "warehouse" else "project"
    for limits in ({"users": [world.carol.id, world.steward.id]}, {"users": [world.carol.id]}):
        before = revision()
        entry = {"privilege": "delegate", "principal": {"user": engine.id}, "acts-for": limits}
        answer = world.admin.post(f"/management/v1/{below}/grants", {"writes": [entry]})
        assert answer.status_code == 204, answer.text
    assert revision() != before, "the last grant excludes the steward"


def test_role_in_the_limits_includes_its_members_alone(world: World, engine: Person, table: Table) -> None:
    outer, inner = make(world), make(world)

    def member(of: dict[str, Any], change: str, **who: str) -> None:
        path = f"/management/v1/permissions/role/{of['id']}/assignments"
        answer = world.admin.post(path, {change: [{"type": "assignee", **who}]})
        assert answer.status_code == 204, answer.text

    member(outer, "writes", role=inner["id"])
    member(inner, "writes", user=world.carol.id)
    limit(world, engine, {"roles": [outer["id"]]})
    carol = acting(world, engine, world.carol)
    assert carol.get(table.path).status_code == 200
    refused(world, engine, world.steward)
    member(inner, "deletes", user=world.carol.id)
    hidden(carol, table)
    for role in (inner, outer):
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_grants_of_several_grantors_are_a_union_and_each_ends_alone(world: World, engine: Person, table: Table) -> None:
    manager = world.stranger()
    world.grant("security_admin", manager, "project", world.project)
    limit(world, engine, {"users": [world.carol.id]})
    limit(world, engine, {"users": [world.steward.id]}, by=manager)
    carol, steward = acting(world, engine, world.carol), acting(world, engine, world.steward)
    for person in (carol, steward):
        assert person.get(table.path).status_code == 200
    listed = world.admin.get(f"/management/v1/warehouse/{world.warehouse}/grants").json()["grants"]
    own = [each for each in listed if each["privilege"] == "delegate" and each["principal"] == {"user": engine.id}]
    limits = [each["acts-for"] for each in own]
    assert sorted(each["users"][0] for each in limits) == sorted([world.carol.id, world.steward.id])
    limit(world, engine, {"users": [world.bob.id]}, by=manager)
    assert carol.get(table.path).status_code == 200
    hidden(steward, table)
    world.revoke("security_admin", manager, "project", world.project)


def test_owner_of_a_warehouse_is_excluded_there_alone(world: World, engine: Person, table: Table) -> None:
    """A grant on the project covers all its warehouses, and each request is decided for its own warehouse."""
    path = world.grants_path("project", world.project)
    assert world.admin.post(path, {"writes": [{"type": "delegate", "user": engine.id}]}).status_code == 204
    carol = acting(world, engine, world.carol)
    assert carol.get(table.path).status_code == 200
    world.grant("ownership", world.carol, "warehouse", world.warehouse)
    try:
        hidden(carol, table)
    finally:
        world.revoke("ownership", world.carol, "warehouse", world.warehouse)


@pytest.mark.threat("LG-DEC-20")
def test_request_from_another_network_is_refused(world: World, engine: Person, table: Table) -> None:
    limit(world, engine, {"networks": ["127.0.0.0/8", "::1/128"]})
    carol = acting(world, engine, world.carol)
    assert carol.get(table.path).status_code == 200
    limit(world, engine, {"networks": ["192.0.2.0/24"]})
    hidden(carol, table)
    refused(world, engine, world.carol)
    recorded(world, world.carol, "network")
    forwarded = carol.get(table.path, headers={"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1"})
    assert forwarded.status_code == 404, "a client must not choose its address by a header"


def test_grant_of_an_earlier_version_keeps_its_meaning_and_unreadable_limits_permit_no_user(
    world: World, engine: Person, table: Table
) -> None:
    limit(world, engine, None)
    change = "update grants set acts_for = $1 where privilege = 'delegate' and principal_id = $2"
    world.sql(change, '{"administrators":true}', engine.id)
    admin = acting(world, engine, world.admin)
    assert admin.get(table.path).status_code == 200
    assigned = world.admin.get(world.grants_path("warehouse", world.warehouse)).json()["assignments"]
    assert {"type": "delegate", "user": engine.id, "acts-for": {"administrators": True}} in assigned
    world.sql(change, '{"administrators":true,"later":1}', engine.id)
    hidden(admin, table)
    refused(world, engine, world.carol)


def test_limits_belong_to_new_grants_of_delegate(world: World, engine: Person) -> None:
    path = world.grants_path("warehouse", world.warehouse)
    for change, text in (
        ({"writes": [{"type": "select", "acts-for": {}}]}, "limits `delegate` only"),
        ({"writes": [{"type": "delegate", "acts-for": {"networks": ["10.0.0.1/8"]}}]}, "is not a network"),
        ({"writes": [{"type": "delegate", "acts-for": {"users": []}}]}, "users"),
        ({"writes": [{"type": "delegate", "acts-for": {"everyone": True}}]}, "everyone"),
    ):
        body = {name: [{**entry, "user": engine.id} for entry in entries] for name, entries in change.items()}
        answer = world.admin.post(path, body)
        assert answer.status_code == 400, answer.text
        assert text in answer.text


def test_entry_of_the_list_revokes_the_grant_whatever_its_limits(world: World, engine: Person, table: Table) -> None:
    path = world.grants_path("warehouse", world.warehouse)
    limit(world, engine, {"users": [world.carol.id]})
    carol = acting(world, engine, world.carol)
    assert carol.get(table.path).status_code == 200
    listed = [each for each in world.admin.get(path).json()["assignments"] if each.get("user") == engine.id]
    assert listed == [
        {"type": "delegate", "user": engine.id, "acts-for": {"users": [world.carol.id], "administrators": False}}
    ]
    assert world.admin.post(path, {"deletes": listed}).status_code == 204
    hidden(carol, table)
