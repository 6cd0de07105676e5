# SPDX-License-Identifier: Apache-2.0
"""Statements on break-glass activations. All times are by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, exists, func, insert, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.break_glass_bodies import ActivationStatus
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.break_glass import break_glass_activations as activations
from gateway.db.schema.warehouses import warehouses

_NOW: Final = func.clock_timestamp()
_PENDING: Final = and_(activations.c.status == ActivationStatus.PENDING.value, activations.c.latest_end > _NOW)
_ACTIVE: Final = and_(activations.c.status == ActivationStatus.ACTIVE.value, activations.c.ends_at > _NOW)
_ENDED: Final = or_(
    activations.c.status == ActivationStatus.ENDED.value,
    and_(activations.c.status == ActivationStatus.ACTIVE.value, activations.c.ends_at <= _NOW),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewActivation:
    """An activation to record. With `ends_at` it is active from now on, otherwise it waits for a second person."""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID
    on: ObjectKey
    name: str
    privileges: Sequence[str]
    reason: str
    minutes: int
    latest_end: datetime
    ends_at: datetime | None


class ActivationRow(NamedTuple):
    """An activation with its current status. `in_warehouse` is False if its warehouse does not exist any more."""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID
    object_type: str
    object_id: str
    name: str
    privileges: list[str]
    reason: str
    minutes: int
    status: str
    created_at: datetime
    latest_end: datetime
    confirmed_by: str | None
    activated_at: datetime | None
    ends_at: datetime | None
    ended_by: str | None
    ended_at: datetime | None
    reviewed_by: str | None
    reviewed_at: datetime | None
    finding: str | None
    in_warehouse: bool

    @property
    def on(self) -> ObjectKey:
        """Return the object of the activation."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def grant_reason(self) -> str:
        """Return the reason of the grants of the activation."""
        return grant_reason(self.id, self.reason)


def grant_reason(id: UUID, reason: str) -> str:
    """Return the reason of a grant that names the activation."""
    return f"break-glass {id}: {reason}"


async def open_activation(connection: AsyncConnection, principal: str, on: ObjectKey) -> UUID | None:
    """Return the pending or active activation of the user on the object, or None.

    Until this transaction ends, it waits with other activations of the user.
    """
    await connection.execute(_LOCK, {"name": f"break-glass of\x1f{principal}"})
    here = and_(
        activations.c.principal == principal,
        activations.c.object_type == on.type.value,
        activations.c.object_id == on.id,
    )
    found: UUID | None = (
        await connection.execute(select(activations.c.id).where(here, or_(_PENDING, _ACTIVE)).limit(1))
    ).scalar_one_or_none()
    return found


_LOCK = text("select pg_advisory_xact_lock(hashtextextended(:name, 7))")


async def record(connection: AsyncConnection, new: NewActivation) -> None:
    """Record an activation."""
    active = new.ends_at is not None
    await connection.execute(
        insert(activations).values(
            id=new.id,
            principal=new.principal,
            project_id=new.project_id,
            warehouse_id=new.warehouse_id,
            object_type=new.on.type.value,
            object_id=new.on.id,
            name=new.name,
            privileges=list(new.privileges),
            reason=new.reason,
            minutes=new.minutes,
            status=(ActivationStatus.ACTIVE if active else ActivationStatus.PENDING).value,
            latest_end=new.latest_end,
            activated_at=_NOW if active else None,
            ends_at=new.ends_at,
        )
    )


async def get(connection: AsyncConnection, id: UUID) -> ActivationRow | None:
    """Return the activation with this id, or None."""
    return await fetch_optional(connection, ActivationRow, select(*_columns()).where(activations.c.id == id))


async def page(
    connection: AsyncConnection,
    *,
    project_id: str | None,
    status: ActivationStatus | None,
    after: UUID | None,
    limit: int,
) -> Sequence[ActivationRow]:
    """Return activations, oldest first, that begin after the id `after`. `project_id` limits them to one project."""
    terms: list[ColumnElement[bool]] = []
    if project_id is not None:
        terms.append(activations.c.project_id == project_id)
    if status is not None:
        terms.append(_status() == status.value)
    if after is not None:
        terms.append(activations.c.id > after)
    return await fetch_all(
        connection, ActivationRow, select(*_columns()).where(*terms).order_by(activations.c.id).limit(limit)
    )


async def confirm(connection: AsyncConnection, id: UUID, *, by: str, ends_at: datetime) -> bool:
    """Mark a pending activation of another user as active. Return False if it is not pending."""
    other = and_(_PENDING, activations.c.principal != by)
    return await _change(
        connection,
        id,
        other,
        status=ActivationStatus.ACTIVE.value,
        confirmed_by=by,
        activated_at=_NOW,
        ends_at=ends_at,
    )


async def withdraw(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark a pending activation as lapsed. Return False if it is not pending."""
    return await _change(connection, id, _PENDING, status=ActivationStatus.LAPSED.value, ended_by=by, ended_at=_NOW)


async def end(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark an active activation as ended. Return False if it is not active, or its grants expired already."""
    return await _change(connection, id, _ACTIVE, status=ActivationStatus.ENDED.value, ended_by=by, ended_at=_NOW)


async def review(connection: AsyncConnection, id: UUID, *, by: str, finding: str) -> bool:
    """Close the review of an ended activation of another user. Return False if it has no open review."""
    other = and_(_ENDED, activations.c.principal != by)
    return await _change(
        connection,
        id,
        other,
        status=ActivationStatus.REVIEWED.value,
        reviewed_by=by,
        reviewed_at=_NOW,
        finding=finding,
    )


async def _change(connection: AsyncConnection, id: UUID, condition: ColumnElement[bool], **values: object) -> bool:
    changed = await connection.execute(update(activations).where(activations.c.id == id, condition).values(**values))
    return bool(changed.rowcount)


def _columns() -> Sequence[ColumnElement[Any]]:
    there = exists().where(warehouses.c.id == activations.c.warehouse_id).label("in_warehouse")
    stored = [
        _status().label("status") if name == "status" else activations.c[name]
        for name in ActivationRow._fields
        if name != "in_warehouse"
    ]
    return [*stored, there]


def _status() -> ColumnElement[str]:
    """Return the current status as an SQL expression: pending activations lapse and active ones end by time."""
    return case(
        (_ENDED, ActivationStatus.ENDED.value),
        (
            and_(activations.c.status == ActivationStatus.PENDING.value, activations.c.latest_end <= _NOW),
            ActivationStatus.LAPSED.value,
        ),
        else_=activations.c.status,
    )
