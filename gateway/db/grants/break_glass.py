# SPDX-License-Identifier: Apache-2.0
"""Statements on break-glass activations. All times are by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
from gateway.access.operations.break_glass_bodies import ActivationStatus
from gateway.db.grants.decided_rows import NOW, DecidedRow, DecidedRows, NewRow, Selection, lock
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.break_glass import break_glass_activations as activations
from gateway.db.schema.warehouses import warehouses

_PENDING: Final = and_(activations.c.status == ActivationStatus.PENDING.value, activations.c.latest_end > NOW)
_ACTIVE: Final = and_(activations.c.status == ActivationStatus.ACTIVE.value, activations.c.ends_at > NOW)
_ENDED: Final = or_(
    activations.c.status == ActivationStatus.ENDED.value,
    and_(activations.c.status == ActivationStatus.ACTIVE.value, activations.c.ends_at <= NOW),
)


@dataclass(frozen=True, slots=True)
class ActivationRow(DecidedRow):
    """An activation with its current status. `in_warehouse` is False if its warehouse does not exist any more."""

    named = "break-glass"

    warehouse_id: UUID
    minutes: int
    latest_end: datetime
    confirmed_by: str | None
    activated_at: datetime | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    finding: str | None
    in_warehouse: bool


def _status() -> ColumnElement[str]:
    """Return the current status as an SQL expression: pending activations lapse and active ones end by time."""
    return case(
        (_ENDED, ActivationStatus.ENDED.value),
        (
            and_(activations.c.status == ActivationStatus.PENDING.value, activations.c.latest_end <= NOW),
            ActivationStatus.LAPSED.value,
        ),
        else_=activations.c.status,
    )


_ACTIVATIONS: Final = DecidedRows(
    activations,
    ActivationRow,
    {"status": _status(), "in_warehouse": exists().where(warehouses.c.id == activations.c.warehouse_id)},
)


async def open_activation(connection: AsyncConnection, principal: str, on: ObjectKey) -> UUID | None:
    """Return the pending or active activation of the user on the object, or None.

    Until this transaction ends, it waits with other activations of the user.
    """
    await lock(connection, f"break-glass of\x1f{principal}")
    here = and_(
        activations.c.principal == principal,
        activations.c.object_type == on.type.value,
        activations.c.object_id == on.id,
    )
    found: UUID | None = (
        await connection.execute(select(activations.c.id).where(here, or_(_PENDING, _ACTIVE)).limit(1))
    ).scalar_one_or_none()
    return found


async def record(connection: AsyncConnection, new: NewRow, *, minutes: int, latest_end: datetime, active: bool) -> None:
    """Record an activation, which waits for a second person unless it is active."""
    times = _active(latest_end) if active else {"status": ActivationStatus.PENDING.value}
    await _ACTIVATIONS.record(connection, new, minutes=minutes, latest_end=latest_end, **times)


async def get(connection: AsyncConnection, id: UUID) -> ActivationRow | None:
    """Return the activation with this id, or None."""
    return await fetch_optional(connection, ActivationRow, _ACTIVATIONS.one(id))


async def page(
    connection: AsyncConnection, selection: Selection, status: ActivationStatus | None
) -> list[ActivationRow]:
    """Return a page of activations, with `status` only those with this status."""
    terms = [] if status is None else [_status() == status.value]
    return await fetch_all(connection, ActivationRow, _ACTIVATIONS.page(selection, *terms))


async def confirm(connection: AsyncConnection, id: UUID, *, by: str, ends_at: datetime) -> bool:
    """Mark a pending activation of another user as active. Return False if it is not pending."""
    other = and_(_PENDING, activations.c.principal != by)
    return await _ACTIVATIONS.change(connection, id, other, confirmed_by=by, **_active(ends_at))


async def withdraw(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark a pending activation as lapsed. Return False if it is not pending."""
    return await _ACTIVATIONS.change(connection, id, _PENDING, **_ended(ActivationStatus.LAPSED, by))


async def end(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark an active activation as ended. Return False if it is not active, or its grants expired already."""
    return await _ACTIVATIONS.change(connection, id, _ACTIVE, **_ended(ActivationStatus.ENDED, by))


async def end_of_deleted(connection: AsyncConnection, user: str, *, by: str, until: datetime | None) -> None:
    """Mark the open activations of a deleted user as lapsed or ended, those from before `until` if it is given.

    The reviews of those that were active stay open.
    """
    made = [] if until is None else [activations.c.created_at <= until]
    for is_open, status in ((_PENDING, ActivationStatus.LAPSED), (_ACTIVE, ActivationStatus.ENDED)):
        ended = update(activations).where(activations.c.principal == user, is_open, *made)
        await connection.execute(ended.values(_ended(status, by)))


async def review(connection: AsyncConnection, id: UUID, *, by: str, finding: str) -> bool:
    """Close the review of an ended activation of another user. Return False if it has no open review."""
    closed = {"status": ActivationStatus.REVIEWED.value, "reviewed_by": by, "reviewed_at": NOW, "finding": finding}
    return await _ACTIVATIONS.change(connection, id, and_(_ENDED, activations.c.principal != by), **closed)


def _active(ends_at: datetime) -> dict[str, object]:
    return {"status": ActivationStatus.ACTIVE.value, "activated_at": NOW, "ends_at": ends_at}


def _ended(status: ActivationStatus, by: str) -> dict[str, object]:
    return {"status": status.value, "ended_by": by, "ended_at": NOW}
