# SPDX-License-Identifier: Apache-2.0
"""Who is in a role has what the role has: so whoever decides who is in it gives that away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from gateway.access.authz_errors import RoleActionForbidden
from gateway.access.privileges import granting
from gateway.access.refs import ObjectKey
from gateway.access.relations import Can
from gateway.db.engine import Connection
from gateway.db.role_nesting import offices

#: Which of some objects the caller has a right on, in order.
Has = Callable[[Can, Sequence[ObjectKey]], Awaitable[list[bool]]]


async def refuse_higher_office(connection: Connection, role_id: str, has: Has) -> None:
    """Raise RoleActionForbidden when the role has an office that the caller may not give: whoever decides who is in
    a role, one by one or by the group of a provider it stands for, would give it by way of the role.

    Offices are the privileges that stand above the project's security administrators, who may fill every role. `has`
    is the door's answer about the caller of the permit.
    """
    for privilege, held_on in await offices(connection, role_id):
        [may] = await has(granting(privilege), [held_on])
        if not may:
            raise RoleActionForbidden(
                f"Members of this role have {privilege} on the {held_on.type}, which is not yours to give."
            )
