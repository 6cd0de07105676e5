# SPDX-License-Identifier: Apache-2.0
"""The outbox: the keys of tuples whose state in OpenFGA may differ from the one that the rows require.

A row has a key and no operation. Its delivery reads the *current* desired state and writes it to OpenFGA. So the order
and the number of deliveries do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, delete, exists, func, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.changes import outbox
from gateway.db.schema.principals import users

#: The request delivers its keys immediately. The background delivery waits for this time, so that it does not deliver
#: them again.
FIRST_BACKGROUND_TRY_SECONDS: Final = 5.0
_HOLDS_BACK_SECONDS = 600.0

#: Relations whose subject is the parent of the object: the edges of the hierarchy.
STRUCTURAL = frozenset({"server", "project", "parent"})


@dataclass(frozen=True, slots=True)
class Pending:
    """A row of the outbox. A request that enqueued a row with `takes_away` succeeds only after the row's delivery.

    `sent_at` is the record of a write that the transaction itself made for the tuple of a new object, None otherwise
    (`ownership.py`). `noted` is the value of `time.monotonic` before that record.
    """

    id: int
    key: TupleKey
    takes_away: bool
    warehouse_id: UUID | None
    sent_at: datetime | None = None
    noted: float = -math.inf


class _Row(NamedTuple):
    id: int
    subject_type: str
    subject_id: str
    relation: str
    object_type: str
    object_id: str
    warehouse_id: UUID | None
    takes_away: bool
    step: int
    written_in: int


_ROWS: Final = select(*columns_for(_Row, outbox))


async def enqueue(
    connection: AsyncConnection,
    keys: Sequence[TupleKey],
    *,
    takes_away: bool,
    warehouse_id: UUID | None = None,
    step: int = 0,
) -> list[Pending]:
    """Enqueue keys in the transaction of their change. Keys with a higher `step` are delivered later.

    With `takes_away`, a trigger changes the revisions at the commit, and the delivery changes them again.
    """
    return await enqueue_each(connection, [(key, warehouse_id) for key in keys], takes_away=takes_away, step=step)


async def enqueue_each(
    connection: AsyncConnection, keys: Sequence[tuple[TupleKey, UUID | None]], *, takes_away: bool, step: int = 0
) -> list[Pending]:
    """Enqueue keys as `enqueue` does. Each key has a warehouse of its own."""
    unique = dict(keys)
    if not unique:
        return []
    values = {
        **key_arrays(list(unique)),
        "warehouse_ids": list(unique.values()),
        "takes_away": takes_away,
        "step": step,
        "later": FIRST_BACKGROUND_TRY_SECONDS,
    }
    # The ids ascend in the order of the keys.
    ids = sorted((await connection.execute(_ENQUEUE, values)).scalars())
    return [
        Pending(id=id, key=key, takes_away=takes_away, warehouse_id=within)
        for id, (key, within) in zip(ids, unique.items(), strict=True)
    ]


_ENQUEUE = text(
    """
    insert into outbox (subject_type, subject_id, relation, object_type, object_id, warehouse_id, takes_away, step,
        not_before)
    select a.subject_type, a.subject_id, a.relation, a.object_type, a.object_id, a.warehouse_id,
        cast(:takes_away as boolean), cast(:step as smallint), clock_timestamp() + make_interval(secs => :later)
    from unnest(cast(:subject_types as text[]), cast(:subject_ids as text[]), cast(:relations as text[]),
                cast(:object_types as text[]), cast(:object_ids as text[]), cast(:warehouse_ids as uuid[]))
        with ordinality as a(subject_type, subject_id, relation, object_type, object_id, warehouse_id, ord)
    order by a.ord returning id
    """
)


async def lock_keys(connection: AsyncConnection, keys: Sequence[TupleKey]) -> None:
    """Hold the locks of `lock_names` until this transaction ends."""
    await connection.execute(
        text(
            "select pg_advisory_xact_lock(h) from "
            "(select distinct hashtextextended(n, 7) as h from unnest(cast(:names as text[])) n order by h) locks"
        ),
        {"names": lock_names(keys)},
    )


def lock_names(keys: Sequence[TupleKey]) -> list[str]:
    """Return the names to lock (`Database.locked`) during a delivery, so that deliveries of the same key do not
    overlap.
    """
    return sorted({_name(key) for key in keys})


_MARK = text(
    """
    with mine as materialized (select id, sent_at from outbox where id = any(:ids) order by id for update),
    marked as (update outbox o set sent_at = clock_timestamp() from mine where o.id = mine.id)
    select id, sent_at, set_config('synchronous_commit', 'off', true) from mine
    """
)


async def mark_sent(connection: AsyncConnection, ids: Sequence[int]) -> dict[int, datetime | None]:
    """Record that a write for these rows is in flight. Return the earlier records of the rows that still exist.

    Another process has delivered the rows that are missing. Call it while holding the locks of the keys. Each statement
    of the connection commits by itself, before the write, so that other processes find the record if this one ends. The
    commit does not wait for the disk: the record need not survive a power failure of the database's machine.
    """
    return {row.id: row.sent_at for row in await connection.execute(_MARK, {"ids": list(ids)})}


_UNMARK = text(
    """
    update outbox o set sent_at = b.sent_at
    from unnest(cast(:ids as bigint[]), cast(:times as timestamptz[])) as b(id, sent_at) where o.id = b.id
    """
)


async def unmark(connection: AsyncConnection, before: Mapping[int, datetime | None]) -> None:
    """Restore the earlier records of rows, because the outcome of this write is known."""
    await connection.execute(_UNMARK, {"ids": list(before), "times": list(before.values())})


_NOTED_ROWS: Final = "unnest(cast(:ids as bigint[]), cast(:times as timestamptz[])) as b(id, sent_at)"
_SAME_NOTE: Final = "o.id = b.id and o.sent_at = b.sent_at"
_DONE_AS_NOTED = text(f"delete from outbox o using {_NOTED_ROWS} where {_SAME_NOTE}")  # noqa: S608 - constants
_UNMARK_NOTED = text(f"update outbox o set sent_at = null from {_NOTED_ROWS} where {_SAME_NOTE}")  # noqa: S608 - same
_RENEW_NOTE = text(
    f"update outbox o set sent_at = clock_timestamp() from {_NOTED_ROWS} "  # noqa: S608 - same
    f"where {_SAME_NOTE} and o.sent_at > clock_timestamp() - make_interval(secs => :within) "
    "returning o.id, o.sent_at"
)


async def done_as_noted(connection: AsyncConnection, rows: Sequence[Pending]) -> None:
    """Delete the rows whose record of a write is still `sent_at`.

    Another process has recorded a write for the others.
    """
    await connection.execute(_DONE_AS_NOTED, _notes(rows))


async def unmark_noted(connection: AsyncConnection, rows: Sequence[Pending]) -> None:
    """Remove the record of a write that was not carried out, from the rows whose record is still `sent_at`."""
    await connection.execute(_UNMARK_NOTED, _notes(rows))


async def renew_note(
    connection: AsyncConnection, rows: Sequence[Pending], *, within_seconds: float
) -> dict[int, datetime]:
    """Renew the record of a write, for rows whose record is still `sent_at`. Return the new records by row id.

    Records that are more than `within_seconds` old are not renewed.
    """
    renewed = await connection.execute(_RENEW_NOTE, {**_notes(rows), "within": within_seconds})
    return {row.id: row.sent_at for row in renewed}


def _notes(rows: Sequence[Pending]) -> dict[str, object]:
    return {"ids": [row.id for row in rows], "times": [row.sent_at for row in rows]}


async def postpone_delivery(connection: AsyncConnection, until: Mapping[int, datetime]) -> None:
    """Set the time of the next delivery of each of these rows."""
    statement = text(
        "update outbox o set not_before = b.at, attempts = attempts + 1 "
        "from unnest(cast(:ids as bigint[]), cast(:times as timestamptz[])) as b(id, at) where o.id = b.id"
    )
    await connection.execute(statement, {"ids": list(until), "times": list(until.values())})


async def due(connection: AsyncConnection, *, limit: int) -> list[Pending]:
    """Return up to `limit` keys that are due and not locked.

    A key is left out while its transaction has an undelivered earlier step. A step that OpenFGA refused is retried much
    later and does not block later steps.
    """
    earlier = outbox.alias("earlier")
    soon = func.clock_timestamp() + _seconds(_HOLDS_BACK_SECONDS)
    before = exists().where(
        earlier.c.written_in == outbox.c.written_in, earlier.c.step < outbox.c.step, earlier.c.not_before < soon
    )
    # A first step never waits for another step. Without this case, each of the thousands of keys of a dropped tree
    # would be compared with all others.
    held_back = case((outbox.c.step > 0, before), else_=False)
    statement = (
        _ROWS.where(outbox.c.not_before <= func.clock_timestamp(), ~held_back)
        # Revocations come first. Other rows have the order of the changes.
        .order_by(outbox.c.takes_away.desc(), outbox.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True, of=outbox)
    )
    return [_pending(row) for row in await fetch_all(connection, _Row, statement)]


async def waiting(connection: AsyncConnection, *terms: ColumnElement[bool]) -> list[Pending]:
    """Return the undelivered keys whose rows match all terms, in the order of the rows."""
    rows = await fetch_all(connection, _Row, _ROWS.where(*terms).order_by(outbox.c.id))
    return [_pending(row) for row in rows]


async def written_in(connection: AsyncConnection, transaction: int) -> list[Pending]:
    """Return the undelivered keys that a transaction enqueued."""
    return await waiting(connection, outbox.c.written_in == transaction)


async def latest_attempt(connection: AsyncConnection, object: ObjectKey) -> datetime | None:
    """Return the latest time for which a delivery of one of the object's keys is scheduled; None if none is pending."""
    latest = select(func.max(outbox.c.not_before)).where(
        outbox.c.object_type == object.type.value, outbox.c.object_id == object.id
    )
    found: datetime | None = (await connection.execute(latest)).scalar_one()
    return found


