# SPDX-License-Identifier: Apache-2.0
"""The partitions of the audit log on a real PostgreSQL: insertion, removal, and the chain across a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.access.audit.audit_chain import Month, first_id, month_of
from gateway.access.audit.audit_record import AuditRecord
from gateway.db.audit import audit_log, audit_partitions
from gateway.db.audit.audit_partitions import PartitionBusy
from gateway.db.engine.database import Database
from gateway.db.migrate import run_migrations
from gateway.features.audit.audit_chain import AuditSealer, verify
from gateway.features.audit.audit_retention import AuditPartitions, Retention
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from lakegate.local.ready import Ready
from tests.support.load.kills import Killable
from tests.support.rows.audit_records import allowed_record
from tests.support.rows.parts import Parts

pytestmark = pytest.mark.servers


async def _clear(url: str) -> None:
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        await connection.execute(text("drop schema public cascade"))
        await connection.execute(text("create schema public"))
    await engine.dispose()


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    """Yield a migrated database without records."""
    await _clear(parts.database_url)
    await run_migrations(parts.database_url)
    database = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    yield database
    await database.close()


def _id(at: datetime) -> UUID:
    """Return a new id of this time."""
    return UUID(int=first_id(at).int | (uuid4().int & ((1 << 72) - 1)))


async def _execute(database: Database, statement: str, **parameters: object) -> None:
    async with database.transaction() as connection:
        await connection.execute(text(statement), parameters)


async def _rows(database: Database, statement: str) -> list[tuple[object, ...]]:
    async with database.read() as connection:
        return [tuple(row) for row in await connection.execute(text(statement))]


def _record(at: datetime) -> AuditRecord:
    return allowed_record(_id(at), at)


async def _insert(database: Database, *times: datetime) -> list[UUID]:
    """Write a record for each time, by the statement of the gateway, which may be repeated."""
    records = [_record(at) for at in times]
    async with database.transaction() as connection:
        await audit_log.insert(connection, records)
        await audit_log.insert(connection, records)
    return [record.id for record in records]


async def _places(database: Database) -> dict[UUID, str]:
    """Return the partition of each record."""
    return dict(await _rows(database, "select id, tableoid::regclass::text from audit_log"))  # type: ignore[arg-type]  # rows of two columns


async def _split_initial(database: Database, *months: Month) -> None:
    """Replace the first partition by empty ones of these months, as in a database that is older."""
    await _execute(database, "alter table audit_log detach partition audit_log_initial")
    await _execute(database, "drop table audit_log_initial")
    for month in months:
        async with database.transaction() as connection:
            await audit_partitions.create(connection, month)


def _months() -> list[Month]:
    """Return six months; the fifth one is the current month."""
    found = [month_of(datetime.now(UTC))]
    while len(found) < 5:
        found.insert(0, month_of(found[0].start - timedelta(days=1)))
    return [*found, found[-1].following]


async def test_a_new_database_has_a_first_partition_until_the_end_of_a_later_month(database: Database) -> None:
    indexes = await _rows(database, "select indexname from pg_indexes where tablename = 'audit_log_initial' order by 1")
    assert indexes == [
        (f"audit_log_initial_{name}",) for name in ("actor_id_at_idx", "at_idx", "outcome_at_idx", "pkey")
    ]
    async with database.read() as connection:
        (first,) = await audit_partitions.partitions(connection)
    week = month_of(datetime.now(UTC) + timedelta(days=7))
    assert (first.first, first.end) == (None, week.following.first_id)
    now, later = await _insert(database, week.following.start - timedelta(milliseconds=1), week.following.start)
    assert await _places(database) == {now: "audit_log_initial", later: "audit_log_default"}


async def test_records_at_a_month_boundary_are_in_the_partition_of_their_month(database: Database) -> None:
    months = _months()
    await _split_initial(database, *months)
    start = months[-1].start
    last, first = await _insert(database, start - timedelta(milliseconds=1), start)
    assert await _places(database) == {
        last: f"audit_log_y{months[-2].year}m{months[-2].number:02}",
        first: f"audit_log_y{months[-1].year}m{months[-1].number:02}",
    }


async def test_records_without_a_partition_are_accepted_and_moved_to_it_later(database: Database) -> None:
    await _execute(database, "drop table audit_log_initial")
    now = datetime.now(UTC)
    (id,) = await _insert(database, now)
    assert await _places(database) == {id: "audit_log_default"}
    await asyncio.gather(*(AuditPartitions(database, Retention()).maintain() for _ in range(3)))
    month = month_of(now)
    assert await _places(database) == {id: f"audit_log_y{month.year}m{month.number:02}"}
    async with database.read() as connection:
        made = await audit_partitions.partitions(connection)
    assert [each.first for each in made] == [
        month.first_id,
        month.following.first_id,
        month.following.following.first_id,
    ]


async def _chain(database: Database) -> tuple[list[Month], list[UUID]]:
    """Seal two records in each of five months. Return (the months, the ids)."""
    months = _months()
    await _split_initial(database, *months)
    times = [month.start + timedelta(hours=hours) for month in months[:4] for hours in (1, 2)]
    ids = await _insert(database, *times, months[4].start, months[4].start + timedelta(milliseconds=1))
    await AuditSealer(database, every=1.0, key=None).seal_all()
    return months, ids


def _keep(months: list[Month]) -> timedelta:
    """Return a retention that ends in the middle of the third month."""
    return datetime.now(UTC) - months[2].start - timedelta(days=10)


async def test_old_partitions_are_removed_and_the_chain_verifies_across_the_gap(database: Database) -> None:
    months, ids = await _chain(database)
    before = await verify(database, key=None)
    assert (before.blocks, before.records, before.removed, before.fault) == (5, 10, 0, None)
    await AuditPartitions(database, Retention(keep=_keep(months), sealed=True)).maintain()
    assert sorted(await _places(database)) == sorted(ids[4:])
    after = await verify(database, key=None, anchor=before.last)
    assert (after.blocks, after.records, after.removed, after.fault) == (5, 6, 2, None)
    assert after.removed_until == months[2].start
    assert await _rows(database, "select count(*) from audit_block_records") == [(6,)]
    await _execute(database, "delete from audit_log where id = :id", id=ids[5])
    deleted = await verify(database, key=None)
    assert deleted.fault is not None and deleted.fault.number == 3
    await _execute(database, "update audit_blocks set records_digest = '\\x00' where number = 1")
    forged = await verify(database, key=None)
    assert forged.fault is not None and forged.fault.number == 1


async def test_records_without_the_register_of_removals_count_as_deleted(database: Database) -> None:
    months, _ = await _chain(database)
    await AuditPartitions(database, Retention(keep=_keep(months))).maintain()
    await _execute(database, "truncate audit_removals")
    found = await verify(database, key=None)
    assert found.fault is not None and found.fault.number == 1


async def test_a_partition_stays_until_its_records_are_sealed_exported_and_old(database: Database) -> None:
    months, ids = await _chain(database)
    rules = Retention(keep=_keep(months), sealed=True, export="otlp")
    late = months[1].start + timedelta(days=3)
    (unsealed,) = await _insert(database, late)

    async def left() -> int:
        await AuditPartitions(database, rules).maintain()
        return len(await _places(database))

    assert await left() == 11, "records of blocks that were not exported were removed"
    await _execute(database, "insert into audit_exports (name, block) values ('otlp', 1)")
    assert await left() == 9
    await _execute(database, "update audit_exports set block = 5")
    assert await left() == 9, "an unsealed record was removed"
    await AuditSealer(database, every=1.0, key=None).seal_all()
    assert await left() == 9, "a record of a block that was not exported was removed"
    await _execute(database, "update audit_exports set block = 6")
    await _execute(database, "update audit_log set at = now() where id = :id", id=unsealed)
    assert await left() == 9, "a record with a recent time was removed"
    await _execute(database, "update audit_log set at = :at where id = :id", id=unsealed, at=late)
    assert await left() == 6
    assert (await verify(database, key=None)).fault is None


async def test_nothing_is_removed_without_a_retention(database: Database) -> None:
    await _chain(database)
    await AuditPartitions(database, Retention()).maintain()
    assert len(await _places(database)) == 10


async def test_a_long_query_postpones_the_removal_and_blocks_no_record(database: Database) -> None:
    months, _ = await _chain(database)
    task = AuditPartitions(database, Retention(keep=_keep(months)))
    async with database.transaction() as auditor:
        await auditor.execute(text("select count(*) from audit_log"))
        removal = asyncio.create_task(task.maintain())
        while not removal.done():
            await _insert(database, datetime.now(UTC))
        with pytest.raises(PartitionBusy):
            await removal
    await task.maintain()
    assert await _rows(database, "select count(*) from audit_removals") == [(2,)]


async def test_a_partition_with_a_name_that_needs_quotes_is_not_removed(database: Database) -> None:
    months, _ = await _chain(database)
    oldest = f"audit_log_y{months[0].year}m{months[0].number:02}"
    await _execute(database, f'alter table {oldest} rename to "audit; log"')
    with pytest.raises(ValueError, match="rename it"):
        await AuditPartitions(database, Retention(keep=_keep(months))).maintain()
    with pytest.raises(DBAPIError):
        await _execute(database, "select * from audit")


async def test_a_running_gateway_removes_months_by_its_setting(killed_stack: Ready, gateway: Killable) -> None:
    await asyncio.to_thread(gateway.kill)
    database = Database(asyncpg_url(Secret(killed_stack.postgres)), pool_size=2, acquire_timeout=10)
    months = _months()
    try:
        await _split_initial(database, *months)
        old, young = await _insert(database, months[0].start, datetime.now(UTC))
        await asyncio.to_thread(lambda: gateway.start(AUDIT__RETENTION=str(40 * 86_400)))
        async with asyncio.timeout(120):
            while old in await _places(database):
                await asyncio.sleep(0.2)
        assert young in await _places(database)
    finally:
        await database.close()
