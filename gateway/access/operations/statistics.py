# SPDX-License-Identifier: Apache-2.0
"""What can be asked about use and growth (`lakekeeper.md` 3.2 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import QuestionOperation, ReadOperation
from gateway.access.refs import WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InPath, OfRequest, PageSizeOf, Query


@dataclass(frozen=True)
class _CountingCalls:
    """Part of those that tell how often each endpoint was called in [start, end), by hour; empty statuses take all."""

    statuses: tuple[int, ...]
    start: datetime
    end: datetime

    def facts(self) -> Facts:
        return {"hours": int((self.end - self.start).total_seconds()) // 3600}


@dataclass(frozen=True)
class GetProjectEndpointStatistics(_CountingCalls, QuestionOperation):
    """How often endpoints were called in a project; with `unmapped`, only what was about none of its warehouses."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Changes nothing: it tells numbers.
    project: OfRequest
    unmapped: bool

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_ENDPOINT_STATISTICS, self.project),)


@dataclass(frozen=True)
class GetWarehouseEndpointStatistics(_CountingCalls, QuestionOperation):
    """How often endpoints were called about one warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Changes nothing: it tells numbers.
    warehouse: WarehouseRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_ENDPOINT_STATISTICS, self.warehouse),)


@dataclass(frozen=True)
class GetWarehouseStatistics(ReadOperation):
    """How many tables and views a warehouse had, by hour; the latest first."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/statistics"
    warehouse: InPath[WarehouseRef]
    page_token: Annotated[str | None, Query("page_token")] = None
    page_size: Annotated[int | None, PageSizeOf("page_size", after="")] = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.warehouse),)


GetEndpointStatistics = GetProjectEndpointStatistics | GetWarehouseEndpointStatistics