async def revocations_on(connection: AsyncConnection, object: ObjectKey) -> list[Pending]:
    """Return the pending revocations on an object, even if the request that made them has ended."""
    on_it = (outbox.c.object_type == object.type.value, outbox.c.object_id == object.id)
    return await waiting(connection, outbox.c.takes_away, *on_it)


async def pending_of_deleted_role(connection: AsyncConnection, role: ObjectKey) -> list[Pending]:
    """Return the pending revocations of privileges on a role, and of privileges that the role held."""
    on_it = and_(outbox.c.object_type == role.type.value, outbox.c.object_id == role.id)
    from_it = and_(outbox.c.subject_type == PrincipalType.ROLE.value, outbox.c.subject_id == role.id)
    return await waiting(connection, outbox.c.takes_away, or_(on_it, from_it))


async def pending_of_user(connection: AsyncConnection, user_id: str) -> list[Pending]:
    """Return the pending revocations of privileges that a user held."""
    of_user = and_(outbox.c.subject_type == PrincipalType.USER.value, outbox.c.subject_id == user_id)
    return await waiting(connection, outbox.c.takes_away, of_user)


async def pending_of_deleted_users(connection: AsyncConnection, provider_id: str) -> list[Pending]:
    """Return the pending revocations of privileges that deleted users of the provider held."""
    of_user = and_(
        outbox.c.subject_type == PrincipalType.USER.value,
        outbox.c.subject_id.startswith(f"{provider_id}~", autoescape=True),
        ~exists().where(users.c.id == outbox.c.subject_id),
    )
    return await waiting(connection, outbox.c.takes_away, of_user)


