# SPDX-License-Identifier: Apache-2.0
"""Operations that vend storage credentials for a table. Those of remote signing are in `signing.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Demand
from gateway.access.events.change_event import EventDeclaration, NoEvent
from gateway.access.nouns.refs import NamespaceRef, Table, TableRef, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, VendingOperation
from gateway.access.request import InPath
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class VendCredentials(VendingOperation):
    """Vend temporary credentials for the table's prefix.

    They are for reads with `can_read_data`, also for writes with `can_write_data`. With `signing`, the client asks for
    signatures of its requests in place of credentials.
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    table: InPath[TableRef]
    signing: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return self._demands

    # One decision reads the demands several times, and loads are the most frequent requests.
    @cached_property
    def _demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class VendCreationCredentials(ChangeOperation):
    """Vend credentials for a table to its creator. `CreateTable` is decided with it, at the same endpoint."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    event: ClassVar[EventDeclaration] = NoEvent("it changes no object; the creation itself is announced")
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: NamespaceRef
    table: str
    signing: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def new_table(self) -> str | None:
        return self.table


@dataclass(frozen=True)
class VendStagedCredentials(VendingOperation):
    """Vend new credentials for a table that its creator has staged and not yet committed.

    `can_create_table` on the namespace is demanded, as for the commit. The path contains the id of the staged table. A
    client keeps the address after the commit: the request is then decided like any other (`of_table`).
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/created/{table}/{table_id}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: InPath[NamespaceRef]
    table: InPath[str]
    table_id: InPath[UUID]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def of_table(self) -> VendCredentials:
        """Return the operation for the table after its creation."""
        return VendCredentials(TabularRef(Table, self.namespace.warehouse_id, self.table_id))
