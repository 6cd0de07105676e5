# SPDX-License-Identifier: Apache-2.0
"""Statements on the partitions of audit records: create those of the next months, and remove the oldest one.

A statement that locks the whole table waits at most a second for the lock, because requests that write records wait
behind it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_chain import Month
from gateway.db.schema.audit import audit_removals

_CLASS: Final = 0x1A51
_LOCK_NOT_AVAILABLE: Final = "55P03"
_LOCK_MILLISECONDS: Final = 1000
_BATCH: Final = 10_000
_RANGE: Final = re.compile(r"FOR VALUES FROM \((MINVALUE|'[0-9a-f-]{36}')\) TO \('([0-9a-f-]{36})'\)")
_NAME: Final = re.compile(r"[a-z0-9_]{1,63}")

_PARTITIONS: Final = text(
    "select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid "
    "where i.inhparent = to_regclass('audit_log') and not i.inhdetachpending"
)


class PartitionBusy(Exception):
    """Another transaction uses the audit log, so its partitions cannot be changed now. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the audit log with the ids from `first` (None: from the smallest id) to `end`, which is
    excluded.
    """

    name: str
    first: UUID | None
    end: UUID


@asynccontextmanager
async def exclusive(connection: AsyncConnection) -> AsyncIterator[bool]:
    """Yield True if this transaction may change partitions, False if another process changes them.

    Raises PartitionBusy if a lock on a table is not available in time.
    """
    try:
        await connection.execute(text(f"set local lock_timeout = {_LOCK_MILLISECONDS}"))
        locked = await connection.execute(text("select pg_try_advisory_xact_lock(:class, 1)"), {"class": _CLASS})
        yield bool(locked.scalar_one())
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise PartitionBusy("the audit log is in use by another transaction") from error
        raise


async def partitions(connection: AsyncConnection) -> list[Partition]:
    """Return the partitions with a range, oldest first. The default partition is left out."""
    found = []
    for name, bound in await connection.execute(_PARTITIONS):
        matched = _RANGE.fullmatch(bound)
        if matched is not None:
            first = None if matched[1] == "MINVALUE" else UUID(matched[1].strip("'"))
            found.append(Partition(name, first, UUID(matched[2])))
    return sorted(found, key=lambda each: each.end.int)


async def create(connection: AsyncConnection, month: Month) -> Partition:
    """Create the partition of a month, and move the records of this month from the default partition to it."""
    made = Partition(f"audit_log_y{month.year:04}m{month.number:02}", month.first_id, month.following.first_id)
    within = f"id >= '{made.first}' and id < '{made.end}'"
    await connection.execute(text(f"create table {made.name} (like audit_log including defaults)"))
    # Without this lock a record could arrive in the default partition between the two statements.
    await connection.execute(text("lock table audit_log_default in access exclusive mode"))
    await connection.execute(
        text(
            f"with moved as (delete from audit_log_default where {within} returning *) "  # noqa: S608 - ids of this module
            f"insert into {made.name} select * from moved"
        )
    )
    await connection.execute(
        text(f"alter table audit_log attach partition {made.name} for values from ('{made.first}') to ('{made.end}')")
    )
    return made


async def freeze(connection: AsyncConnection, partition: Partition) -> None:
    """Refuse new records in a partition until the transaction ends. Other partitions are not affected."""
    await connection.execute(text(f"lock table {_checked(partition)} in share mode"))


async def has_records_since(connection: AsyncConnection, partition: Partition, time: datetime) -> bool:
    """Return True if a record of the partition has this time or a later time."""
    statement = f"select exists (select 1 from {_checked(partition)} where at >= :time)"  # noqa: S608 - a checked name
    return bool((await connection.execute(text(statement), {"time": time})).scalar_one())


async def has_unsealed(connection: AsyncConnection, partition: Partition) -> bool:
    """Return True if a record of the partition is in no block."""
    statement = f"""
        select exists (select 1 from {_checked(partition)} p
            where not exists (select 1 from audit_block_records m where m.record_id = p.id))
    """  # noqa: S608 - a checked name
    return bool((await connection.execute(text(statement))).scalar_one())


async def has_unexported(connection: AsyncConnection, partition: Partition, export: str) -> bool:
    """Return True if a sealed record of the partition is in a block that the export has not sent yet."""
    statement = f"""
        select exists (select 1 from {_checked(partition)} p join audit_block_records m on m.record_id = p.id
            where m.block > coalesce((select block from audit_exports where name = :name), 0))
    """  # noqa: S608 - a checked name
    return bool((await connection.execute(text(statement), {"name": export})).scalar_one())


async def remove(connection: AsyncConnection, partition: Partition) -> int:
    """Remove a partition with its records, and record the removal. Return the number of removed records."""
    name = _checked(partition)
    counted: int = (await connection.execute(text(f"select count(*) from {name}"))).scalar_one()  # noqa: S608 - a checked name
    # `detach concurrently` is not possible for a table with a default partition.
    await connection.execute(text(f"alter table audit_log detach partition {name}"))
    await connection.execute(text(f"drop table {name}"))
    row = {"below": partition.end, "partition": partition.name, "records": counted, "removed_at": func.now()}
    await connection.execute(insert(audit_removals).values(row))
    return counted


async def removed_below(connection: AsyncConnection) -> UUID | None:
    """Return the id below which retention has removed all records; None if it has removed none."""
    statement = select(audit_removals.c.below).order_by(audit_removals.c.below.desc()).limit(1)
    below: UUID | None = (await connection.execute(statement)).scalar_one_or_none()
    return below


async def forget_members(connection: AsyncConnection, below: UUID) -> int:
    """Delete up to 10,000 rows that assign removed records with ids lower than `below` to blocks.

    Return the number of deleted rows. The blocks themselves remain.
    """
    statement = text(
        f"""
        delete from audit_block_records where record_id in (
            select m.record_id from audit_block_records m where m.record_id < :below
                and not exists (select 1 from audit_log a where a.id = m.record_id)
            order by m.record_id limit {_BATCH})
        """  # noqa: S608 - a constant; the id is a bound parameter
    )
    return (await connection.execute(statement, {"below": below})).rowcount


def _checked(partition: Partition) -> str:
    """Return the name of a partition, to be used in a statement. Raises ValueError if the name would need quotes."""
    if _NAME.fullmatch(partition.name) is None:
        raise ValueError(f"the partition {partition.name!r} of audit_log needs a name of a-z, 0-9 and _; rename it")
    return partition.name
