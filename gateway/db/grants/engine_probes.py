# SPDX-License-Identifier: Apache-2.0
"""Statements on probes, which test whether an engine enforces restrictions. All times are by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Text, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.policies import engine_probes
from gateway.db.schema.warehouses import warehouses

_NOW: Final = func.clock_timestamp()
_ID: Final = engine_probes.c.challenge[bindparam("key", "id", Text)].astext


class ProbeRow(NamedTuple):
    """The state of an engine in a warehouse, and the current time."""

    engine: str
    warehouse_id: UUID
    challenge: Mapping[str, Any] | None
    verdict: Literal["passed", "failed"] | None
    detail: str | None
    probed_at: datetime | None
    valid_until: datetime | None
    warn_until: datetime | None
    now: datetime


class EnforcerRow(NamedTuple):
    """The verdict of an engine's last probe in a warehouse, and the current time."""

    engine: str
    warehouse_id: UUID
    verdict: str | None
    valid_until: datetime | None
    warn_until: datetime | None
    now: datetime


_COLUMNS: Final = [engine_probes.c[name] for name in ProbeRow._fields[:-1]]


async def now(connection: AsyncConnection) -> datetime:
    """Return the time of the database's clock."""
    time: datetime = (await connection.execute(select(_NOW))).scalar_one()
    return time


async def open_probe(
    connection: AsyncConnection, engine: str, warehouse_id: UUID, challenge: Mapping[str, Any]
) -> None:
    """Store the challenge of a new probe. It replaces an open probe of the engine, whose result is refused then."""
    statement = insert(engine_probes).values(engine=engine, warehouse_id=warehouse_id, challenge=dict(challenge))
    await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["engine", "warehouse_id"], set_={"challenge": statement.excluded.challenge}
        )
    )


async def lock(connection: AsyncConnection, warehouse_id: UUID, probe_id: UUID) -> ProbeRow | None:
    """Return the row of an open probe as `in_warehouse` does. Return None if it is replaced or unknown.

    The row is locked until the transaction ends, so one result is recorded for each probe.
    """
    where = (engine_probes.c.warehouse_id == warehouse_id, str(probe_id) == _ID)
    statement = select(*_COLUMNS, _NOW.label("now")).where(*where)
    return await fetch_optional(connection, ProbeRow, statement.with_for_update())


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
    """Store the verdict of the open probe, which is valid for `valid_days`. Of its challenge, keep only the id."""
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


async def finish_self_test(connection: AsyncConnection, engine: str, warehouse_id: UUID, probe_id: UUID) -> None:
    """Close the open probe of an engine, and do not change whether the engine is trusted."""
    at = (engine_probes.c.engine == engine, engine_probes.c.warehouse_id == warehouse_id)
    await connection.execute(update(engine_probes).where(*at).values(challenge={"id": str(probe_id)}))


_GRANTED: Final = text(
    """
    with recursive holders as (
        select cast('user' as text) as principal_type, cast(:engine as text) as principal_id
        union
        select 'role', g.object_id
        from holders h join grants g on g.principal_type = h.principal_type and g.principal_id = h.principal_id
        where g.object_type = 'role' and g.privilege in ('assignee', 'ownership'))
    select exists (
        select 1 from holders h join grants g on g.principal_type = h.principal_type and g.principal_id = h.principal_id
        where g.privilege in ('enforcer', 'delegate') and g.granted_by = :caller
            and (g.expires_at is null or g.expires_at > clock_timestamp()))
    """
)


async def granted_by(connection: AsyncConnection, engine: str, caller: str) -> bool:
    """Return True if the caller granted `enforcer` or `delegate` on any object to the engine, or to one of its
    roles.
    """
    return bool((await connection.execute(_GRANTED, {"engine": engine, "caller": caller})).scalar_one())


_SERVED: Final = text(
    """
    select exists (
        select 1 from live_credentials c join tables t on t.id = c.table_id
        where t.warehouse_id = :warehouse and t.name = :canary and c.engine = :engine and c.principal = :principal
            and c.issued_at >= :since)
    """
)


async def was_served(
    connection: AsyncConnection, warehouse_id: UUID, canary: str, engine: str, principal: str, since: datetime
) -> bool:
    """Return True if, since the time `since`, the gateway gave keys of the canary to this engine acting for this
    user.
    """
    found = await connection.execute(
        _SERVED,
        {"warehouse": warehouse_id, "canary": canary, "engine": engine, "principal": principal, "since": since},
    )
    return bool(found.scalar_one())


async def change_revision(connection: AsyncConnection, warehouse_id: UUID) -> None:
    """Change the revision of a warehouse.

    Requests that were allowed before are decided again before they commit or receive credentials.
    """
    await connection.execute(update(warehouses).where(warehouses.c.id == warehouse_id).values(revision=uuid7()))


async def in_warehouse(connection: AsyncConnection, warehouse_id: UUID) -> Sequence[ProbeRow]:
    """Return the probe rows of a warehouse, ordered by the engines."""
    statement = (
        select(*_COLUMNS, _NOW.label("now"))
        .where(engine_probes.c.warehouse_id == warehouse_id)
        .order_by(engine_probes.c.engine)
    )
    return await fetch_all(connection, ProbeRow, statement)


# The search starts with the engines, of which there are few, because `grants` has no index by privilege.
_OF_ENFORCERS: Final = text(
    """
    with recursive holders as (
        select engine, cast('user' as text) as principal_type, engine as principal_id from engine_probes
        union
        select h.engine, 'role', g.object_id
        from holders h join grants g on g.principal_type = h.principal_type and g.principal_id = h.principal_id
        where g.object_type = 'role' and g.privilege in ('assignee', 'ownership')
            and (g.expires_at is null or g.expires_at > clock_timestamp()))
    select p.engine, p.warehouse_id, p.verdict, p.valid_until, p.warn_until, clock_timestamp() as now
    from engine_probes p join warehouses w on w.id = p.warehouse_id
    where exists (
        select 1
        from holders h join grants g on g.principal_type = h.principal_type and g.principal_id = h.principal_id
        where h.engine = p.engine and g.privilege = 'enforcer'
            and (g.expires_at is null or g.expires_at > clock_timestamp()))
    """
)


async def of_enforcers(connection: AsyncConnection) -> Sequence[EnforcerRow]:
    """Return the state of each engine that holds `enforcer` on any object, itself or by a role.

    Other engines need no probe.
    """
    return await fetch_all(connection, EnforcerRow, _OF_ENFORCERS)


def _days(days: float) -> ColumnElement[object]:
    return func.make_interval(0, 0, 0, 0, 0, 0, days * 86_400)
