# SPDX-License-Identifier: Apache-2.0
"""Statements on access requests. All times are by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    any_,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    union,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import Holders
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.access_request_bodies import AccessRequestStatus
from gateway.access.tuples import PrincipalType
from gateway.db.grants.decided_rows import (
    NOW,
    DecidedRow,
    DecidedRows,
    NewRow,
    Selection,
    live_grants_to,
    lock,
    seconds,
)
from gateway.db.pools.rows import fetch_all, fetch_one, fetch_optional
from gateway.db.schema.access_requests import access_requests as requests
from gateway.db.schema.grants import grants
from gateway.db.schema.policies import tag_attachments

_PENDING: Final = and_(requests.c.status == AccessRequestStatus.PENDING.value, requests.c.expires_at > NOW)


@dataclass(frozen=True, slots=True)
class AccessRequestRow(DecidedRow):
    """A request with its current status. `duration` is in seconds. `bundle` is None for a request made alone."""

    named = "access request"

    bundle: UUID | None
    duration: int
    expires_at: datetime
    reminded_at: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None
    granted: list[str] | None


class OpenRequests(NamedTuple):
    """The numbers of pending requests, and the id of one for the same privileges of the same user on the object."""

    of_principal: int
    on_object: int
    same: UUID | None


def _status() -> ColumnElement[str]:
    """Return the current status as an SQL expression.

    A pending request expires by time. An approved one has ended when none of its grants is live, whatever ended them.
    """
    live = exists().where(
        grants.c.object_type == requests.c.object_type,
        grants.c.object_id == requests.c.object_id,
        grants.c.principal_type == PrincipalType.USER.value,
        grants.c.principal_id == requests.c.principal,
        grants.c.privilege == any_(requests.c.granted),
        grants.c.reason == func.concat(f"{AccessRequestRow.named} ", requests.c.id, ": ", requests.c.reason),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > NOW),
    )
    approved = requests.c.status == AccessRequestStatus.APPROVED.value
    return case(
        (
            and_(requests.c.status == AccessRequestStatus.PENDING.value, requests.c.expires_at <= NOW),
            AccessRequestStatus.EXPIRED.value,
        ),
        (and_(approved, ~live), AccessRequestStatus.ENDED.value),
        else_=requests.c.status,
    )


_REQUESTS: Final = DecidedRows(requests, AccessRequestRow, {"status": _status()})


async def record(
    connection: AsyncConnection, new: NewRow, *, bundle: UUID | None, duration: int, lifetime: float
) -> None:
    """Record a pending request. `duration` and `lifetime` are in seconds."""
    await _REQUESTS.record(connection, new, bundle=bundle, duration=duration, expires_at=NOW + seconds(lifetime))


async def open_requests(
    connection: AsyncConnection, principal: str, on: ObjectKey, privileges: Sequence[str]
) -> OpenRequests:
    """Return the numbers of pending requests of the principal, and on the object.

    Until this transaction ends, other new requests of the principal and those on the object wait, so that concurrent
    requests cannot exceed the limits together.
    """
    await lock(connection, f"access requests of\x1f{principal}", f"access requests on\x1f{on.type}\x1f{on.id}")
    here = and_(requests.c.object_type == on.type.value, requests.c.object_id == on.id)
    own = requests.c.principal == principal
    equal = and_(own, here, requests.c.privileges == list(privileges))
    one = select(requests.c.id).where(_PENDING, equal).limit(1).scalar_subquery()
    counts = select(
        select(func.count()).where(_PENDING, own).scalar_subquery().label("of_principal"),
        select(func.count()).where(_PENDING, here).scalar_subquery().label("on_object"),
        one.label("same"),
    )
    return await fetch_one(connection, OpenRequests, counts)


async def tag_to_request_by(connection: AsyncConnection, object_id: UUID, holders: Holders) -> UUID | None:
    """Return a tag on the object itself on which one of the principals holds `requester`; None if there is none.

    Of several tags it is that of the oldest grant.
    """
    attached = tag_attachments.c
    found = (
        select(attached.tag_id)
        .select_from(grants.join(tag_attachments, grants.c.object_id == cast(attached.tag_id, Text)))
        .where(
            live_grants_to(holders),
            grants.c.object_type == ObjectType.TAG.value,
            grants.c.privilege == Privilege.REQUESTER.value,
            attached.object_id == object_id,
            attached.field_id.is_(None),
        )
    )
    tag: UUID | None = (await connection.execute(found.order_by(grants.c.id).limit(1))).scalar_one_or_none()
    return tag


async def get(connection: AsyncConnection, id: UUID) -> AccessRequestRow | None:
    """Return the request with this id, or None."""
    return await fetch_optional(connection, AccessRequestRow, _REQUESTS.one(id))


async def bundled(connection: AsyncConnection, id: UUID) -> list[AccessRequestRow]:
    """Return the request with this id, or the requests of the bundle with this id, in the order of their ids."""
    return await fetch_all(connection, AccessRequestRow, _bundled(id))


def _bundled(id: UUID) -> Select[Any]:
    # Each half reads its index. With `or`, the order of the ids could make the planner read the whole table.
    ids = union(select(requests.c.id).where(requests.c.id == id), select(requests.c.id).where(requests.c.bundle == id))
    return _REQUESTS.all_of(select(ids.subquery().c.id))


async def page(
    connection: AsyncConnection, selection: Selection, status: AccessRequestStatus | None
) -> list[AccessRequestRow]:
    """Return a page of requests, with `status` only those with this status."""
    terms: list[ColumnElement[bool]] = []
    if status is not None:
        terms.append(_status() == status.value)
    if status is AccessRequestStatus.PENDING:
        # The condition of the partial index, which the computed status does not imply for the planner.
        terms.append(requests.c.status == text("'pending'"))
    return await fetch_all(connection, AccessRequestRow, _REQUESTS.page(selection, *terms))


async def decide(
    connection: AsyncConnection, id: UUID, status: AccessRequestStatus, *, by: str, comment: str | None, **given: object
) -> bool:
    """Mark a pending request of another user as approved or denied. Return False if it is not pending, or own.

    `given` are the columns of an approval: `granted` and `ends_at`.
    """
    values = {"status": status.value, "decided_by": by, "decided_at": NOW, "comment": comment, **given}
    return await _REQUESTS.change(connection, id, and_(_PENDING, requests.c.principal != by), **values)


async def withdraw(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark a pending request of `by` as withdrawn. Return False if it is not pending."""
    own = and_(_PENDING, requests.c.principal == by)
    return await _REQUESTS.change(connection, id, own, **_ended(AccessRequestStatus.WITHDRAWN, by))


