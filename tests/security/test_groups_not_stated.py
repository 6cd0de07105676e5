# SPDX-License-Identifier: Apache-2.0
"""A token without the claim of groups does not lift a data policy whose subjects are a group of its provider."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.stack.bound_policies import DELEGATION
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.policy_files import clean
from tests.support.stack.providers import StubProvider
from tests.support.stack.roles import ROLE
from tests.support.stack.token_groups import give, of_group, partner
from tests.support.stack.world import Person, World, error_triple, send_until_decided, unique

__all__ = ["clean", "partner"]

pytestmark = pytest.mark.servers

_GROUP = unique("external")
_NULLED: dict[str, Any] = {"kind": "mask", "action": "replace-with-null", "columns": [{"name": "name"}]}


@pytest.fixture(scope="module")
def external(world: World) -> dict[str, Any]:
    """Return the role that stands for the group."""
    return of_group(world, _GROUP)


@pytest.mark.threat("LG-DEC-45")
@pytest.mark.parametrize(
    ("claims", "reads"),
    [({"groups": [_GROUP]}, False), ({}, False), ({"groups": None}, False), ({"groups": []}, True)],
    ids=["in the group", "no claim", "null", "in no group"],
)
def test_a_user_whose_token_states_no_groups_counts_as_a_member_of_the_group_that_a_policy_restricts(
    world: World,
    ns: str,
    partner: tuple[str, StubProvider],
    external: dict[str, Any],
    claims: dict[str, Any],
    reads: bool,
) -> None:
    base, provider = partner
    user = Person(name := unique("gil"), f"partner~{name}", provider.token(name, **claims), base)
    assert user.post("/management/v1/user", {"name": name, "user-type": "human"}).status_code == 201
    table = wide(world, ns)
    policy = make(world, _NULLED, by=None, **{"applies-to": "subjects"})
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    give(world, "subject", external, "data-policy", policy["id"])
    world.grant("select", user, "table", table.uuid)
    answer = send_until_decided(lambda: user.get(table.path, headers=DELEGATION))
    assert (answer.status_code == 200 and bool(answer.json().get("storage-credentials"))) is reads, answer.text
    user.http.close()


@pytest.mark.threat("LG-DEC-44")
def test_a_restricted_member_of_a_group_does_not_map_the_role_to_another_group_or_delete_it(
    world: World, ns: str, partner: tuple[str, StubProvider]
) -> None:
    base, provider = partner
    group = unique("external")
    user = Person(name := unique("gil"), f"partner~{name}", provider.token(name, groups=[group]), base)
    assert user.post("/management/v1/user", {"name": name, "user-type": "human"}).status_code == 201
    role = of_group(world, group)
    policy = make(world, _NULLED, by=None, **{"applies-to": "subjects"})
    assert change(world, policy, add=[target(world, wide(world, ns))]).status_code == 204
    give(world, "subject", role, "data-policy", policy["id"])
    # The group has no end, and the membership as an owner has one.
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    entry = {"privilege": "ownership", "principal": {"user": user.id}, "expires-at": ends}
    assert world.admin.post(f"{ROLE}/{role['id']}/grants", {"writes": [entry]}).status_code == 204
    source = {"provider-id": "partner", "source-id": unique("g")}
    for changed in (
        lambda: user.send("PUT", f"{ROLE}/{role['id']}/source-system", json=source),
        lambda: user.delete(f"{ROLE}/{role['id']}"),
    ):
        assert error_triple(send_until_decided(changed))[:2] == (403, "RoleActionForbidden")
    user.http.close()
