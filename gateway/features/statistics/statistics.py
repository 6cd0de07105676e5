# SPDX-License-Identifier: Apache-2.0
"""Use cases of statistics: calls of endpoints, numbers of tables and views, and the metrics reports of engines."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import msgspec
import structlog

from gateway.access.dependency_errors import CommitUnknown
from gateway.access.door.permit import Permit
from gateway.access.operations.statistics import (
    CalledEndpoint,
    EndpointStatistics,
    GetEndpointStatistics,
    GetProjectEndpointStatistics,
    GetWarehouseStatistics,
    PageOfHours,
    WarehouseCount,
    WarehouseStatistics,
    Window,
)
from gateway.access.operations.tables import ReportMetrics
from gateway.db.engine.database import Database
from gateway.db.tables import statistics
from gateway.db.tables.statistics import CallCount, Counted
from gateway.features.kit import UseCases
from gateway.features.paging import packed, token_place, unpacked
from gateway.iceberg.errors import BadRequestException, PayloadTooLarge
from gateway.telemetry.calls import Call, Calls

#: The default length of the time window of statistics.
_DAY: Final = timedelta(days=1)
LONGEST: Final = timedelta(days=31)
#: Maximum number of counts in one response.
_MOST: Final = 100_000


class Statistics(UseCases):
    """Use cases of `POST /endpoint-statistics` and `GET /warehouse/{id}/statistics`."""

    async def endpoints(self, permit: Permit[GetEndpointStatistics]) -> EndpointStatistics:
        """Return the number of calls for the hours that begin in the window. Raise 400 if the result would be too
        large.
        """
        operation = permit.operation
        project: str | None = None
        warehouse: UUID | None = None
        unmapped = False
        if isinstance(operation, GetProjectEndpointStatistics):
            project, unmapped = operation.project.project_id, operation.unmapped
        else:
            warehouse = operation.warehouse.warehouse_id
        find = partial(
            statistics.calls,
            project_id=project,
            warehouse_id=warehouse,
            unmapped=unmapped,
            statuses=operation.statuses,
            start=operation.start,
            end=operation.end,
            limit=_MOST + 1,
        )
        rows = await self._reads.run(find)
        if len(rows) > _MOST:
            raise BadRequestException(
                f"The statistics of this interval have more than {_MOST} entries. Request a shorter interval."
            )
        hours = [(hour, list(some)) for hour, some in itertools.groupby(rows, key=lambda row: row.hour)]
        interval = operation.end - operation.start
        return EndpointStatistics(
            timestamps=[hour for hour, _ in hours],
            called_endpoints=[[_called(row) for row in some] for _, some in hours],
            next_page_token=_token(operation.end + interval, interval),
            previous_page_token=_token(operation.start, interval),
        )

    async def warehouse(self, permit: Permit[GetWarehouseStatistics]) -> WarehouseStatistics:
        """Return the hourly numbers of tables and views. Raises InvalidPaginationToken."""
        operation = permit.operation
        page = self._page_of(operation, _hour)
        id = operation.warehouse.warehouse_id
        find = partial(statistics.counts, warehouse_id=id, before=page.after, limit=page.limit)
        rows = await self._reads.run(find)
        return WarehouseStatistics(
            warehouse_ident=id,
            stats=[
                WarehouseCount(
                    timestamp=row.hour,
                    number_of_tables=int(row.tables),
                    number_of_views=int(row.views),
                    updated_at=row.updated_at,
                )
                for row in page.rows(rows)
            ],
            next_page_token=page.next_token(rows, lambda row: int(row.hour.timestamp())),
        )


def hours_of(specifier: Window | PageOfHours | None) -> tuple[datetime, datetime]:
    """Return (start, end) of the requested window; the end is exclusive. The default is the last day.

    Raise 400 for an invalid window, and InvalidPaginationToken.
    """
    match specifier:
        case None:
            end, interval = datetime.now(UTC), _DAY
        case Window(end=end, interval=interval):
            # Check the year before the conversion to UTC, which overflows in the years 1 and 9999.
            _require_year(end)
            end = end.astimezone(UTC)
        case PageOfHours(token=token):
            end, interval = token_place(token, _window)
    if not timedelta() < interval <= LONGEST:
        raise BadRequestException(f"The interval of a window must be positive and at most {LONGEST.days} days.")
    _require_year(end)
    return end - interval, end


def _require_year(end: datetime) -> None:
    if not 1970 <= end.year <= 9000:
        raise BadRequestException("The end of a window must be in the years 1970 to 9000.")


def _token(end: datetime, interval: timedelta) -> str:
    return packed((int(end.timestamp()), int(interval.total_seconds())))


def _window(token: str) -> tuple[datetime, timedelta]:
    end, interval = unpacked(token, tuple[int, int])
    return datetime.fromtimestamp(end, UTC), timedelta(seconds=interval)


def _hour(token: str) -> datetime:
    return datetime.fromtimestamp(int(token), UTC)


def _called(row: CallCount) -> CalledEndpoint:
    return CalledEndpoint(
        count=row.calls,
        http_route=row.route,
        status_code=row.status,
        created_at=row.created_at,
        warehouse_id=row.warehouse_id,
        warehouse_name=row.warehouse_name,
        updated_at=row.updated_at,
    )


_log = structlog.get_logger("tasks.statistics")


class StatisticsKeeper:
    """Writes the statistics of one process every `every` seconds, and once when the process ends. A killed process
    loses its counts since the last write.
    """

    def __init__(self, *, database: Database, calls: Calls, default_project: str | None, every: float) -> None:
        self._database = database
        self._calls = calls
        self._default_project = default_project
        self._every = every

    async def run(self) -> None:
        """Write the statistics until the process ends."""
        while True:
            await asyncio.sleep(self._every)
            await self.flush()

    async def flush(self) -> None:
        """Write the current counts. Raises no error: counts that cannot be written are kept for the next write."""
        counts = self._calls.take()
        try:
            async with self._database.transaction() as connection:
                await statistics.add_calls(connection, self._by_project(counts))
        except CommitUnknown:
            # The counts may be in the database. If they were kept, they could be counted twice, which is worse than not
            # at all.
            _log.warning("statistics.unknown", calls=sum(counts.values()))
        except Exception as failed:
            # A failure of the statistics must not end the process.
            self._calls.put_back(counts)
            _log.warning("statistics.postponed", reason=str(failed) or type(failed).__name__)
        try:
            async with self._database.transaction() as connection:
                await statistics.forget_calls(connection)
                await statistics.sum_up(connection)
        except Exception as failed:
            _log.warning("statistics.not_summed_up", reason=str(failed) or type(failed).__name__)

    def _by_project(self, counts: Mapping[Call, int]) -> list[Counted]:
        """Assign counts without a project to the default project. Drop them if no default project is set."""
        return [
            Counted(project, call.warehouse_id, call.route, call.status, count)
            for call, count in counts.items()
            if (project := call.project_id or self._default_project) is not None
        ]


MAX_BYTES: Final = 256 * 1024
"""The largest report that is stored. A scan report grows with its columns; ten thousand of them fit."""


class Reports(UseCases):
    """The use case of metrics reports."""

    async def store(self, permit: Permit[ReportMetrics]) -> None:
        """Store the report as a row. Raises PayloadTooLarge."""
        operation = permit.operation
        table = permit.table(operation.table)
        text = msgspec.json.encode(operation.report)
        if len(text) > MAX_BYTES:
            raise PayloadTooLarge(f"A metrics report must have at most {MAX_BYTES} bytes; this one has {len(text)}.")
        async with self._database.change(permit) as connection:
            await statistics.add_report(
                connection,
                warehouse_id=table.warehouse.id,
                table_id=table.id,
                kind=str(operation.facts()["report_type"]),
                snapshot_id=operation.report.snapshot_id,
                reported_by=permit.actor.id,
                report=text.decode(),
            )
