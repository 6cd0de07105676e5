# SPDX-License-Identifier: Apache-2.0
"""Operations on managed access: while it is on, owners of objects below cannot grant rights on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.families import NAMESPACE, WAREHOUSE, declare_for_each
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import Ref
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.request import Body
from gateway.protocol.rights import ManagedAccessRequest


@dataclass(frozen=True)
class GetPermissions(ReadOperation, abstract=True):
    """Return whether access below an object is managed, for callers that see the object or manage its grants."""

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(VISIBLE_BY[self.on.type], self.on, alternative=Can.READ_ASSIGNMENTS),)


@dataclass(frozen=True)
class SetManagedAccess(ChangeOperation, abstract=True):
    """Enable or disable managed access below an object, for callers that manage its grants."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="setManagedAccess")
    on: Ref
    managed: Annotated[bool, Body(ManagedAccessRequest, "managed_access")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_MANAGED_ACCESS, self.on),)

    def facts(self) -> Facts:
        return {"managed_access": self.managed}


GET_PERMISSIONS: tuple[type[GetPermissions], ...] = (
    *declare_for_each(
        GetPermissions,
        (WAREHOUSE,),
        name="Get{noun}Permissions",
        endpoint="GET /management/v1/permissions/{path}",
        doc="Return whether access to the contents of {words} is managed.",
    ),
    *declare_for_each(
        GetPermissions,
        (NAMESPACE,),
        name="Get{noun}Permissions",
        endpoint="GET /management/v1/permissions/{path}",
        doc="Return whether access to the contents of {words} is managed, by it or by a container above.",
    ),
)
SET_MANAGED_ACCESS: tuple[type[SetManagedAccess], ...] = declare_for_each(
    SetManagedAccess,
    (WAREHOUSE, NAMESPACE),
    name="Set{noun}ManagedAccess",
    endpoint="POST /management/v1/permissions/{path}/managed-access",
    doc="Manage access to the contents of {words}, or no longer.",
)
