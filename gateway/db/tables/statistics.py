# SPDX-License-Identifier: Apache-2.0
"""Statements on hourly counts of requests, tables and views, and on metrics reports of engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Text, cast, delete, func, insert, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.pools.rows import fetch_all
from gateway.db.schema.statistics import table_reports

KEPT_DAYS: Final = 400
"""Retention of counts of requests: a year, and a month for comparison."""


# Counts are added to existing rows, always in the same order, so processes neither lose counts nor deadlock. Counts of
# deleted projects and warehouses are left out. The hour is that of the statement.
class CallCount(NamedTuple):
    """The number of calls of a route in one hour, with the name of the warehouse."""

    hour: datetime
    calls: int
    route: str
    status: int
    warehouse_id: UUID | None
    warehouse_name: str | None
    created_at: datetime
    updated_at: datetime | None


class HourCounts(NamedTuple):
    """The numbers of tables and views at the end of an hour."""

    hour: datetime
    tables: int
    views: int
    updated_at: datetime


_ADD_CALLS = text(
    """
    insert into endpoint_statistics (project_id, warehouse_id, route, status, hour, count)
    select c.project_id, c.warehouse_id, c.route, c.status, date_trunc('hour', statement_timestamp(), 'UTC'),
        sum(c.count)
    from unnest(cast(:projects as text[]), cast(:warehouses as uuid[]), cast(:routes as text[]),
                cast(:statuses as int[]), cast(:counts as bigint[])) c(project_id, warehouse_id, route, status, count)
    where exists (select 1 from projects p where p.id = c.project_id)
        and (c.warehouse_id is null or exists (select 1 from warehouses w where w.id = c.warehouse_id))
    group by 1, 2, 3, 4
    order by 1, 2, 3, 4
    on conflict on constraint endpoint_statistics_key do update
        set count = endpoint_statistics.count + excluded.count, updated_at = clock_timestamp()
    """
)

_FORGET_CALLS = text(
    """
    delete from endpoint_statistics where ctid = any(array(
        select e.ctid from endpoint_statistics e
        where e.hour < clock_timestamp() - make_interval(days => :days) limit 1000))
    """
)

_CALLS = text(
    """
    select e.hour, e.count as calls, e.route, e.status, e.warehouse_id, w.name as warehouse_name,
        e.created_at, e.updated_at
    from endpoint_statistics e left join warehouses w on w.id = e.warehouse_id
    where (cast(:project_id as text) is null or e.project_id = :project_id)
        and (cast(:warehouse_id as uuid) is null or e.warehouse_id = :warehouse_id)
        and (not :unmapped or e.warehouse_id is null)
        and (cardinality(cast(:statuses as int[])) = 0 or e.status = any(cast(:statuses as int[])))
        and e.hour >= :start and e.hour < :end
    order by e.hour, w.name, e.warehouse_id, e.route, e.status limit :limit
    """
)

# Only one process at a time sums up changes. A change that is committed late is added to the latest hour that was
# summed up. The lock is a separate statement, so that the statement after it sees all changes of the previous holder.
_LOCK = text("select pg_try_advisory_xact_lock(hashtextextended('warehouse statistics', 7))")

_SUM_UP = text(
    """
    with taken as (
        delete from warehouse_changes where id in (select id from warehouse_changes order by id limit 10000)
        returning warehouse_id, tables, views, at),
    changed as (
        select t.warehouse_id, greatest(date_trunc('hour', t.at, 'UTC'), l.hour) as hour, l.tables as had_tables,
            l.views as had_views, sum(t.tables) as tables, sum(t.views) as views
        from taken t left join lateral (
            select s.hour, s.tables, s.views from warehouse_statistics s
            where s.warehouse_id = t.warehouse_id order by s.hour desc limit 1) l on true
        group by 1, 2, 3, 4)
    insert into warehouse_statistics (warehouse_id, hour, tables, views)
    select c.warehouse_id, c.hour, coalesce(c.had_tables, 0) + sum(c.tables) over earlier,
        coalesce(c.had_views, 0) + sum(c.views) over earlier
    from changed c window earlier as (partition by c.warehouse_id order by c.hour)
    on conflict (warehouse_id, hour) do update
        set tables = excluded.tables, views = excluded.views, updated_at = clock_timestamp()
    """
)

# The sum includes changes that are not yet summed up, so that the latest hour is current.
_COUNTS = text(
    """
    with pending as (
        select sum(c.tables) as tables, sum(c.views) as views, max(c.at) as at
        from warehouse_changes c where c.warehouse_id = :warehouse_id),
    latest as (
        select s.hour, s.tables, s.views from warehouse_statistics s
        where s.warehouse_id = :warehouse_id order by s.hour desc limit 1),
    present as (
        select greatest(date_trunc('hour', p.at, 'UTC'), l.hour) as hour, coalesce(l.tables, 0) + p.tables as tables,
            coalesce(l.views, 0) + p.views as views, p.at as updated_at
        from pending p left join latest l on true where p.at is not null),
    told as (
        select * from present
        union all
        select s.hour, s.tables, s.views, s.updated_at from warehouse_statistics s
        where s.warehouse_id = :warehouse_id and not exists (select 1 from present p where p.hour = s.hour))
    select hour, tables, views, updated_at from told
    where cast(:before as timestamptz) is null or hour < :before order by hour desc limit :limit
    """
)


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of responses of a route with one status, for a project and, if it is not None, a warehouse."""

    project_id: str
    warehouse_id: UUID | None
    route: str
    status: int
    count: int


