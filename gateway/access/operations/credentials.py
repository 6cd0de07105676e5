# SPDX-License-Identifier: Apache-2.0
"""Operations on storage credentials: vending them for a table, and signing requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import ChangeOperation, QuestionOperation, VendingOperation
from gateway.access.refs import NamespaceRef, TableRef
from gateway.access.relations import Can
from gateway.access.request import InPath
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class VendCredentials(VendingOperation):
    """Vend temporary credentials for the table's prefix.

    They are for reads with `can_read_data`, also for writes with `can_write_data`.
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    table: InPath[TableRef]

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
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: NamespaceRef
    table: str

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)


@dataclass(frozen=True)
class SignRequest(QuestionOperation):
    """Sign a storage request. Not supported: the answer is 406, and the configuration does not offer it.

    The right to read is demanded before the 406, so the answer does not disclose which tables exist.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.SIGN
    # Changes nothing: it is not supported.
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),)
