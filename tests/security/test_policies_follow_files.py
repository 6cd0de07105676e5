# SPDX-License-Identifier: Apache-2.0
"""Data policies stay with a table and its files: no owner lifts one by a move or another registration."""

from __future__ import annotations

import pytest

from tests.support.stack.columns import evolve, wide
from tests.support.stack.data_policies import POLICY, change, loads, make, target
from tests.support.stack.policy_files import again, at, clean, owner
from tests.support.stack.tags import TAG, attach, define, tags_path
from tests.support.stack.world import Person, Table, World, error_triple, unique

__all__ = ["clean", "owner"]


def owned(world: World, owner: Person) -> tuple[str, Table]:
    """Return a namespace of the owner, with its table."""
    ns = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    return ns, wide(world, ns, by=owner)


@pytest.mark.parametrize("level", ["table", "namespace", "tag", "tag of the namespace"])
def test_files_of_a_dropped_table_are_registered_with_its_policies(world: World, owner: Person, level: str) -> None:
    ns, table = owned(world, owner)
    policy = make(world, {"kind": "mask", "action": "replace-with-null"})
    tag = define(world)
    bound = {
        "table": target(world, table),
        "namespace": {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse},
    }.get(level, {"type": "tag", "id": tag["id"]})
    assert change(world, policy, add=[bound]).status_code == 204
    if level == "tag":
        assert attach(world, tag, tags_path(world, "table", table.uuid, "name")).status_code < 300
    if level == "tag of the namespace":
        assert attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns))).status_code < 300
    assert loads(owner, table) == 403
    assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    assert loads(owner, again(world, owner, table)) == 403


def test_a_table_keeps_the_policies_of_the_namespace_that_it_leaves(world: World, owner: Person) -> None:
    ns, table = owned(world, owner)
    policy = make(world)
    bound = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    elsewhere = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(elsewhere))
    names = {"source": {"namespace": [ns], "name": table.name}, "destination": {"namespace": [elsewhere], "name": "t"}}
    assert owner.post(f"{world.root}/tables/rename", names).status_code == 204
    assert loads(owner, at(world, elsewhere, "t", table)) == 403
    bindings = world.admin.get(f"{POLICY}/{policy['id']}/bindings").json()["bindings"]
    assert {each["type"] for each in bindings} == {"namespace", "table"}
    lifted = {"type": "table", "id": table.uuid, "warehouse-id": world.warehouse}
    assert change(world, policy, remove=[lifted]).status_code == 204
    assert loads(owner, at(world, elsewhere, "t", table)) == 200, "the manager of the policy lifts it"


def test_a_namespace_keeps_the_policies_of_the_one_that_it_leaves(world: World, owner: Person) -> None:
    ns, _ = owned(world, owner)
    inner = f"{ns}%1Finner"
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "inner"]})
    assert made.status_code == 200, made.text
    table = world.table(inner, by=owner)
    id = world.sql("select namespace_id::text as id from tables where id = $1::text::uuid", table.uuid)[0]["id"]
    policy = make(world, {"kind": "mask", "action": "replace-with-null"})
    bound = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    assert loads(owner, table) == 403
    elsewhere = world.namespace()
    body = {"destination": [elsewhere, "inner"]}
    moved = world.admin.post(f"/management/v1/warehouse/{world.warehouse}/namespace/{id}/move", body)
    assert moved.status_code < 300, moved.text
    assert loads(owner, at(world, f"{elsewhere}%1Finner", table.name, table)) == 403


def test_what_is_kept_for_files_ends_with_their_record(world: World, owner: Person) -> None:
    _, table = owned(world, owner)
    policy = make(world)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    count = "select count(*) as n from data_policy_bindings where object_id = $1::text::uuid"
    assert world.sql(count, table.uuid)[0]["n"] == 1
    world.sql("delete from retired_locations where table_id = $1::text::uuid", table.uuid)
    assert world.sql(count, table.uuid)[0]["n"] == 0


