# SPDX-License-Identifier: Apache-2.0
"""Policies that are bound to names restrict each table that gets the name, and stay with a table that loses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.adoption import register
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import POLICY, change, loads, make, revision, target
from tests.support.stack.namespace_moves import move_namespace
from tests.support.stack.policy_files import at
from tests.support.stack.world import Person, Table, World, error_triple, send_until_decided, unique

_KEYS = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove all policies after the test."""
    yield
    world.remove_policies()
    assert world.sql("select count(*) as n from data_policy_names")[0]["n"] == 0, "names end with their bindings"


@pytest.fixture
def builder(world: World) -> Person:
    """Return a user without rights."""
    return world.stranger("builder")


@pytest.fixture
def reader(world: World) -> Person:
    """Return another user without rights."""
    return world.stranger("reader")


def space(world: World, builder: Person, reader: Person) -> str:
    """Return a namespace of the builder in which the reader may select."""
    ns = world.namespace()
    world.grant("ownership", builder, "namespace", world.namespace_id(ns))
    world.grant("select", reader, "namespace", world.namespace_id(ns))
    return ns


def named(world: World, *namespace: str, name: str) -> dict[str, Any]:
    """Return a name as a binding gives it."""
    return {"warehouse-id": world.warehouse, "namespace": list(namespace), "name": name}


def bound(world: World, ns: str, name: str = "t", **more: Any) -> dict[str, Any]:
    """Return a new policy that is bound to a name in a namespace."""
    policy = make(world, **more)
    done = bind(world, policy, named(world, ns, name=name))
    assert done.status_code == 204, done.text
    return policy


def bind(world: World, policy: dict[str, Any], *names: dict[str, Any], by: Person | None = None) -> Any:
    """Bind a policy to names."""
    body: dict[str, Any] = {"add-names": list(names)}
    return change(world, policy, by, **body)


def create(person: Person, world: World, ns: str, name: str) -> Table:
    """Create a table, and return it."""
    made = wide(world, ns, by=person)
    return rename(person, world, made, name)


def rename(person: Person, world: World, table: Table, name: str, ns: str | None = None) -> Table:
    """Rename a table, and return it under its new name."""
    to = {"namespace": [ns or table.namespace], "name": name}
    body = {"source": {"namespace": [table.namespace], "name": table.name}, "destination": to}
    done = send_until_decided(lambda: person.post(f"{world.root}/tables/rename", body))
    assert done.status_code == 204, done.text
    return at(world, ns or table.namespace, name, table)


def drop(person: Person, table: Table) -> None:
    done = send_until_decided(lambda: person.delete(f"{table.path}?purgeRequested=false"))
    assert done.status_code == 204, done.text


def keys(person: Person, table: Table) -> int:
    """Return the status of a load with credentials, or 0 if it has none."""
    answer = send_until_decided(lambda: person.get(table.path, headers=_KEYS))
    return answer.status_code if answer.status_code != 200 or answer.json().get("storage-credentials") else 0


@pytest.mark.threat("LG-DEC-38")
@pytest.mark.parametrize("order", ["drop first", "rename first"])
def test_a_swap_of_dbt_keeps_the_reader_masked(world: World, builder: Person, reader: Person, order: str) -> None:
    ns = space(world, builder, reader)
    policy = bound(world, ns)
    world.grant("exempt", builder, "data-policy", policy["id"])
    old = create(builder, world, ns, "t")
    assert keys(reader, old) == 403
    new = create(builder, world, ns, "t__dbt_tmp")
    assert keys(reader, new) == 200, "the policy is about another name"
    if order == "drop first":
        drop(builder, old)
    else:
        old = rename(builder, world, old, "t__dbt_backup")
        assert keys(reader, old) == 403, "the table keeps the policy of the name that it had"
    new = rename(builder, world, new, "t")
    assert keys(reader, new) == 403
    if order == "rename first":
        drop(builder, old)
    assert keys(reader, new) == 403
    assert keys(builder, new) == 200


@pytest.mark.threat("LG-DEC-38")
def test_a_restricted_owner_keeps_the_policy_of_a_name_by_no_change(
    world: World, builder: Person, reader: Person
) -> None:
    ns, other = space(world, builder, reader), space(world, builder, reader)
    bound(world, ns)
    for leave in ("rename", "move", "register", "register over", "namespace"):
        table = create(builder, world, ns, "t")
        assert keys(builder, table) == 403
        match leave:
            case "rename":
                table = rename(builder, world, table, unique("x"))
            case "move":
                table = rename(builder, world, table, unique("x"), other)
            case "register" | "register over":
                drop(builder, table)
                name = unique("x")
                answer = register(builder, world, other, table.answer["metadata-location"], name)
                assert answer.status_code == 200, answer.text
                table = at(world, other, name, table)
            case _:
                moved = unique("moved")
                move_namespace(world, ns, [moved])
                table = at(world, moved, "t", table)
        assert keys(builder, table) == 403, leave


@pytest.mark.threat("LG-DEC-38")
def test_a_rename_onto_a_bound_name_restricts_at_once_and_writes_a_revision(
    world: World, builder: Person, reader: Person
) -> None:
    ns = space(world, builder, reader)
    bound(world, ns, name="Gold\u00c9*")
    table = create(builder, world, ns, "free")
    before, tag = revision(world), reader.get(table.path).headers["etag"]
    table = rename(builder, world, table, "also_free")
    assert revision(world) == before, "no policy begins or ends to apply"
    assert loads(reader, table) == 200
    table = rename(builder, world, table, "gold_e")
    assert loads(reader, table) == 200, "a letter without its accent is another letter"
    table = rename(builder, world, table, "gOLDE\u0301_1")
    assert revision(world) != before
    answer = reader.get(table.path, headers={"If-None-Match": tag})
    assert answer.status_code == 403
    assert keys(reader, table) == 403