async def pending_of_moves(connection: AsyncConnection, moved: ObjectKey) -> list[list[Pending]]:
    """Return the undelivered keys of earlier moves of this object: one list for each step, in order."""
    of_user = select(outbox.c.written_in).where(
        outbox.c.object_type == moved.type.value,
        outbox.c.object_id == moved.id,
        outbox.c.relation.in_(sorted(STRUCTURAL)),
    )
    statement = _ROWS.where(outbox.c.written_in.in_(of_user))
    statement = statement.order_by(outbox.c.written_in, outbox.c.step, outbox.c.id)
    steps: dict[tuple[int, int], list[Pending]] = {}
    for row in await fetch_all(connection, _Row, statement):
        steps.setdefault((row.written_in, row.step), []).append(_pending(row))
    return list(steps.values())


def complete_moves(due: Sequence[Pending], *, limit: int) -> Sequence[Pending]:
    """Return the keys of `due` to deliver now.

    A full batch must not end between the two edges of a move. Otherwise an object would have two parents, or none,
    until the next batch.
    """
    if len(due) < limit or due[-1].key.relation not in STRUCTURAL:
        return due
    moved = due[-1].key.object
    kept = len(due)
    while kept and due[kept - 1].key.relation in STRUCTURAL and due[kept - 1].key.object == moved:
        kept -= 1
    return due[:kept] or due


