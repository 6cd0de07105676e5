# SPDX-License-Identifier: Apache-2.0
"""A principal that a data policy restricts as a member of a role does not end the membership by a right on the role."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.stack.bound_policies import DELEGATION
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.policy_files import clean
from tests.support.stack.roles import ROLE, add
from tests.support.stack.roles import make as make_role
from tests.support.stack.world import Person, Table, World, error_triple, send_until_decided, unique

__all__ = ["clean"]

MAPPING = "/management/v1/mapping-table"
REFUSED = (403, "RoleActionForbidden")
_NULLED: dict[str, Any] = {"kind": "mask", "action": "replace-with-null", "columns": [{"name": "name"}]}


def restricted_by(world: World, ns: str, role: str, reader: Person) -> tuple[Table, dict[str, Any]]:
    """Return a table of the reader with a policy whose only subject is the role, and that policy."""
    table = wide(world, ns)
    world.grant("select", reader, "table", table.uuid)
    policy = make(world, _NULLED, by=None, **{"applies-to": "subjects"})
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    path = f"/management/v1/permissions/data-policy/{policy['id']}/assignments"
    assert world.admin.post(path, {"writes": [{"type": "subject", "role": role}]}).status_code == 204
    return table, policy


def has_keys(reader: Person, table: Table) -> bool:
    answer = send_until_decided(lambda: reader.get(table.path, headers=DELEGATION))
    return answer.status_code == 200 and bool(answer.json().get("storage-credentials"))


def _assignments(by: Person, role: str, **body: Any) -> httpx.Response:
    return by.post(f"/management/v1/permissions/role/{role}/assignments", body)


def _shortened(by: Person, role: str) -> httpx.Response:
    """Give the membership that the owner has by its own grant an early end."""
    grants = f"/management/v1/role/{role}/grants"
    entry = {"privilege": "assignee", "principal": {"user": by.id}}
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    deleted = {"deletes": [{"privilege": "ownership", "principal": {"user": by.id}}]}
    assert by.post(grants, {"writes": [entry]}).status_code == 204
    return by.post(grants, {"writes": [{**entry, "expires-at": soon}], **deleted})


WAYS: dict[str, Callable[[Person, str], httpx.Response]] = {
    "deletes the role": lambda by, role: by.delete(f"{ROLE}/{role}"),
    "gives up the role": lambda by, role: _assignments(by, role, deletes=[{"type": "ownership", "user": by.id}]),
    "gives up the role by a grant": lambda by, role: by.post(
        f"{ROLE}/{role}/grants", {"deletes": [{"privilege": "ownership", "principal": {"user": by.id}}]}
    ),
    "ends the membership later": _shortened,
}


@pytest.mark.threat("LG-DEC-44")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nested", [False, True], ids=["the subject", "a role in the subject"])
def test_the_owner_of_a_role_does_not_lift_the_policy_that_restricts_its_members(
    world: World, ns: str, way: str, nested: bool
) -> None:
    owner = world.stranger("owner")
    role = make_role(world)["id"]
    world.grant("ownership", owner, "role", role)
    subject = make_role(world) if nested else {"id": role}
    if nested:
        assert add(world, subject, "role", role).status_code == 204
    table, policy = restricted_by(world, ns, subject["id"], owner)
    assert not has_keys(owner, table)
    assert error_triple(WAYS[way](owner, role))[:2] == REFUSED
    assert not has_keys(owner, table)
    world.grant("exempt", owner, "data-policy", policy["id"])
    assert WAYS[way](owner, role).status_code == 204, "the policy does not restrict the owner"


@pytest.mark.threat("LG-DEC-44")
def test_a_member_is_removed_by_another_owner_and_by_a_manager_of_the_policy(world: World, ns: str) -> None:
    member, owner = world.stranger("member"), world.stranger("owner")
    role = make_role(world)["id"]
    world.grant("ownership", owner, "role", role)
    world.grant("ownership", member, "role", role)
    table, policy = restricted_by(world, ns, role, member)
    removed = _assignments(owner, role, deletes=[{"type": "ownership", "user": member.id}])
    assert removed.status_code == 204, removed.text
    assert has_keys(member, table)
    assert error_triple(_assignments(owner, role, deletes=[{"type": "ownership", "user": owner.id}]))[:2] == REFUSED
    world.grant("ownership", owner, "data-policy", policy["id"])
    assert owner.delete(f"{ROLE}/{role}").status_code == 204


@pytest.mark.threat("LG-DEC-44")
@pytest.mark.parametrize("own_value", [True, False], ids=["one value of two", "the only value"])
def test_a_member_does_not_give_up_one_of_the_values_that_a_row_filter_excludes(
    world: World, ns: str, own_value: bool
) -> None:
    owner, role, mapping = world.stranger("owner"), make_role(world)["id"], unique("Hidden")
    world.grant("ownership", owner, "role", role)
    entries = [{"principal": {"role": role}, "values": ["b"]}]
    entries += [{"principal": {"user": owner.id}, "values": ["a"]}] * own_value
    made = world.admin.post(MAPPING, {"name": mapping})
    assert made.status_code == 201, made.text
    written = world.admin.post(f"{MAPPING}/{made.json()['id']}/entries", {"set": entries})
    assert written.status_code < 300, written.text
    values = {"type": "attribute", "source": "mapping", "name": mapping.lower()}
    test = {"type": "in", "column": {"name": "card"}, "values": values, "negated": True}
    policy = make(world, {"kind": "row-filter", "test": test})
    assert change(world, policy, add=[target(world, wide(world, ns))]).status_code == 204
    left = owner.delete(f"{ROLE}/{role}")
    # Without any value the filter keeps no row.
    assert left.status_code == (403 if own_value else 204), left.text