def test_the_owner_of_a_tag_does_not_lift_a_policy_by_another_name(world: World, owner: Person) -> None:
    _, table = owned(world, owner)
    tag = define(world)
    world.grant("ownership", owner, "tag", tag["id"])
    definition = {"kind": "mask", "action": "replace-with-null", "columns": [{"tag": tag["name"].upper()}]}
    policy = make(world, definition)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert loads(owner, table) == 200, "the table does not carry the tag"
    assert attach(world, tag, tags_path(world, "table", table.uuid, "name")).status_code < 300
    assert loads(owner, table) == 403, "the letter case of the name does not matter"
    other = {"name": unique("other"), "scope": tag["scope"]}
    assert owner.post(f"{TAG}/{tag['id']}", other).status_code == 200
    assert owner.post(f"{TAG}/{tag['id']}", other).status_code == 200
    assert loads(owner, table) == 403, "the policy means the tag, whatever its name is"
    shown = world.admin.get(f"{POLICY}/{policy['id']}").json()["definition"]["columns"]
    assert shown == [{"tag": other["name"]}], "the policy is shown as it applies"
    later, plain = define(world, name=tag["name"]), wide(world, table.namespace, by=owner)
    assert change(world, policy, add=[target(world, plain)]).status_code == 204
    assert attach(world, later, tags_path(world, "table", plain.uuid, "name")).status_code < 300
    assert loads(owner, plain) == 200, "a later tag of the name does not stand for it"
    gone = world.admin.delete(f"{TAG}/{tag['id']}")
    assert error_triple(gone)[:2] == (409, "TagDefinitionInUse")
    unused = define(world)
    make(world, {**definition, "columns": [{"tag": unused["name"]}]})
    gone = world.admin.delete(f"{TAG}/{unused['id']}")
    assert error_triple(gone)[:2] == (409, "TagDefinitionInUse"), "no later tag stands for it"
    assert loads(owner, table) == 403
    late = define(world)
    world.grant("ownership", owner, "tag", late["id"])
    policy = make(world, {**definition, "columns": [{"tag": "renamed." + tag["name"]}]})
    plain = wide(world, table.namespace, by=owner)
    assert change(world, policy, add=[target(world, plain)]).status_code == 204
    assert attach(world, late, tags_path(world, "table", plain.uuid, "name")).status_code < 300
    assert loads(owner, plain) == 200
    renamed = {"name": "renamed." + tag["name"], "scope": late["scope"]}
    assert world.admin.post(f"{TAG}/{late['id']}", renamed).status_code == 200
    assert loads(owner, plain) == 403, "the new name applies with the response"
    again = world.admin.post(f"{TAG}/{late['id']}", {"name": unique("again"), "scope": late["scope"]})
    assert error_triple(again)[:2] == (409, "TagDefinitionInUse"), (
        "the policy was written before and knows the name only"
    )


def test_a_column_keeps_the_names_that_a_registered_older_file_does_not_have(world: World, owner: Person) -> None:
    ns, table = owned(world, owner)
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "nickname", "type": "string", "required": False},
        {"id": 3, "name": "card", "type": "string", "required": True},
    ]
    evolve(world, table, fields, 5)
    policy = make(world, {"kind": "mask", "action": "replace-with-null", "columns": [{"name": "nickname"}]})
    bound = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    assert loads(owner, table) == 403
    assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    older = again(world, owner, table)
    assert loads(owner, older) == 403, "in the older file the column has its first name"
    lifted = {"type": "table", "id": _id_at(world, older), "warehouse-id": world.warehouse}
    assert change(world, policy, remove=[lifted]).status_code == 204
    assert loads(owner, older) == 200


def _id_at(world: World, table: Table) -> str:
    """Return the id of the row of a registered table, which differs from its UUID."""
    statement = "select id::text as id from tables where name = $1 and kind = 'table'"
    found: str = world.sql(statement, table.name)[0]["id"]
    return found
