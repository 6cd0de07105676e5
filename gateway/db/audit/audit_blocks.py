# SPDX-License-Identifier: Apache-2.0
"""Statements on the chain of digests over audit records, and on the positions of its exports.

The chain consists of blocks of records. A record is unsealed until a row of `audit_block_records` assigns it to a
block. So a record that becomes visible late, because its transaction was long or the database was down, is sealed by a
later run and never skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_chain import Block, SealedRecord
from gateway.db.schema.audit import audit_block_records, audit_blocks, audit_log

_LOCK: Final = text("select pg_try_advisory_xact_lock(:class, 0)")
_CLASS: Final = 0x1A4F
_RECORD: Final = tuple(audit_log.c[name] for name in SealedRecord.__dataclass_fields__)
_BLOCK: Final = tuple(audit_blocks.c[name] for name in Block.__dataclass_fields__)
#: An export resumes after its last block. Block numbers ascend in commit order, and a record that commits late is in a
#: later block, so an export skips no record.
_HOLD: Final = text(
    """
    insert into audit_exports as e (name, block, holder, held_until)
    values (:name, 0, :holder, clock_timestamp() + make_interval(secs => :seconds))
    on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
        where e.holder is null or e.holder = excluded.holder or e.held_until < clock_timestamp()
    returning block
    """
)
_ADVANCE: Final = text(
    "update audit_exports set block = :block where name = :name and holder = :holder and block < :block"
)
_RELEASE: Final = text("update audit_exports set holder = null where name = :name and holder = :holder")
_BACKLOG: Final = text(
    """
    select coalesce(sum(b.count), 0)::bigint as records,
        coalesce(extract(epoch from clock_timestamp() - min(b.sealed_at)), 0)::float8 as oldest_seconds
    from audit_blocks b where b.number > coalesce((select block from audit_exports where name = :name), 0)
    """
)


async def lock_chain(connection: AsyncConnection) -> bool:
    """Take the lock of the chain until the transaction ends. Return False if another process is sealing records now."""
    return bool((await connection.execute(_LOCK, {"class": _CLASS})).scalar_one())


async def now(connection: AsyncConnection) -> datetime:
    """Return the time of the database's clock."""
    time: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    return time


async def last_block(connection: AsyncConnection) -> Block | None:
    """Return the newest block; None for an empty chain."""
    row = (await connection.execute(select(*_BLOCK).order_by(audit_blocks.c.number.desc()).limit(1))).first()
    return None if row is None else Block(*row)


async def unsealed(connection: AsyncConnection, *, since: datetime | None, limit: int) -> list[SealedRecord]:
    """Return unsealed records, oldest first. With `since`, records with an earlier time are left out."""
    sealed = select(audit_block_records.c.record_id).where(audit_block_records.c.record_id == audit_log.c.id).exists()
    statement = select(*_RECORD).where(~sealed).order_by(audit_log.c.at, audit_log.c.id).limit(limit)
    if since is not None:
        statement = statement.where(audit_log.c.at >= since)
    return [SealedRecord(*row) for row in await connection.execute(statement)]


async def count_unsealed(connection: AsyncConnection) -> int:
    """Return the number of records that are in no block."""
    sealed = select(audit_block_records.c.record_id).where(audit_block_records.c.record_id == audit_log.c.id).exists()
    counted: int = (await connection.execute(select(func.count()).select_from(audit_log).where(~sealed))).scalar_one()
    return counted


async def count_strays(connection: AsyncConnection) -> int:
    """Return the number of rows that assign a record to a block that does not exist.

    The sealer would skip these records.
    """
    known = select(audit_blocks.c.number).where(audit_blocks.c.number == audit_block_records.c.block).exists()
    statement = select(func.count()).select_from(audit_block_records).where(~known)
    counted: int = (await connection.execute(statement)).scalar_one()
    return counted


async def add(connection: AsyncConnection, block: Block, records: Sequence[SealedRecord]) -> None:
    """Write a block, and the rows that assign the records to it."""
    values = {name: getattr(block, name) for name in Block.__dataclass_fields__}
    await connection.execute(insert(audit_blocks).values(values))
    ids = [record.id for record in records]
    await connection.execute(
        text("insert into audit_block_records (record_id, block) select unnest(cast(:ids as uuid[])), :block"),
        {"ids": ids, "block": block.number},
    )


async def blocks(connection: AsyncConnection, *, after: int, limit: int) -> list[Block]:
    """Return up to `limit` blocks with a number above `after`, in order."""
    statement = select(*_BLOCK).where(audit_blocks.c.number > after).order_by(audit_blocks.c.number).limit(limit)
    return [Block(*row) for row in await connection.execute(statement)]


async def records_of(connection: AsyncConnection, number: int) -> list[SealedRecord]:
    """Return the records of a block that still exist, in the order of their ids."""
    member = audit_block_records
    statement = (
        select(*_RECORD)
        .join(member, member.c.record_id == audit_log.c.id)
        .where(member.c.block == number)
        .order_by(audit_log.c.id)
    )
    return [SealedRecord(*row) for row in await connection.execute(statement)]


async def hold_export(connection: AsyncConnection, name: str, holder: UUID, *, seconds: float) -> int | None:
    """Hold an export for some seconds, and return the number of its last block.

    Return None if another process holds it.
    """
    values = {"name": name, "holder": holder, "seconds": seconds}
    position: int | None = (await connection.execute(_HOLD, values)).scalar_one_or_none()
    return position


async def advance_export(connection: AsyncConnection, name: str, holder: UUID, block: int) -> bool:
    """Record that a block was exported. Return False if another process holds the export now."""
    values = {"name": name, "holder": holder, "block": block}
    return (await connection.execute(_ADVANCE, values)).rowcount == 1


async def release_export(connection: AsyncConnection, name: str, holder: UUID) -> None:
    """Release the export, so that another process can hold it immediately."""
    await connection.execute(_RELEASE, {"name": name, "holder": holder})


async def export_backlog(connection: AsyncConnection, name: str) -> tuple[int, float]:
    """Return (number of sealed records that were not exported, age of their oldest block in seconds).

    The age is 0 if there are no such records.
    """
    row = (await connection.execute(_BACKLOG, {"name": name})).one()
    return int(row.records), max(0.0, float(row.oldest_seconds))
