# SPDX-License-Identifier: Apache-2.0
"""Check grants about roles before they are written, and after.

The guards prevent that a principal gains privileges through a role which it could not grant, and that a principal
leaves a role by which a data policy restricts it. They refuse grants that nest roles in a cycle or too deeply, and
members of a role whose members another provider manages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.management_errors import (
    GrantPrincipalUnknown,
    RoleMembershipCycle,
    RoleMembershipDepthExceeded,
    RoleNotManuallyAssignable,
)
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleActionForbidden
from gateway.access.operations.grants import Assignment
from gateway.access.operations.roles import OWN_PROVIDER
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import roles, users
from gateway.db.principals.role_nesting import (
    MAX_DEPTH,
    Restriction,
    admin_privileges,
    is_subject,
    nesting,
    restricted_until,
)

#: Function that returns, for each object in order, True if the caller has the relation on it.
HoldsRelation = Callable[[Can, Sequence[ObjectKey]], Awaitable[list[bool]]]


async def refuse_members(
    connection: Connection, on: ObjectKey, entries: Sequence[Assignment], holds_relation: HoldsRelation
) -> None:
    """Refuse new grants on `on` to principals that do not exist, and new members that a role may not have.

    Raises GrantPrincipalUnknown, RoleMembershipCycle, RoleMembershipDepthExceeded, RoleNotManuallyAssignable and
    RoleActionForbidden. `holds_relation` is the door's check for the caller.
    """
    await _require_known(connection, entries)
    await _refuse_circles(connection, on, entries)
    await _refuse_provisioned_members(connection, on, entries)
    if entries and on.type is ObjectType.ROLE:
        await refuse_escalation(connection, on.id, holds_relation)


async def restricting(connection: Connection, on: ObjectKey, writes: Sequence[Assignment]) -> Sequence[Assignment]:
    """Return the grants that take rights away, because a data policy then restricts their principals."""
    if on.type is ObjectType.ROLE and writes:
        return writes if await is_subject(connection, Principal(PrincipalType.ROLE, on.id)) else ()
    return [each for each in writes if each.privilege is Privilege.SUBJECT]


async def _require_known(connection: Connection, entries: Sequence[Assignment]) -> None:
    """Raise GrantPrincipalUnknown if a user or role of the entries does not exist.

    Such a grant is usually a mistyped id, and a later user with that id would receive it.
    """
    user_ids = {e.principal.id for e in entries if e.principal.type is PrincipalType.USER}
    role_ids = {e.principal.id for e in entries if e.principal.type is PrincipalType.ROLE}
    missing = sorted(user_ids - await users.exist(connection, sorted(user_ids)))
    missing += sorted(role_ids - await roles.exist(connection, sorted(role_ids)))
    if missing:
        raise GrantPrincipalUnknown(
            f"These users or roles do not exist on this server: {', '.join(missing)}. Correct the ids, or register the "
            "user first: POST /management/v1/user, or `lakegate client register` for an engine or another machine. "
            "Users are also registered by their first request."
        )


async def refuse_escalation(connection: Connection, role_id: str, holds_relation: HoldsRelation) -> None:
    """Raise RoleActionForbidden if the role holds a higher privilege that the caller may not grant.

    Adding a member, or mapping the role to a provider's group, would grant that privilege through the role. The
    privileges concerned are those above the project's security administrators, who may change the members of every
    role. `holds_relation` is the door's check for the caller of the permit.
    """
    for privilege, held_on in await admin_privileges(connection, role_id):
        [may] = await holds_relation(granting(privilege), [held_on])
        if not may:
            raise RoleActionForbidden(
                f"Members of this role have {privilege} on the {held_on.type}, and you may not grant that privilege "
                "there. So you cannot add members or map the role to a group. A principal that may grant the privilege "
                "can do this."
            )


@asynccontextmanager
async def refuse_leaving(
    connection: Connection,
    caller: Actor,
    holds_relation: HoldsRelation,
    *,
    concerned: bool = True,
    remapped: str | None = None,
) -> AsyncIterator[None]:
    """Context manager. Raise RoleActionForbidden if the block ends the caller's restriction by a data policy, or makes
    it end sooner.

    The owner of a role could otherwise lift a policy from itself. Managers of the policy and holders of `exempt` may do
    so. `holds_relation` is the door's check for the caller. `remapped` is a role that the groups in the caller's token
    no longer give after the block. If `concerned` is False, nothing is checked.
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

    A principal without any value in a mapping table sees no row. With fewer values it can see more rows than with all
    of them.
    """
    kept = {each for each, until in before.items() if each in after and after[each] >= until}
    filled = {(each.policy_id, each.mapping) for each in kept}
    lost = before.keys() - kept
    return {each.policy_id for each in lost if not each.mapping or (each.policy_id, each.mapping) in filled}


async def _refuse_circles(connection: Connection, on: ObjectKey, entries: Sequence[Assignment]) -> None:
    """Raise RoleMembershipCycle or RoleMembershipDepthExceeded.

    `on` is the object of the grants and `entries` are the new ones.

    A cycle gives no additional rights. It would hide from an administrator that a role which was revoked is still held
    through another membership.
    """
    members = [e.principal.id for e in entries if e.principal.type is PrincipalType.ROLE]
    if on.type is not ObjectType.ROLE or not members:
        return
    found = await nesting(connection, on.id, members)
    if found.around:
        raise RoleMembershipCycle(
            f"This would be a cycle: the role is already a member of {', '.join(found.around)}, directly or through "
            "other roles."
        )
    if found.depth > MAX_DEPTH:
        raise RoleMembershipDepthExceeded(
            f"Roles would be nested {found.depth} levels deep; at most {MAX_DEPTH} are allowed. Nest the roles less "
            "deeply."
        )


async def _refuse_provisioned_members(connection: Connection, on: ObjectKey, entries: Sequence[Assignment]) -> None:
    """Raise RoleNotManuallyAssignable if another provider manages the members of the role."""
    if on.type is not ObjectType.ROLE or all(entry.privilege is not Privilege.ASSIGNEE for entry in entries):
        return
    provider = await roles.provider_of(connection, on.id)
    if provider != OWN_PROVIDER:
        raise RoleNotManuallyAssignable(
            f"The identity provider {provider} sets the members of this role. Change them there."
        )
