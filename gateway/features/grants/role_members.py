# SPDX-License-Identifier: Apache-2.0
"""Refuse grants that would nest roles in a cycle or too deeply, or add members that another provider manages."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.access.management_errors import RoleMembershipCycle, RoleMembershipDepthExceeded, RoleNotManuallyAssignable
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.grants import Assignment
from gateway.access.operations.roles import OWN_PROVIDER
from gateway.access.tuples import PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import roles
from gateway.db.principals.role_nesting import MAX_DEPTH, nesting


async def refuse_circles(connection: Connection, on: ObjectKey, entries: Sequence[Assignment]) -> None:
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


async def refuse_provisioned_members(connection: Connection, on: ObjectKey, entries: Sequence[Assignment]) -> None:
    """Raise RoleNotManuallyAssignable if another provider manages the members of the role."""
    if on.type is not ObjectType.ROLE or all(entry.privilege is not Privilege.ASSIGNEE for entry in entries):
        return
    provider = await roles.provider_of(connection, on.id)
    if provider != OWN_PROVIDER:
        raise RoleNotManuallyAssignable(
            f"The identity provider {provider} sets the members of this role. Change them there."
        )
