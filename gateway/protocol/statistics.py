# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about statistics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer


class AllWarehouses(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="all"):
    """Every request of the project."""


class NoWarehouse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="unmapped"):
    """Requests that were about none of the project's warehouses."""


class OneWarehouse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="warehouse-id"):
    """Requests about one warehouse."""

    id: UUID


_Status = Annotated[int, msgspec.Meta(ge=100, le=599)]


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="window"):
    """The hours before `end`; `interval` is a duration of ISO 8601, such as `P1D`."""

    end: Annotated[datetime, msgspec.Meta(tz=True)]
    interval: timedelta


class PageOfHours(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="page-token"):
    """The window that a token of an earlier answer stands for."""

    token: Annotated[str, msgspec.Meta(max_length=256)]


class EndpointStatisticsRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """`POST /endpoint-statistics`."""

    warehouse: AllWarehouses | NoWarehouse | OneWarehouse
    status_codes: Annotated[tuple[_Status, ...], msgspec.Meta(max_length=100)] | None = None
    range_specifier: Window | PageOfHours | None = None


class CalledEndpoint(Answer, frozen=True, omit_defaults=True):
    """How often one endpoint was answered with one status within an hour."""

    count: int
    http_route: str
    status_code: int
    created_at: datetime
    warehouse_id: UUID | None = None
    warehouse_name: str | None = None
    updated_at: datetime | None = None


class EndpointStatistics(Answer, frozen=True):
    """The hours in which something was called, in order, and what was called in each. The tokens stand for the window
    before and the one after.
    """

    timestamps: list[datetime]
    called_endpoints: list[list[CalledEndpoint]]
    next_page_token: str
    previous_page_token: str


class WarehouseCount(Answer, frozen=True):
    """How many there were at the end of an hour, or now in the latest. Generic tables are in neither number."""

    timestamp: datetime
    number_of_tables: int
    number_of_views: int
    updated_at: datetime


class WarehouseStatistics(Answer, frozen=True, omit_defaults=True):
    """`GET …/statistics`: the hours in which something was made or dropped, the latest first."""

    warehouse_ident: UUID
    stats: list[WarehouseCount]
    next_page_token: str | None = None
