# SPDX-License-Identifier: Apache-2.0
"""Tables whose files and names policies follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.stack.adoption import register
from tests.support.stack.world import Person, Table, World, unique


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove all policies after the test."""
    yield
    world.remove_policies()


@pytest.fixture
def owner(world: World) -> Person:
    """Return a user without rights."""
    return world.stranger("owner")


def again(world: World, owner: Person, table: Table, **more: object) -> Table:
    """Register the last metadata file of a table in another namespace of the owner."""
    ns, name = world.namespace(), unique("again")
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    answer = register(owner, world, ns, table.answer["metadata-location"], name, **more)
    assert answer.status_code == 200, answer.text
    return at(world, ns, name, table)


def at(world: World, ns: str, name: str, table: Table) -> Table:
    """Return the table under another name."""
    return replace(table, namespace=ns, name=name, path=f"{world.root}/namespaces/{ns}/tables/{name}")
