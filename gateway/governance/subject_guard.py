# SPDX-License-Identifier: Apache-2.0
"""Keep principals that a data policy restricts from leaving the role through which it restricts them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.access.actor import Actor
from gateway.access.authz_errors import RoleActionForbidden
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine import Connection
from gateway.db.role_nesting import subject_until
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
    """Raise RoleActionForbidden if the block ends that the caller is a subject of a data policy, or ends it sooner.

    The owner of a role could otherwise lift a policy from itself. Managers of the policy and holders of `exempt` may
    do so. `holds_relation` is the door's check for the caller. `remapped` is the role that the caller's token groups do
    not give any more after the block. Nothing is checked if the block is not `concerned`.
    """
    if not concerned:
        yield
        return
    user = Principal(PrincipalType.USER, caller.id)
    groups = [Principal(PrincipalType.ROLE, id) for id in caller.group_roles]
    before = await subject_until(connection, [user, *groups])
    yield
    if not before:
        return
    after = await subject_until(connection, [user, *(each for each in groups if each.id != remapped)])
    sooner = [id for id, until in before.items() if id not in after or after[id] < until]
    policies = [ObjectKey(ObjectType.DATA_POLICY, id) for id in sooner]
    for policy in policies:
        held = [*await holds_relation(Can.BIND, [policy]), *await holds_relation(Can.SKIP_POLICY, [policy])]
        if not any(held):
            raise RoleActionForbidden(
                "A data policy restricts you as a member of this role, and the change would end that. A manager of "
                "the policy, or an owner of the role that the policy does not restrict, can make the change."
            )
