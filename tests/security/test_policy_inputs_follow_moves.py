# SPDX-License-Identifier: Apache-2.0
"""Tags that data policies name stay with whatever moves: no owner leaves a policy by leaving a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack.adoption import register
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import change, loads, make
from tests.support.stack.policy_files import again, at, clean, owner
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.world import Person, Table, World, send_until_decided

__all__ = ["clean", "owner"]

_BELOW = "%1F"


def named(tag: dict[str, Any]) -> dict[str, Any]:
    """Return a mask of the columns with this tag, which names the tag."""
    return {"kind": "mask", "action": "mask-to-fixed-value", "columns": [{"tag": tag["name"]}]}


def own_namespace(world: World, owner: Person) -> str:
    """Create a namespace of the owner."""
    ns = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    return ns


def renamed(world: World, owner: Person, ns: str, table: Table) -> Table:
    """Rename the table into another namespace of its owner."""
    to = own_namespace(world, owner)
    names = {"source": {"namespace": [ns], "name": table.name}, "destination": {"namespace": [to], "name": "t"}}
    assert owner.post(f"{world.root}/tables/rename", names).status_code == 204
    return at(world, to, "t", table)


def dropped_and_registered(world: World, owner: Person, ns: str, table: Table) -> Table:
    """Drop the table without its files, and register them elsewhere."""
    assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    return again(world, owner, table)


def dropped_with_its_namespace(world: World, owner: Person, ns: str, table: Table) -> Table:
    """Drop the namespace of the table with its content, and register the files elsewhere."""
    answer = owner.delete(f"{world.root}/namespaces/{ns}?recursive=true&purge=false&force=true")
    assert answer.status_code == 204, answer.text
    return again(world, owner, table)


def overwritten(world: World, owner: Person, ns: str, table: Table) -> Table:
    """Register the last file over the renamed table: the row of the table is replaced."""
    moved = renamed(world, owner, ns, table)
    file = table.answer["metadata-location"]
    answer = register(owner, world, moved.namespace, file, moved.name, overwrite=True)
    assert answer.status_code == 200, answer.text
    return moved


WAYS: dict[str, Callable[[World, Person, str, Table], Table]] = {
    "renamed": renamed,
    "dropped and registered": dropped_and_registered,
    "dropped with its namespace": dropped_with_its_namespace,
    "registered over itself": overwritten,
}


@pytest.mark.threat("LG-DEC-39")
@pytest.mark.parametrize("way", WAYS)
def test_a_table_stays_under_a_policy_of_the_warehouse_that_names_a_tag_of_its_namespace(
    world: World, owner: Person, way: str
) -> None:
    ns = own_namespace(world, owner)
    table = wide(world, ns, by=owner)
    tag = define(world)
    assert attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns))).status_code < 300
    policy = make(world, named(tag))
    assert change(world, policy, add=[{"type": "warehouse", "id": world.warehouse}]).status_code == 204
    assert loads(owner, table) == 403
    assert loads(owner, WAYS[way](world, owner, ns, table)) == 403


@pytest.mark.threat("LG-DEC-39")
def test_a_namespace_stays_under_a_policy_that_names_a_tag_of_the_namespace_that_it_leaves(
    world: World, owner: Person
) -> None:
    ns = own_namespace(world, owner)
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "inner"]})
    assert made.status_code == 200, made.text
    table = world.table(f"{ns}{_BELOW}inner", by=owner)
    id = world.sql("select namespace_id::text as id from tables where id = $1::text::uuid", table.uuid)[0]["id"]
    tag = define(world)
    assert attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns))).status_code < 300
    policy = make(world, named(tag))
    assert change(world, policy, add=[{"type": "warehouse", "id": world.warehouse}]).status_code == 204
    assert loads(owner, table) == 403
    to = own_namespace(world, owner)
    moved = send_until_decided(
        lambda: owner.post(
            f"/management/v1/warehouse/{world.warehouse}/namespace/{id}/move", {"destination": [to, "inner"]}
        )
    )
    assert moved.status_code < 300, moved.text
    assert loads(owner, at(world, f"{to}{_BELOW}inner", table.name, table)) == 403


@pytest.mark.threat("LG-DEC-39")
@pytest.mark.parametrize("way", ["renamed", "dropped and registered"])
def test_a_tag_that_a_later_policy_names_has_stayed_with_the_table(world: World, owner: Person, way: str) -> None:
    """No policy exists while the table leaves."""
    ns = own_namespace(world, owner)
    table = wide(world, ns, by=owner)
    tag = define(world)
    assert attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns))).status_code < 300
    moved = WAYS[way](world, owner, ns, table)
    assert loads(owner, moved) == 200
    policy = make(world, named(tag))
    assert change(world, policy, add=[{"type": "warehouse", "id": world.warehouse}]).status_code == 204
    assert loads(owner, moved) == 403