@pytest.mark.threat("LG-DEC-38")
def test_a_namespace_that_gets_a_bound_path_is_restricted(world: World, builder: Person, reader: Person) -> None:
    ns = space(world, builder, reader)
    table = create(builder, world, ns, "t")
    target_path = unique("gold")
    policy = make(world)
    assert bind(world, policy, named(world, target_path, name="?")).status_code == 204
    assert keys(reader, table) == 200
    move_namespace(world, ns, [target_path])
    assert keys(reader, at(world, target_path, "t", table)) == 403


def test_wildcards_match_inside_of_one_level_only(world: World, builder: Person, reader: Person) -> None:
    ns = space(world, builder, reader)
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "a"]})
    assert made.status_code == 200, made.text
    deep, flat = world.table(f"{ns}%1Fa", "b"), create(builder, world, ns, "a.b")
    percent, any_character = create(builder, world, ns, "x%y"), create(builder, world, ns, "xzy")
    own = unique("x")
    star = create(builder, world, ns, f"{own}*y")
    for namespace, name, covered in (
        ((ns,), "a*b", {flat.uuid}),
        ((ns,), "?.b", {flat.uuid}),
        (("*",), rf"{own}\*y", {star.uuid}),
        ((ns,), "x%y", {percent.uuid}),
        ((ns,), "X?Y", {percent.uuid, any_character.uuid}),
        ((ns, "*"), "*", {deep.uuid}),
        ((f"{ns}*",), "x_y", set()),
    ):
        policy = make(world)
        assert bind(world, policy, named(world, *namespace, name=name)).status_code == 204, (namespace, name)
        found = world.admin.get(f"{POLICY}/{policy['id']}/affected?withoutEffect=true").json()["tables"]
        assert {each["table-id"] for each in found} == covered, (namespace, name)
        for table in (flat, percent, any_character, star):
            expected = 403 if table.uuid in covered else 200
            assert loads(reader, table) == expected, (namespace, name, table.name)
        listed = world.admin.get(f"/management/v1/warehouse/{world.warehouse}/table/{flat.uuid}/data-policies").json()
        places = [place["type"] for each in listed["data-policies"] for place in each["bound-to"]]
        assert places == (["name"] if flat.uuid in covered else [])
        remove: dict[str, Any] = {
            "remove-names": [named(world, *(each.upper() for each in namespace), name=name.upper())]
        }
        assert change(world, policy, **remove).status_code == 204
        assert loads(reader, flat) == 200


def test_a_creation_under_a_bound_name_gets_no_credentials(world: World, builder: Person, reader: Person) -> None:
    ns = space(world, builder, reader)
    policy = bound(world, ns)

    def created(name: str) -> bool:
        body = {"name": name, "schema": {"type": "struct", "fields": []}}
        answer = builder.post(f"{world.root}/namespaces/{ns}/tables", body, headers=_KEYS)
        assert answer.status_code == 200, answer.text
        return bool(answer.json().get("storage-credentials"))

    assert created("other")
    assert not created("T")
    world.grant("exempt", builder, "data-policy", policy["id"])
    drop(builder, at(world, ns, "T", world.table(world.namespace())))
    assert created("t")


def test_a_name_is_bound_by_managers_of_its_deepest_existing_container(world: World, reader: Person) -> None:
    ns = world.namespace()
    manager, policy = world.stranger("manager"), make(world)
    world.grant("ownership", manager, "data-policy", policy["id"])
    below = named(world, ns, "absent", name="t")
    assert error_triple(bind(world, policy, below, by=manager))[0] == 404, "the warehouse is invisible"
    world.grant("select", manager, "namespace", world.namespace_id(ns))
    assert error_triple(bind(world, policy, below, by=manager))[0] == 403
    world.grant("manage_grants", manager, "namespace", world.namespace_id(ns))
    assert bind(world, policy, below, by=manager).status_code == 204
    for everywhere in (named(world, "*", name="t"), named(world, unique("absent"), name="t")):
        assert error_triple(bind(world, policy, everywhere, by=manager))[0] == 403
    world.grant("manage_grants", manager, "warehouse", world.warehouse)
    assert bind(world, policy, named(world, "*", name="t"), by=manager).status_code == 204
    bindings = world.admin.get(f"{POLICY}/{policy['id']}/bindings").json()["bindings"]
    assert {(each["type"], *each["namespace"], each["name"]) for each in bindings} == {
        ("name", ns, "absent", "t"),
        ("name", "*", "t"),
    }


def test_object_and_name_bindings_are_joined(world: World, builder: Person, reader: Person) -> None:
    ns = space(world, builder, reader)
    table = create(builder, world, ns, "t")
    by_name, by_object = bound(world, ns), make(world)
    assert change(world, by_object, add=[target(world, table)]).status_code == 204
    world.grant("exempt", reader, "data-policy", by_name["id"])
    assert loads(reader, table) == 403
    world.grant("exempt", reader, "data-policy", by_object["id"])
    assert loads(reader, table) == 200
