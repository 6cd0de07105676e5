# SPDX-License-Identifier: Apache-2.0
"""Managed access: whether the owners of things below an object may hand out rights on them (`lakekeeper.md` 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import Ref
from gateway.access.relations import VISIBLE_BY, Can


@dataclass(frozen=True)
class _Reading:
    """For who sees the object or manages its grants."""

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(VISIBLE_BY[self.on.type], self.on, alternative=Can.READ_ASSIGNMENTS),)


@dataclass(frozen=True)
class _Setting:
    """For who manages the grants on the object."""

    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: Ref
    managed: bool

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_MANAGED_ACCESS, self.on),)

    def facts(self) -> Facts:
        return {"managed_access": self.managed}


@dataclass(frozen=True)
class GetWarehousePermissions(_Reading, Operation):
    """Whether access to what lies in a warehouse is managed."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}"


@dataclass(frozen=True)
class GetNamespacePermissions(_Reading, Operation):
    """Whether access to what lies in a namespace is managed, by it or by something above."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/namespace/{namespace_id}"


@dataclass(frozen=True)
class SetWarehouseManagedAccess(_Setting, Operation):
    """Manage access to what lies in a warehouse, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/managed-access"


@dataclass(frozen=True)
class SetNamespaceManagedAccess(_Setting, Operation):
    """Manage access to what lies in a namespace, or no longer."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/namespace/{namespace_id}/managed-access"


GetPermissions = GetWarehousePermissions | GetNamespacePermissions
SetManagedAccess = SetWarehouseManagedAccess | SetNamespaceManagedAccess
