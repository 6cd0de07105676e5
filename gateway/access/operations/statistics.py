# SPDX-License-Identifier: Apache-2.0
"""Operations that count calls, tables and views."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import QuestionOperation, ReadOperation
from gateway.access.request import InPath, OfRequest, PageSizeOf, Query


@dataclass(frozen=True)
class _CountingCalls:
    """Mixin of operations that count the calls of each hour in [start, end). Empty statuses match all statuses."""

    statuses: tuple[int, ...]
    start: datetime
    end: datetime

    def facts(self) -> Facts:
        return {"hours": int((self.end - self.start).total_seconds()) // 3600}


@dataclass(frozen=True)
class GetProjectEndpointStatistics(_CountingCalls, QuestionOperation):
    """Count the calls of endpoints in a project; with `unmapped`, only calls that are about none of its warehouses."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Read-only, although the method is POST: the operation returns counts.
    project: OfRequest
    unmapped: bool

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_ENDPOINT_STATISTICS, self.project),)


@dataclass(frozen=True)
class GetWarehouseEndpointStatistics(_CountingCalls, QuestionOperation):
    """Count the calls of endpoints about one warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/endpoint-statistics"
    # Read-only, although the method is POST: the operation returns counts.
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


class AllWarehouses(StrictRequest, frozen=True, tag_field="type", tag="all"):
    """All requests of the project."""


class NoWarehouse(StrictRequest, frozen=True, tag_field="type", tag="unmapped"):
    """Requests that concern none of the project's warehouses."""


class OneWarehouse(StrictRequest, frozen=True, tag_field="type", tag="warehouse-id"):
    """Requests that concern one warehouse."""

    id: UUID


_Status = Annotated[int, msgspec.Meta(ge=100, le=599)]


class Window(StrictRequest, frozen=True, tag_field="type", tag="window"):
    """The time of length `interval` before `end`. `interval` is an ISO 8601 duration, such as `P1D`."""

    end: Annotated[datetime, msgspec.Meta(tz=True)]
    interval: timedelta


class PageOfHours(StrictRequest, frozen=True, tag_field="type", tag="page-token"):
    """The window of a page token from an earlier response."""

    token: Annotated[str, msgspec.Meta(max_length=256)]


class EndpointStatisticsRequest(StrictRequest, frozen=True):
    """Request of `POST /endpoint-statistics`."""

    warehouse: AllWarehouses | NoWarehouse | OneWarehouse
    status_codes: Annotated[tuple[_Status, ...], msgspec.Meta(max_length=100)] | None = None
    range_specifier: Window | PageOfHours | None = None


class CalledEndpoint(Answer, frozen=True, omit_defaults=True):
    """The number of responses of one endpoint with one status within an hour."""

    count: int
    http_route: str
    status_code: int
    created_at: datetime
    warehouse_id: UUID | None = None
    warehouse_name: str | None = None
    updated_at: datetime | None = None


class EndpointStatistics(Answer, frozen=True):
    """Response of `POST /endpoint-statistics`. `timestamps` has the hours with requests, in ascending order, and
    `called-endpoints` the counts of each of these hours. The tokens identify the next and the previous window.
    """

    timestamps: list[datetime]
    called_endpoints: list[list[CalledEndpoint]]
    next_page_token: str
    previous_page_token: str


class WarehouseCount(Answer, frozen=True):
    """The numbers of tables and views at the end of an hour; for the latest hour, the current numbers. Generic tables
    are not counted.
    """

    timestamp: datetime
    number_of_tables: int
    number_of_views: int
    updated_at: datetime


class WarehouseStatistics(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/statistics`: the hours in which tables or views were created or dropped, the latest first."""

    warehouse_ident: UUID
    stats: list[WarehouseCount]
    next_page_token: str | None = None
