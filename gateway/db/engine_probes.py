# SPDX-License-Identifier: Apache-2.0
"""Statements on the probes of engines. Every time is that of the database's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Text, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema.data_policies import engine_probes
from gateway.db.schema.warehouses import warehouses

_NOW: Final = func.clock_timestamp()
_ID: Final = engine_probes.c.challenge[bindparam("key", "id", Text)].astext


async def now(connection: AsyncConnection) -> datetime:
    """Return the time of the database."""
    time: datetime = (await connection.execute(select(_NOW))).scalar_one()
    return time


async def open_probe(
    connection: AsyncConnection, engine: str, warehouse_id: UUID, challenge: Mapping[str, Any]
) -> None:
    """Store the challenge of a new probe. It replaces an open one, whose result is then refused."""
    statement = insert(engine_probes).values(engine=engine, warehouse_id=warehouse_id, challenge=dict(challenge))
    await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["engine", "warehouse_id"], set_={"challenge": statement.excluded.challenge}
        )
    )


async def lock(connection: AsyncConnection, warehouse_id: UUID, probe_id: UUID) -> AnyRow | None:
    """Return the row of a probe as `in_warehouse` does; None if it is replaced or unknown.

    The row is locked until the transaction ends, so one result is recorded for each probe.
    """
    where = (engine_probes.c.warehouse_id == warehouse_id, str(probe_id) == _ID)
    statement = select(engine_probes, _NOW.label("now")).where(*where)
    return (await connection.execute(statement.with_for_update())).one_or_none()


async def close(
    connection: AsyncConnection,
    engine: str,
    warehouse_id: UUID,
    probe_id: UUID,
    *,
    verdict: str,
    detail: str,
    valid_days: float,
) -> None:
    """Store the verdict of the open probe, and keep only the id of its challenge. It counts for `valid_days`."""
    passed = verdict == "passed"
    statement = (
        update(engine_probes)
        .where(engine_probes.c.engine == engine, engine_probes.c.warehouse_id == warehouse_id)
        .values(
            challenge={"id": str(probe_id)},
            verdict=verdict,
            detail=detail,
            probed_at=_NOW,
            valid_until=_NOW + _days(valid_days) if passed else None,
        )
    )
    await connection.execute(statement)


async def change_revision(connection: AsyncConnection, warehouse_id: UUID) -> None:
    """Change the revision of a warehouse. Requests that were allowed before are decided again before they commit or
    receive credentials.
    """
    await connection.execute(update(warehouses).where(warehouses.c.id == warehouse_id).values(revision=uuid7()))


async def in_warehouse(connection: AsyncConnection, warehouse_id: UUID) -> Sequence[AnyRow]:
    """Return the rows of a warehouse with the time `now`, in the order of the engines."""
    statement = (
        select(engine_probes, _NOW.label("now"))
        .where(engine_probes.c.warehouse_id == warehouse_id)
        .order_by(engine_probes.c.engine)
    )
    return (await connection.execute(statement)).all()


def _days(days: float) -> ColumnElement[object]:
    return func.make_interval(0, 0, 0, 0, 0, 0, days * 86_400)
