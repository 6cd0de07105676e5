# SPDX-License-Identifier: Apache-2.0
"""Refused requests for credentials change nothing: no row, object, tuple or session of the store, and one audit record.

Each entry point from which a credential can come is tried by each kind of principal, on each kind of store.
"""

from __future__ import annotations

import pytest

from tests.support.stack.refused_vending import (
    ENTRY_POINTS,
    REFUSED,
    Target,
    commit,
    load,
    made_target,
    property_keys,
    refuse_without_change,
    sessions_so_far,
    sign,
)
from tests.support.stack.world import World

pytestmark = pytest.mark.generated


@pytest.fixture(scope="module")
def target(world: World) -> Target:
    """Create the table in the warehouse of the stack."""
    return made_target(world, world.root)


@pytest.mark.parametrize(("name", "entry"), [(name, entry) for name, entries in REFUSED.items() for entry in entries])
def test_a_refused_request_changes_nothing_and_has_one_audit_record(
    world: World, target: Target, name: str, entry: str
) -> None:
    refuse_without_change(world, target, name, entry)


def test_a_load_by_a_describer_has_noproperty_keys(world: World, target: Target) -> None:
    sessions = sessions_so_far(world)
    answer = load(target.people["describer"], target)
    assert answer.status_code == 200
    assert property_keys(answer.json()) == []
    assert sessions_so_far(world) == sessions


def test_the_owner_gets_keys_at_each_entry_point_of_a_table(world: World, target: Target) -> None:
    """Otherwise the refusals above could have another reason."""
    for entry in ("load", "credentials", "create", "staged create", "register"):
        answer = ENTRY_POINTS[entry](world.admin, target)
        assert answer.status_code == 200, f"{entry}: {answer.text}"
        assert property_keys(answer.json()), entry
    signed = sign(world.admin, target)
    assert signed.status_code == 200 and "authorization" in signed.json()["headers"]
    committed = commit(world.admin, target)
    assert committed.status_code == 200
    assert property_keys(committed.json()) == []
    reader = load(target.people["reader"], target)
    assert property_keys(reader.json())
