# SPDX-License-Identifier: Apache-2.0
"""Statements on access requests. All times are by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, any_, case, delete, exists, func, insert, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.access_request_bodies import AccessRequestStatus
from gateway.access.tuples import PrincipalType
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.access_requests import access_requests as requests
from gateway.db.schema.grants import grants

_NOW: Final = func.clock_timestamp()
_PENDING: Final = and_(requests.c.status == AccessRequestStatus.PENDING.value, requests.c.expires_at > _NOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccessRequest:
    """A request to record. `duration` and `lifetime` are in seconds."""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID | None
    on: ObjectKey
    name: str
    privileges: Sequence[str]
    reason: str
    duration: int
    lifetime: float


class AccessRequestRow(NamedTuple):
    """A request with its current status."""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID | None
    object_type: str
    object_id: str
    name: str
    privileges: list[str]
    reason: str
    duration: int
    status: str
    created_at: datetime
    expires_at: datetime
    reminded_at: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None
    granted: list[str] | None
    ends_at: datetime | None
    ended_by: str | None
    ended_at: datetime | None

    @property
    def on(self) -> ObjectKey:
        """Return the object of the request."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def grant_reason(self) -> str:
        """Return the reason of the grants that an approval of the request makes."""
        return grant_reason(self.id, self.reason)


class OpenRequests(NamedTuple):
    """The numbers of pending requests, and the id of one for the same privileges of the same user on the object."""

    of_principal: int
    on_object: int
    same: UUID | None


def grant_reason(id: UUID, reason: str) -> str:
    """Return the reason of a grant that names the request."""
    return f"access request {id}: {reason}"


async def lock_counts(connection: AsyncConnection, principal: str, on: ObjectKey) -> None:
    """Until this transaction ends, wait with other new requests of the principal, and then with those on the object.

    So concurrent requests cannot exceed the limits together.
    """
    for name in (f"access requests of\x1f{principal}", f"access requests on\x1f{on.type}\x1f{on.id}"):
        await connection.execute(_LOCK, {"name": name})


_LOCK = text("select pg_advisory_xact_lock(hashtextextended(:name, 7))")


async def open_requests(
    connection: AsyncConnection, principal: str, on: ObjectKey, privileges: Sequence[str]
) -> OpenRequests:
    """Return the numbers of pending requests of the principal, and on the object."""
    here = and_(requests.c.object_type == on.type.value, requests.c.object_id == on.id)
    own = requests.c.principal == principal
    equal = and_(own, here, requests.c.privileges == list(privileges))
    one = select(requests.c.id).where(_PENDING, equal).limit(1).scalar_subquery()
    counts = select(
        select(func.count()).where(_PENDING, own).scalar_subquery().label("of_principal"),
        select(func.count()).where(_PENDING, here).scalar_subquery().label("on_object"),
        one.label("same"),
    )
    return (await fetch_all(connection, OpenRequests, counts))[0]


async def record(connection: AsyncConnection, new: NewAccessRequest) -> None:
    """Record a pending request."""
    await connection.execute(
        insert(requests).values(
            id=new.id,
            principal=new.principal,
            project_id=new.project_id,
            warehouse_id=new.warehouse_id,
            object_type=new.on.type.value,
            object_id=new.on.id,
            name=new.name,
            privileges=list(new.privileges),
            reason=new.reason,
            duration=new.duration,
            expires_at=_NOW + _seconds(new.lifetime),
        )
    )


async def get(connection: AsyncConnection, id: UUID) -> AccessRequestRow | None:
    """Return the request with this id, or None."""
    return await fetch_optional(connection, AccessRequestRow, select(*_columns()).where(requests.c.id == id))


async def page(
    connection: AsyncConnection,
    principal: str,
    *,
    own: bool | None,
    project_id: str | None,
    status: AccessRequestStatus | None,
    after: UUID | None,
    limit: int,
) -> Sequence[AccessRequestRow]:
    """Return requests, oldest first, that begin after the id `after`.

    With `own`, return those of `principal`; with False those of other users; with None all. `project_id` limits them to
    one project.
    """
    terms: list[ColumnElement[bool]] = []
    if own is not None:
        terms.append(requests.c.principal == principal if own else requests.c.principal != principal)
    if project_id is not None:
        terms.append(requests.c.project_id == project_id)
    if status is not None:
        terms.append(_status() == status.value)
    if status is AccessRequestStatus.PENDING:
        # The condition of the partial index, which the computed status does not imply for the planner.
        terms.append(requests.c.status == text("'pending'"))
    if after is not None:
        terms.append(requests.c.id > after)
    return await fetch_all(
        connection, AccessRequestRow, select(*_columns()).where(*terms).order_by(requests.c.id).limit(limit)
    )


