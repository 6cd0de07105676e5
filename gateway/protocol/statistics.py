# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for statistics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, StrictRequest


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
