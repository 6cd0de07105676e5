# SPDX-License-Identifier: Apache-2.0
"""Keep principals that a data policy restricts from leaving the role through which it restricts them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.authz_errors import RoleActionForbidden
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine import Connection
from gateway.db.role_nesting import Restriction, restricted_until
from gateway.governance.role_escalation_guard import HoldsRelation


@asynccontextmanager
async def refuse_leaving(
    connection: Connection,
    caller: Actor,
    holds_relation: HoldsRelation,
    *,
    concerned: bool = True,
    remapped: str | None = None,
) -> AsyncIterator[None]:
    """Raise RoleActionForbidden if the block ends a restriction of the caller by a data policy, or ends it sooner.

    The owner of a role could otherwise lift a policy from itself. Managers of the policy and holders of `exempt` may
    do so. `holds_relation` is the door's check for the caller. `remapped` is the role that the caller's token groups do
    not give any more after the block. Nothing is checked if the block is not `concerned`.
    """
    if not concerned:
        yield
        return
    user = Principal(PrincipalType.USER, caller.id)
    groups = [Principal(PrincipalType.ROLE, id) for id in caller.group_roles]
    before = await restricted_until(connection, [user, *groups])
    yield
    if not before:
        return
    after = await restricted_until(connection, [user, *(each for each in groups if each.id != remapped)])
    policies = [ObjectKey(ObjectType.DATA_POLICY, id) for id in sorted(_lifted(before, after))]
    for policy in policies:
        held = [*await holds_relation(Can.BIND, [policy]), *await holds_relation(Can.SKIP_POLICY, [policy])]
        if not any(held):
            raise RoleActionForbidden(
                "A data policy restricts you as a member of this role, and the change would end that. A manager of "
                "the policy, or an owner of the role that the policy does not restrict, can make the change."
            )


def _lifted(before: Mapping[Restriction, datetime], after: Mapping[Restriction, datetime]) -> set[str]:
    """Return the ids of the policies that restrict less after a change.

    A principal without any value of a mapping table sees no row. With some of its values it can see more than with all.
    """
    kept = {each for each, until in before.items() if each in after and after[each] >= until}
    filled = {(each.policy_id, each.mapping) for each in kept}
    lost = before.keys() - kept
    return {each.policy_id for each in lost if not each.mapping or (each.policy_id, each.mapping) in filled}
