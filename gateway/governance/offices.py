# SPDX-License-Identifier: Apache-2.0
"""Who is in a role has what the role has: so whoever decides who is in it gives that away."""

from __future__ import annotations

from gateway.access.door import Door
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.access.privileges import granting
from gateway.access.refusals import RoleActionForbidden
from gateway.db.engine import Connection
from gateway.db.role_nesting import offices


async def refuse_higher_office(permit: Permit[Operation], door: Door, connection: Connection, role_id: str) -> None:
    """Raise RoleActionForbidden when the role has an office that the caller may not give: whoever decides who is in
    a role, one by one or by the group of a provider it stands for, would give it by way of the role.

    Offices are the privileges that stand above the project's security administrators, who may fill every role.
    """
    for privilege, held_on in await offices(connection, role_id):
        [may] = await door.related(permit, permit.actor, granting(privilege), [held_on])
        if not may:
            raise RoleActionForbidden(
                f"Members of this role have {privilege} on the {held_on.type}, which is not yours to give."
            )