async def withdraw_of_deleted(connection: AsyncConnection, user: str, *, by: str, until: datetime | None) -> None:
    """Mark the pending requests of a deleted user as withdrawn, those from before `until` if it is given."""
    made = [] if until is None else [requests.c.created_at <= until]
    pending = and_(requests.c.principal == user, requests.c.status == AccessRequestStatus.PENDING.value, *made)
    ended = _ended(AccessRequestStatus.WITHDRAWN, by) | {"comment": "The user was deleted."}
    await connection.execute(update(requests).where(pending).values(ended))


async def remind(connection: AsyncConnection, id: UUID, *, by: str, interval: float) -> bool:
    """Record a reminder of a pending request of `by`. Return False if the last one is less than `interval` seconds
    ago.
    """
    last = func.coalesce(requests.c.reminded_at, requests.c.created_at)
    due = and_(_PENDING, requests.c.principal == by, last <= NOW - seconds(interval))
    return await _REQUESTS.change(connection, id, due, reminded_at=NOW)


async def end(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark an approved request as ended. Return False if it is not approved, or its access already expired."""
    running = and_(requests.c.status == AccessRequestStatus.APPROVED.value, requests.c.ends_at > NOW)
    return await _REQUESTS.change(connection, id, running, **_ended(AccessRequestStatus.ENDED, by))


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> None:
    """Delete up to `limit` requests that ended more than `older_than_days` ago. The audit keeps the decisions."""
    last = func.greatest(requests.c.expires_at, requests.c.ends_at)
    old = (
        select(requests.c.id)
        .where(last < NOW - func.make_interval(0, 0, 0, older_than_days))
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    await connection.execute(delete(requests).where(requests.c.id.in_(old.scalar_subquery())))


def _ended(status: AccessRequestStatus, by: str) -> dict[str, object]:
    return {"status": status.value, "ended_by": by, "ended_at": NOW}
