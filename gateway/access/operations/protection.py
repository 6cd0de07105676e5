# SPDX-License-Identifier: Apache-2.0
"""Operations on protection: a protected object can be dropped only with `force`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.families import NAMESPACE_IN_WAREHOUSE, TABULARS, declare_for_each
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import GenericTableRef, NamespaceIdRef, TableRef, ViewRef
from gateway.access.relations import Can
from gateway.access.request import Body
from gateway.protocol.protection import SetProtectionRequest


@dataclass(frozen=True)
class GetProtection(ReadOperation, abstract=True):
    """Return whether an object is protected, for callers that see it."""

    on: NamespaceIdRef | TableRef | ViewRef | GenericTableRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


@dataclass(frozen=True)
class SetProtection(ChangeOperation, abstract=True):
    """Protect an object, or end its protection."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="setProtection")
    on: NamespaceIdRef | TableRef | ViewRef | GenericTableRef
    protected: Annotated[bool, Body(SetProtectionRequest, "protected")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_PROTECTION, self.on),)

    def facts(self) -> Facts:
        return {"protected": self.protected}


_ALL = (NAMESPACE_IN_WAREHOUSE, *TABULARS)
GET_PROTECTION: tuple[type[GetProtection], ...] = declare_for_each(
    GetProtection,
    _ALL,
    name="Get{noun}Protection",
    endpoint="GET /management/v1/{path}/protection",
    doc="Return whether {words} is protected.",
)
SET_PROTECTION: tuple[type[SetProtection], ...] = declare_for_each(
    SetProtection,
    _ALL,
    name="Set{noun}Protection",
    endpoint="POST /management/v1/{path}/protection",
    doc="Protect {words}, or end its protection.",
)
