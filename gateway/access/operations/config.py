# SPDX-License-Identifier: Apache-2.0
"""The configuration of a warehouse: the first request of every Iceberg client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import ReadOperation
from gateway.access.refs import WarehouseNameRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class GetConfig(ReadOperation):
    """Return defaults, overrides and the endpoints that the caller may use in a warehouse."""

    endpoint: ClassVar[str] = "GET /catalog/v1/config"
    warehouse: WarehouseNameRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_CONFIG, self.warehouse),)