async def postpone(connection: AsyncConnection, ids: Sequence[int], *, seconds: float) -> None:
    """Set the next delivery of these rows to `seconds` from now."""
    await connection.execute(
        update(outbox)
        .where(outbox.c.id.in_(list(ids)))
        .values(
            attempts=outbox.c.attempts + 1,
            not_before=func.clock_timestamp() + _seconds(seconds),
        )
    )


async def done(connection: AsyncConnection, ids: Sequence[int]) -> None:
    """Delete the rows of delivered keys."""
    await connection.execute(_DONE, {"ids": list(ids)})


_DONE = text("delete from outbox where id = any(:ids)")


async def empty(connection: AsyncConnection) -> int:
    """Delete all rows, and return their number. The rows of a restored dump belong to no process.

    Call it only before a comparison of all keys, while no gateway serves.
    """
    return (await connection.execute(delete(outbox))).rowcount


_COUNT = DirectRead(select(func.count().label("pending")).select_from(outbox))


async def count(connection: AsyncConnection) -> int:
    """Return the number of pending keys."""
    return int((await connection.execute(_COUNT.statement)).scalar_one())


async def read_count(database: Database) -> int:
    """Return the number of pending keys. Raises DatabaseUnavailable."""
    return int((await database.read_one(_COUNT, {})).pending)


def _seconds(seconds: float) -> object:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def key_arrays(keys: Sequence[TupleKey]) -> dict[str, list[str]]:
    """Return the columns of these keys as array parameters of a statement."""
    return {
        "subject_types": [key.subject.type.value for key in keys],
        "subject_ids": [key.subject.id for key in keys],
        "relations": [key.relation for key in keys],
        "object_types": [key.object.type.value for key in keys],
        "object_ids": [key.object.id for key in keys],
    }


def _name(key: TupleKey) -> str:
    return "\x1f".join([key.subject.type.value, key.subject.id, key.relation, key.object.type.value, key.object.id])


def _pending(row: _Row) -> Pending:
    structural = row.relation in STRUCTURAL
    subject: Principal | ObjectKey = (
        ObjectKey(ObjectType(row.subject_type), row.subject_id)
        if structural
        else Principal(PrincipalType(row.subject_type), row.subject_id)
    )
    key = TupleKey(subject, row.relation, ObjectKey(ObjectType(row.object_type), row.object_id))
    return Pending(id=row.id, key=key, takes_away=row.takes_away, warehouse_id=row.warehouse_id)