async def approve(
    connection: AsyncConnection, id: UUID, *, by: str, granted: Sequence[str], ends_at: datetime, comment: str | None
) -> bool:
    """Mark a pending request as approved. Return False if it is not pending, or if the approver made it.

    Concurrent decisions wait here for the first one, and then return False.
    """
    return await _change(
        connection,
        id,
        and_(_PENDING, requests.c.principal != by),
        status=AccessRequestStatus.APPROVED.value,
        decided_by=by,
        decided_at=_NOW,
        comment=comment,
        granted=list(granted),
        ends_at=ends_at,
    )


async def deny(connection: AsyncConnection, id: UUID, *, by: str, comment: str) -> bool:
    """Mark a pending request of another user as denied. Return False if it is not pending."""
    return await _change(
        connection,
        id,
        and_(_PENDING, requests.c.principal != by),
        status=AccessRequestStatus.DENIED.value,
        decided_by=by,
        decided_at=_NOW,
        comment=comment,
    )


async def withdraw(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark a pending request of `by` as withdrawn. Return False if it is not pending."""
    own = and_(_PENDING, requests.c.principal == by)
    return await _change(connection, id, own, status=AccessRequestStatus.WITHDRAWN.value, ended_by=by, ended_at=_NOW)


async def remind(connection: AsyncConnection, id: UUID, *, by: str, interval: float) -> bool:
    """Record a reminder of a pending request of `by`. Return False if the last one is less than `interval` seconds
    ago.
    """
    last = func.coalesce(requests.c.reminded_at, requests.c.created_at)
    due = and_(_PENDING, requests.c.principal == by, last <= _NOW - _seconds(interval))
    return await _change(connection, id, due, reminded_at=_NOW)


async def end(connection: AsyncConnection, id: UUID, *, by: str) -> bool:
    """Mark an approved request as ended. Return False if it is not approved, or its access already expired."""
    running = and_(requests.c.status == AccessRequestStatus.APPROVED.value, requests.c.ends_at > _NOW)
    return await _change(connection, id, running, status=AccessRequestStatus.ENDED.value, ended_by=by, ended_at=_NOW)


async def granted_for_longer(
    connection: AsyncConnection,
    principal: str,
    on: ObjectKey,
    privileges: Sequence[Privilege],
    *,
    by: str,
    until: datetime,
) -> str | None:
    """Return a privilege that `by` already granted to the user until `until` or longer, or None.

    An approval would replace such a grant by a shorter one.
    """
    longer = select(grants.c.privilege).where(
        grants.c.object_type == on.type.value,
        grants.c.object_id == on.id,
        grants.c.principal_type == PrincipalType.USER.value,
        grants.c.principal_id == principal,
        grants.c.granted_by == by,
        grants.c.privilege.in_([each.value for each in privileges]),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at >= until),
    )
    found: str | None = (await connection.execute(longer.limit(1))).scalar_one_or_none()
    return found


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> None:
    """Delete up to `limit` requests that ended more than `older_than_days` ago. The audit keeps the decisions."""
    last = func.greatest(requests.c.expires_at, requests.c.ends_at)
    old = (
        select(requests.c.id)
        .where(last < _NOW - func.make_interval(0, 0, 0, older_than_days))
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    await connection.execute(delete(requests).where(requests.c.id.in_(old.scalar_subquery())))


async def _change(connection: AsyncConnection, id: UUID, condition: ColumnElement[bool], **values: object) -> bool:
    changed = await connection.execute(update(requests).where(requests.c.id == id, condition).values(**values))
    return bool(changed.rowcount)


def _columns() -> Sequence[ColumnElement[Any]]:
    return [_status().label("status") if name == "status" else requests.c[name] for name in AccessRequestRow._fields]


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
        grants.c.reason == func.concat("access request ", requests.c.id, ": ", requests.c.reason),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > _NOW),
    )
    approved = requests.c.status == AccessRequestStatus.APPROVED.value
    return case(
        (
            and_(requests.c.status == AccessRequestStatus.PENDING.value, requests.c.expires_at <= _NOW),
            AccessRequestStatus.EXPIRED.value,
        ),
        (and_(approved, ~live), AccessRequestStatus.ENDED.value),
        else_=requests.c.status,
    )


def _seconds(seconds: float) -> ColumnElement[object]:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
