# SPDX-License-Identifier: Apache-2.0
"""The outbox: tuple keys whose state in OpenFGA may differ from what the rows want (section 5 of the design).

A row names a key, not an operation: whoever delivers it reads what is wanted *now* and makes OpenFGA so, so the order
and the number of deliveries do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.rows import AnyRow
from gateway.db.schema import outbox

_FIRST_BACKGROUND_TRY_SECONDS = 5.0

#: Relations whose subject is the object's parent: the edges of the hierarchy.
STRUCTURAL = frozenset({"server", "project", "parent"})


@dataclass(frozen=True, slots=True)
class Pending:
    """One outbox row: the key to make so. `takes_away` marks what answers success only after delivery."""

    id: int
    key: TupleKey
    takes_away: bool
    warehouse_id: UUID | None


async def enqueue(
    connection: AsyncConnection, keys: Sequence[TupleKey], *, takes_away: bool, warehouse_id: UUID | None = None
) -> list[Pending]:
    """Note, in the transaction of the change, that these keys are to be made so."""
    if not keys:
        return []
    unique = list(dict.fromkeys(keys))
    # The request that enqueues delivers at once; background delivery waits so that the two do not meet for nothing.
    later = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, _FIRST_BACKGROUND_TRY_SECONDS)
    statement = insert(outbox).values(not_before=later).returning(outbox.c.id, sort_by_parameter_order=True)
    rows = await connection.execute(
        statement,
        [{**_columns(key), "takes_away": takes_away, "warehouse_id": warehouse_id} for key in unique],
    )
    return [
        Pending(id=row.id, key=key, takes_away=takes_away, warehouse_id=warehouse_id)
        for row, key in zip(rows, unique, strict=True)
    ]


async def lock_keys(connection: AsyncConnection, keys: Sequence[TupleKey]) -> None:
    """One delivery of a key at a time, in any process; ordered, so that two deliveries cannot wait for each other."""
    names = sorted({_name(key) for key in keys})
    await connection.execute(
        text(
            "select pg_advisory_xact_lock(h) from "
            "(select distinct hashtextextended(n, 7) as h from unnest(cast(:names as text[])) n order by h) locks"
        ),
        {"names": names},
    )


async def due(connection: AsyncConnection, *, limit: int) -> list[Pending]:
    """Keys that wait for delivery and are nobody's at the moment."""
    statement = (
        select(outbox)
        .where(outbox.c.not_before <= func.clock_timestamp())
        # What takes rights away comes first; within that, in the order of the changes.
        .order_by(outbox.c.takes_away.desc(), outbox.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [_pending(row) for row in await connection.execute(statement)]


async def written_in(connection: AsyncConnection, transaction: int) -> list[Pending]:
    """The keys that a transaction left to be delivered and that are not yet."""
    rows = await connection.execute(select(outbox).where(outbox.c.written_in == transaction).order_by(outbox.c.id))
    return [_pending(row) for row in rows]


def whole_moves(due: Sequence[Pending], *, limit: int) -> Sequence[Pending]:
    """Those of `due` that one delivery takes: a full batch does not end between the two edges of a move, so that an
    object never has two parents, or none, for as long as the next batch takes.
    """
    if len(due) < limit or due[-1].key.relation not in STRUCTURAL:
        return due
    moved = due[-1].key.object
    kept = len(due)
    while kept and due[kept - 1].key.relation in STRUCTURAL and due[kept - 1].key.object == moved:
        kept -= 1
    return due[:kept] or due


async def postpone(connection: AsyncConnection, ids: Sequence[int], *, seconds: float) -> None:
    """Try these again later."""
    await connection.execute(
        update(outbox)
        .where(outbox.c.id.in_(list(ids)))
        .values(
            attempts=outbox.c.attempts + 1,
            not_before=func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds),
        )
    )


async def done(connection: AsyncConnection, ids: Sequence[int]) -> None:
    """These keys are so in OpenFGA."""
    await connection.execute(delete(outbox).where(outbox.c.id.in_(list(ids))))


async def count(connection: AsyncConnection) -> int:
    """How many keys wait."""
    return int((await connection.execute(select(func.count()).select_from(outbox))).scalar_one())


def _columns(key: TupleKey) -> dict[str, str]:
    return {
        "subject_type": key.subject.type.value,
        "subject_id": key.subject.id,
        "relation": key.relation,
        "object_type": key.object.type.value,
        "object_id": key.object.id,
    }


def _name(key: TupleKey) -> str:
    return "\x1f".join([key.subject.type.value, key.subject.id, key.relation, key.object.type.value, key.object.id])


def _pending(row: AnyRow) -> Pending:
    relation: str = row.relation
    structural = relation in STRUCTURAL
    subject: Principal | ObjectKey = (
        ObjectKey(ObjectType(row.subject_type), row.subject_id)
        if structural
        else Principal(PrincipalType(row.subject_type), row.subject_id)
    )
    key = TupleKey(subject, relation, ObjectKey(ObjectType(row.object_type), row.object_id))
    return Pending(id=row.id, key=key, takes_away=row.takes_away, warehouse_id=row.warehouse_id)
