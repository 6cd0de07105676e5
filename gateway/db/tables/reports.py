# SPDX-License-Identifier: Apache-2.0
"""Statements on metrics reports of engines about scans and commits."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Text, cast, delete, func, insert, literal, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.statistics import table_reports


async def add(
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
