# SPDX-License-Identifier: Apache-2.0
"""Statements on tickets, the records of changes that wait for approval. All times are by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Text, and_, case, cast, delete, func, literal, or_, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.change_tickets import ChangeTicket, ChangeTicketSummary, TicketStatus
from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.changes import change_tickets

_OPEN: Final = change_tickets.c.status.in_((TicketStatus.PENDING, TicketStatus.APPROVED, TicketStatus.REJECTED))
_OPEN_IN_INDEX: Final = text("status in ('pending', 'approved', 'rejected')")
"""The condition of the unique index, without bound parameters: PostgreSQL compares its text."""

_NOW: Final = func.clock_timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """A change that needs approval. `change` is JSON text; `on` is the object that the ticket is about."""

    digest: str
    warehouse_id: UUID
    on: ObjectKey
    name: str
    kind: str
    principal: str
    reasons: Sequence[str]
    change: bytes


class TicketHead(NamedTuple):
    """The part of a ticket that determines which principals see it."""

    id: UUID
    object_type: str
    object_id: UUID
    principal: str

    @property
    def on(self) -> ObjectKey:
        """Return the object that the ticket is about."""
        return ObjectKey(ObjectType(self.object_type), str(self.object_id))


_HEADS: Final = select(*columns_for(TicketHead, change_tickets))


async def open_ticket(connection: AsyncConnection, new: NewTicket, *, lifetime: float) -> ChangeTicket:
    """Return the open ticket of this change. If there is none, make one that is pending for `lifetime` seconds.

    A ticket lapses when its time is over. It also lapses if its reasons do not include all of the new ones, because its
    approver did not decide about these.
    """
    of_change = and_(change_tickets.c.digest == new.digest, _OPEN)
    reasons = cast(literal(list(new.reasons), ARRAY(Text)), ARRAY(Text))
    outdated = or_(change_tickets.c.expires_at <= _NOW, ~change_tickets.c.reasons.contains(reasons))
    await connection.execute(update(change_tickets).where(of_change, outdated).values(status=TicketStatus.LAPSED.value))
    opened = await connection.execute(
        insert(change_tickets)
        .values(
            id=uuid7(),
            digest=new.digest,
            warehouse_id=new.warehouse_id,
            object_type=new.on.type.value,
            object_id=UUID(new.on.id),
            name=new.name,
            kind=new.kind,
            principal=new.principal,
            reasons=list(new.reasons),
            change=cast(literal(new.change.decode(), Text), JSONB),
            expires_at=_NOW + _seconds(lifetime),
        )
        # The update changes nothing and returns the existing ticket. A second statement would read the ticket later,
        # and a concurrent run of the same change could use it before.
        .on_conflict_do_update(
            index_elements=["digest"], index_where=_OPEN_IN_INDEX, set_={"digest": change_tickets.c.digest}
        )
        .returning(*_columns())
    )
    return msgspec.convert(opened.one(), ChangeTicket, from_attributes=True)


async def use(connection: AsyncConnection, id: UUID) -> bool:
    """Mark an approved ticket as used, in the transaction of its change. Return False if it is not approved any more.

    A concurrent transaction waits here for the first one and then gets False, so an approval is used only once.
    """
    result = await connection.execute(
        update(change_tickets)
        .where(
            change_tickets.c.id == id,
            change_tickets.c.status == TicketStatus.APPROVED.value,
            change_tickets.c.expires_at > _NOW,
        )
        .values(status=TicketStatus.USED.value, used_at=_NOW)
    )
    return bool(result.rowcount)


async def decide(
    connection: AsyncConnection, id: UUID, *, status: TicketStatus, by: str, comment: str | None, lifetime: float
) -> bool:
    """Approve or reject a pending ticket. The decision is valid for `lifetime` seconds. Return False if it is not
    pending.

    The requester of the change cannot decide about it.
    """
    statement = (
        update(change_tickets)
        .where(
            change_tickets.c.id == id,
            change_tickets.c.status == TicketStatus.PENDING.value,
            change_tickets.c.expires_at > _NOW,
            change_tickets.c.principal != by,
        )
        .values(
            status=status.value, decided_by=by, decided_at=_NOW, comment=comment, expires_at=_NOW + _seconds(lifetime)
        )
    )
    return bool((await connection.execute(statement)).rowcount)


async def get(connection: AsyncConnection, warehouse_id: UUID, id: UUID) -> ChangeTicket | None:
    """Return the ticket with this id in the warehouse, or None."""
    where = (change_tickets.c.warehouse_id == warehouse_id, change_tickets.c.id == id)
    row = (await connection.execute(select(*_columns()).where(*where))).one_or_none()
    return None if row is None else msgspec.convert(row, ChangeTicket, from_attributes=True)


async def head(connection: AsyncConnection, warehouse_id: UUID, id: UUID) -> TicketHead | None:
    """Return the head of the ticket with this id in the warehouse, or None."""
    where = (change_tickets.c.warehouse_id == warehouse_id, change_tickets.c.id == id)
    return await fetch_optional(connection, TicketHead, _HEADS.where(*where))


async def summaries(
    connection: AsyncConnection, ids: Sequence[UUID], *, status: TicketStatus | None
) -> Sequence[ChangeTicketSummary]:
    """Return these tickets without their updates, oldest first.

    Tickets that no longer have the `status` are left out.
    """
    if not ids:
        return []
    terms: list[ColumnElement[bool]] = [change_tickets.c.id.in_(list(ids))]
    if status is not None:
        terms.append(_status() == status.value)
    columns = [each for each in _columns() if each.name != "change"]
    rows = (await connection.execute(select(*columns).where(*terms).order_by(change_tickets.c.id))).all()
    return msgspec.convert(rows, list[ChangeTicketSummary], from_attributes=True)


async def page(
    connection: AsyncConnection,
    warehouse_id: UUID,
    *,
    status: TicketStatus | None,
    after: UUID | None,
    limit: int,
) -> Sequence[TicketHead]:
    """Return the heads of tickets in a warehouse, oldest first. The page starts after the id `after`."""
    terms: list[ColumnElement[bool]] = [change_tickets.c.warehouse_id == warehouse_id]
    if status is not None:
        terms.append(_status() == status.value)
    if after is not None:
        terms.append(change_tickets.c.id > after)
    return await fetch_all(connection, TicketHead, _HEADS.where(*terms).order_by(change_tickets.c.id).limit(limit))


async def waiting(connection: AsyncConnection, warehouse_id: UUID, principal: str) -> int:
    """Return the number of pending tickets that a principal requested in a warehouse."""
    terms = (
        change_tickets.c.warehouse_id == warehouse_id,
        change_tickets.c.principal == principal,
        change_tickets.c.status == TicketStatus.PENDING.value,
        change_tickets.c.expires_at > _NOW,
    )
    return int((await connection.execute(select(func.count()).where(*terms))).scalar_one())


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> None:
    """Delete up to `limit` tickets that expired more than `older_than_days` ago. The audit keeps the decisions."""
    age = func.make_interval(0, 0, 0, older_than_days)
    old = (
        select(change_tickets.c.id)
        .where(change_tickets.c.expires_at < _NOW - age)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    await connection.execute(delete(change_tickets).where(change_tickets.c.id.in_(old.scalar_subquery())))


def _columns() -> Sequence[ColumnElement[Any]]:
    return [_status().label("status") if each.name == "status" else each for each in change_tickets.c]


def _status() -> ColumnElement[str]:
    """Return the current status as an SQL expression: an open ticket whose time is over has lapsed."""
    expired = and_(_OPEN, change_tickets.c.expires_at <= _NOW)
    return case((expired, TicketStatus.LAPSED.value), else_=change_tickets.c.status)


def _seconds(seconds: float) -> ColumnElement[object]:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
