# SPDX-License-Identifier: Apache-2.0
"""Attacks on decisions for policy enforcement points: properties that claim rights, and questions without the right."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.authzen import EVALUATION, EVALUATIONS, SEARCH, action, evaluate, resource, search, subject
from tests.support.stack.role_policies import contractors, make_role, put_in
from tests.support.stack.world import Person, Table, World

CLAIMS: list[dict[str, Any]] = [
    {"role": "admin", "roles": ["admin"], "groups": ["admin"], "admin": True},
    {"id": "oidc~admin", "kind": "system", "assumed_role": "admin", "instance_admin": True},
    {"ownership": True, "select": True, "manage_grants": True, "allow": True, "decision": True},
    {"facts": {"allow": True}, "resource": {"type": "server"}, "obligations": {}, "denials": None},
    {"deep": {"er": [{"role": "admin"}] * 20}, "big": 10**30, "float": 1e300, "none": None, "": ""},
]


def _everywhere(body: dict[str, Any], claims: dict[str, Any]) -> dict[str, Any]:
    return {name: {**part, "properties": claims} for name, part in body.items()} | {"context": claims}


@pytest.fixture(scope="module")
def table(world: World) -> Table:
    return world.table(world.namespace())


@pytest.fixture(scope="module")
def inspector(world: World) -> Person:
    asker = world.stranger("inspector")
    world.grant("inspector", asker, "warehouse", world.warehouse)
    return asker


@pytest.mark.threat("LG-DEC-49")
@pytest.mark.parametrize("claims", CLAIMS)
def test_properties_widen_no_decision(world: World, table: Table, claims: dict[str, Any]) -> None:
    person, on = world.stranger(), resource(world, table)
    for asker in (person, world.admin):
        for name in ("read_data", "drop", "get_metadata"):
            body = {"subject": subject(person), "action": action(name), "resource": on}
            claimed = _everywhere(body, claims)
            answer = asker.post(EVALUATION, claimed)
            assert answer.json() == {"decision": False}, answer.text
            batch = asker.post(EVALUATIONS, {"evaluations": [claimed]})
            assert batch.json() == {"evaluations": [{"decision": False}]}
        assert search(asker, "action", **_everywhere({"subject": subject(person), "resource": on}, claims)) == []
        searched: dict[str, Any] = {"subject": {"type": "user"}, "action": action("read_data"), "resource": on}
        assert person.id not in search(asker, "subject", **_everywhere(searched, claims))
    world.grant("select", person, "table", table.uuid)
    readable = _everywhere({"subject": subject(person), "action": action("read_data"), "resource": on}, claims)
    assert world.admin.post(EVALUATION, readable).json() == {"decision": True}, "nor do they take a right away"


@pytest.mark.threat("LG-DEC-49")
def test_properties_lift_no_denial_about_the_subject(world: World, table: Table) -> None:
    """The guardrail for contractors reads the roles that the gateway knows."""
    person, role, on = world.stranger(), make_role(world), resource(world, table)
    put_in(world, role, "user", person.id)
    world.grant("select", person, "table", table.uuid)
    assert evaluate(world.admin, subject(person), "read_data", on)
    with contractors(world, role):
        claims: tuple[dict[str, Any], ...] = (
            {},
            {"roles": []},
            {"id": world.admin.id, "roles": [], "assumed_role": None},
        )
        for properties in claims:
            assert not evaluate(world.admin, subject(person, **properties), "read_data", on, **properties)


@pytest.mark.threat("LG-DEC-49")
@pytest.mark.parametrize("size", [16_384, 300_000])
def test_large_and_deep_properties_are_400(world: World, table: Table, size: int) -> None:
    body = {"subject": subject(world.alice), "action": action("read_data"), "resource": resource(world, table)}
    assert world.admin.post(EVALUATION, {**body, "context": {"text": "x" * size}}).status_code == 400
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"x": nested}
    assert world.admin.post(EVALUATION, {**body, "context": nested}).status_code == 400
    many = [{**body, "context": {"text": "x" * 16_000}}] * 20
    assert world.admin.post(EVALUATIONS, {"evaluations": many}).status_code == 400
    assert world.admin.post(EVALUATIONS, {"evaluations": [body] * 1001}).status_code == 400


@pytest.mark.threat("LG-DIS-29")
def test_a_caller_without_the_right_learns_nothing(world: World, table: Table) -> None:
    """Compare the answers about an existing and an absent table, for an outsider and for a reader of the table."""
    holder, outsider, reader = (world.stranger() for _ in range(3))
    for person in (holder, reader):
        world.grant("select", person, "table", table.uuid)
    there = f"{world.warehouse}/{table.uuid}"
    named = f"{world.warehouse}/{table.namespace}/{table.name}"
    absent = [f"{world.warehouse}/{uuid4()}", f"{uuid4()}/{uuid4()}", f"{world.warehouse}/{table.namespace}/none"]
    for asker in (outsider, reader):
        answers = set()
        for id in (there, named, *absent):
            on = {"type": "table", "id": id}
            body = {"subject": subject(holder), "action": action("read_data"), "resource": on}
            got = [
                asker.post(EVALUATION, body),
                asker.post(EVALUATIONS, {"evaluations": [body, body]}),
                asker.post(f"{SEARCH}action", {"subject": subject(holder), "resource": on}),
                asker.post(f"{SEARCH}subject", {**body, "subject": {"type": "role"}}),
            ]
            answers.add(tuple((each.status_code, each.text) for each in got))
        assert len(answers) == 1, answers
        assert next(iter(answers))[0] == (200, '{"decision":false}')
    assert (
        search(outsider, "resource", subject=subject(holder), action=action("read_data"), resource={"type": "table"})
        == []
    )
    everything: dict[str, Any] = {
        "subject": {"type": "user"},
        "action": action("read_data"),
        "resource": {"type": "table", "id": there},
    }
    assert search(outsider, "subject", **everything) == []
    assert search(reader, "subject", **everything) == [reader.id], "it may know its own right"
    assert holder.id in search(world.admin, "subject", **everything)


@pytest.mark.threat("LG-DIS-29")
def test_answers_end_where_the_right_to_ask_ends(world: World) -> None:
    """A grant manager of one namespace finds the rights there, also page by page, and none elsewhere."""
    mine, other = world.namespace(), world.namespace()
    manager, holder = world.stranger(), world.stranger()
    world.grant("manage_grants", manager, "namespace", world.namespace_id(mine))
    tables = {name: [world.table(name) for _ in range(3)] for name in (mine, other)}
    for some in tables.values():
        for each in some:
            world.grant("select", holder, "table", each.uuid)
    asked: dict[str, Any] = {"subject": subject(holder), "action": action("read_data"), "resource": {"type": "table"}}
    expected = {f"{world.warehouse}/{each.uuid}" for each in tables[mine]}
    for limit in (None, 1, 2):
        assert set(search(manager, "resource", limit=limit, **asked)) == expected
    first = manager.post(f"{SEARCH}resource", {**asked, "page": {"limit": 3}}).json()
    assert len(first["results"]) == 3 and first["page"]["next_token"] == "", "no page shows what is hidden"
    assert not evaluate(manager, subject(holder), "read_data", resource(world, tables[other][0]))
    assert search(manager, "action", subject=subject(holder), resource=resource(world, tables[other][0])) == []


@pytest.mark.threat("LG-DIS-29")
def test_an_inspector_of_a_warehouse_asks_about_nothing_above_it(world: World, inspector: Person, table: Table) -> None:
    holder = world.stranger()
    world.grant("select", holder, "table", table.uuid)
    project = {"type": "project", "id": world.project}
    assert evaluate(inspector, subject(holder), "read_data", resource(world, table))
    assert evaluate(world.admin, subject(holder), "get_metadata", project)
    assert not evaluate(inspector, subject(holder), "get_metadata", project)
    assert search(inspector, "resource", subject=subject(holder), action=action("get_metadata"), resource=project) == []