async def add_calls(connection: AsyncConnection, counted: Sequence[Counted]) -> None:
    """Add these counts to the counts of the current hour."""
    if not counted:
        return
    values = {
        "projects": [each.project_id for each in counted],
        "warehouses": [each.warehouse_id for each in counted],
        "routes": [each.route for each in counted],
        "statuses": [each.status for each in counted],
        "counts": [each.count for each in counted],
    }
    await connection.execute(_ADD_CALLS, values)


async def forget_calls(connection: AsyncConnection) -> None:
    """Delete some counts that are older than KEPT_DAYS."""
    await connection.execute(_FORGET_CALLS, {"days": KEPT_DAYS})


async def calls(
    connection: AsyncConnection,
    *,
    project_id: str | None,
    warehouse_id: UUID | None,
    unmapped: bool,
    statuses: Sequence[int],
    start: datetime,
    end: datetime,
    limit: int,
) -> Sequence[CallCount]:
    """Return the counts of hours that begin in [start, end), of a project or a warehouse, ordered by hour."""
    values: dict[str, Any] = {
        "project_id": project_id,
        "warehouse_id": warehouse_id,
        "unmapped": unmapped,
        "limit": limit,
    }
    values |= {"statuses": list(statuses), "start": start, "end": end}
    return await fetch_all(connection, CallCount, _CALLS, values)


async def sum_up(connection: AsyncConnection) -> None:
    """Add pending changes to the counts of their hours. Do nothing if another process is doing it."""
    if (await connection.execute(_LOCK)).scalar_one():
        await connection.execute(_SUM_UP)


async def counts(
    connection: AsyncConnection, warehouse_id: UUID, *, before: datetime | None, limit: int
) -> Sequence[HourCounts]:
    """Return the numbers of tables and views of a warehouse by hour, latest first.

    Only hours before `before` are returned.
    """
    values = {"warehouse_id": warehouse_id, "before": before, "limit": limit}
    return await fetch_all(connection, HourCounts, _COUNTS, values)


async def add_report(
    connection: AsyncConnection,
    *,
    warehouse_id: UUID,
    table_id: UUID,
    kind: str,
    snapshot_id: int,
    reported_by: str,
    report: str,
) -> None:
    """Store a report. `report` is JSON text."""
    await connection.execute(
        insert(table_reports).values(
            id=uuid7(),
            warehouse_id=warehouse_id,
            table_id=table_id,
            kind=kind,
            snapshot_id=snapshot_id,
            reported_by=reported_by,
            report=cast(literal(report, Text), JSONB),
        )
    )


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> int:
    """Delete up to `limit` reports older than `older_than_days`. Return their number."""
    age = func.make_interval(0, 0, 0, older_than_days)
    old = select(table_reports.c.id).where(table_reports.c.at < func.clock_timestamp() - age).limit(limit)
    result = await connection.execute(delete(table_reports).where(table_reports.c.id.in_(old.scalar_subquery())))
    return int(result.rowcount)
