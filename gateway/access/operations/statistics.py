# SPDX-License-Identifier: Apache-2.0
"""Operations on statistics of calls and of the number of tables."""

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
    """Mixin of counts of calls in [start, end), by hour. Empty statuses match all."""

    statuses: tuple[int, ...]
    start: datetime
    end: datetime

    def facts(self) -> Facts:
        return {"hours": int((self.end - self.start).total_seconds()) // 3600}


@dataclass(frozen=True)
class GetProjectEndpointStatistics(_CountingCalls, QuestionOperation):
    """Count the calls of endpoints in a project; with `unmapped`, only calls that are about none of its warehouses."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Changes nothing: it returns counts.
    project: OfRequest
    unmapped: bool

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_ENDPOINT_STATISTICS, self.project),)


@dataclass(frozen=True)
class GetWarehouseEndpointStatistics(_CountingCalls, QuestionOperation):
    """Count the calls of endpoints about one warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Changes nothing: it returns counts.
    warehouse: WarehouseRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_ENDPOINT_STATISTICS, self.warehouse),)


@dataclass(frozen=True)
class GetWarehouseStatistics(ReadOperation):
    """Count the tables and views of a warehouse by hour, the latest first."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/statistics"
    warehouse: InPath[WarehouseRef]
    page_token: Annotated[str | None, Query("page_token")] = None
    page_size: Annotated[int | None, PageSizeOf("page_size", after="")] = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.warehouse),)


GetEndpointStatistics = GetProjectEndpointStatistics | GetWarehouseEndpointStatistics
