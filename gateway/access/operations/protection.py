# SPDX-License-Identifier: Apache-2.0
"""Protection: whether something can be dropped without `force` (`lakekeeper.md` 1.5 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import GenericTableIdRef, NamespaceIdRef, TableIdRef, ViewIdRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class _Reading:
    """For who sees it."""

    on: NamespaceIdRef | TableIdRef | ViewIdRef | GenericTableIdRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


@dataclass(frozen=True)
class _Setting:
    """For who may change it."""

    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: NamespaceIdRef | TableIdRef | ViewIdRef | GenericTableIdRef
    protected: bool

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_PROTECTION, self.on),)

    def facts(self) -> Facts:
        return {"protected": self.protected}


@dataclass(frozen=True)
class GetNamespaceProtection(_Reading, Operation):
    """Whether a namespace is protected."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection"


@dataclass(frozen=True)
class SetNamespaceProtection(_Setting, Operation):
    """Protect a namespace, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/protection"


@dataclass(frozen=True)
class GetTableProtection(_Reading, Operation):
    """Whether a table is protected."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/table/{table_id}/protection"


@dataclass(frozen=True)
class SetTableProtection(_Setting, Operation):
    """Protect a table, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/table/{table_id}/protection"


@dataclass(frozen=True)
class GetViewProtection(_Reading, Operation):
    """Whether a view is protected."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/view/{view_id}/protection"


@dataclass(frozen=True)
class GetGenericTableProtection(_Reading, Operation):
    """Whether a generic table is protected."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/protection"


@dataclass(frozen=True)
class SetViewProtection(_Setting, Operation):
    """Protect a view, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/view/{view_id}/protection"


@dataclass(frozen=True)
class SetGenericTableProtection(_Setting, Operation):
    """Protect a generic table, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/protection"


GetProtection = GetNamespaceProtection | GetTableProtection | GetViewProtection | GetGenericTableProtection
SetProtection = SetNamespaceProtection | SetTableProtection | SetViewProtection | SetGenericTableProtection
