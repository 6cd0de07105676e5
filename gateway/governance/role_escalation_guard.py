# SPDX-License-Identifier: Apache-2.0
"""Prevent privilege escalation through role membership."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from gateway.access.authz_errors import RoleActionForbidden
from gateway.access.privileges import granting
from gateway.access.refs import ObjectKey
from gateway.access.relations import Can
from gateway.db.engine import Connection
from gateway.db.role_nesting import admin_privileges

#: Return, for each object in order, whether the caller has the relation on it.
HoldsRelation = Callable[[Can, Sequence[ObjectKey]], Awaitable[list[bool]]]


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
