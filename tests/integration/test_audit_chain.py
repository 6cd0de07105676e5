# SPDX-License-Identifier: Apache-2.0
"""The chain over audit records on a real PostgreSQL: every manipulation by SQL is found, and no record is skipped."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from gateway.access.audit.audit_chain import Anchor, first_id
from gateway.db.audit import audit_log, audit_partitions
from gateway.db.audit.audit_partitions import Partition
from gateway.db.engine.database import Connection, Database
from gateway.features.audit.audit_chain import AuditSealer, Verified, export, verify, verify_file
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from lakegate.local.ready import Ready
from tests.support.load.kills import Killable
from tests.support.rows.audit_records import insert_records, recent_record
from tests.support.rows.parts import Parts

pytestmark = pytest.mark.servers

_INSERT = (
    "insert into audit_log (id, at, request_id, actor_id, operation, outcome, record) "
    "values (:id, :at, 'r', 'oidc~alice', 'load_table', 'allowed', '{}')"
)
KEY = b"a key that the database does not have"


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    async with database.transaction() as connection:
        await connection.execute(text("truncate audit_log, audit_blocks, audit_block_records"))
    yield database
    await database.close()


def _sealer(database: Database, *, most: int = 10, key: bytes | None = None) -> AuditSealer:
    return AuditSealer(database, every=1.0, key=key, most=most)


async def _execute(database: Database, statement: str, **parameters: object) -> None:
    async with database.transaction() as connection:
        await connection.execute(text(statement), parameters)


async def _fault(database: Database) -> str:
    found = await verify(database, key=None)
    assert found.fault is not None
    return f"{found.fault.number}: {found.fault.reason}"


async def _sealed(database: Database, count: int = 25) -> tuple[list[UUID], Verified]:
    """Write and seal records in blocks of ten. Return (ids of the records, the result of a verification)."""
    ids = await insert_records(database, count)
    await _sealer(database).seal_all()
    return ids, await verify(database, key=None)


async def test_sealed_records_verify_and_later_ones_are_counted(database: Database) -> None:
    _, before = await _sealed(database)
    await insert_records(database, 4)
    after = await verify(database, key=None, anchor=before.last)
    assert (before.blocks, before.records, before.unsealed, before.fault) == (3, 25, 0, None)
    assert (after.blocks, after.records, after.unsealed, after.fault) == (3, 25, 4, None)


@pytest.mark.parametrize(
    "change",
    ["actor_id = 'oidc~bob'", "record = '{}'", "at = at - interval '1 microsecond'", "outcome = 'hidden'"],
)
async def test_a_changed_record_is_found(database: Database, change: str) -> None:
    ids, _ = await _sealed(database)
    await _execute(database, f"update audit_log set {change} where id = :id", id=ids[15])
    assert await _fault(database) == "2: a record was changed or replaced"


async def test_a_deleted_record_is_found_with_and_without_its_membership(database: Database) -> None:
    ids, _ = await _sealed(database)
    await _execute(database, "delete from audit_log where id = :id", id=ids[3])
    assert (await _fault(database)).startswith("1: records were deleted: 9 instead of 10")
    await _execute(database, "delete from audit_block_records where record_id = :id", id=ids[3])
    assert (await _fault(database)).startswith("1: records were deleted: 9 instead of 10")


async def test_a_record_inserted_into_a_sealed_block_is_found(database: Database) -> None:
    await _sealed(database)
    (forged,) = await insert_records(database, 1)
    await _execute(database, "insert into audit_block_records (record_id, block) values (:id, 2)", id=forged)
    assert (await _fault(database)).startswith("2: records were inserted: 11 instead of 10")


async def test_a_changed_or_removed_block_is_found(database: Database) -> None:
    await _sealed(database)
    await _execute(database, "update audit_blocks set sealed_at = sealed_at - interval '1 day' where number = 2")
    assert (await _fault(database)).startswith("2: the block was changed")
    await _execute(database, "delete from audit_blocks where number = 2")
    assert (await _fault(database)).startswith("2: the block is missing")


async def test_a_removed_tail_is_found_by_an_anchor_only(database: Database) -> None:
    _, before = await _sealed(database)
    await _execute(
        database, "delete from audit_log where id in (select record_id from audit_block_records where block=3)"
    )
    await _execute(database, "delete from audit_block_records where block = 3")
    await _execute(database, "delete from audit_blocks where number = 3")
    assert (await verify(database, key=None)).fault is None
    found = await verify(database, key=None, anchor=before.last)
    assert found.fault is not None and found.fault.number == 3


async def test_a_chain_that_was_sealed_again_differs_from_the_anchor(database: Database) -> None:
    ids, before = await _sealed(database)
    await _execute(database, "update audit_log set actor_id = 'oidc~bob' where id = :id", id=ids[0])
    await _execute(database, "truncate audit_blocks, audit_block_records")
    await _sealer(database).seal_all()
    assert (await verify(database, key=None)).fault is None
    found = await verify(database, key=None, anchor=before.last)
    assert found.fault is not None and "differs from the anchor" in found.fault.reason


async def test_a_block_without_the_key_is_refused(database: Database) -> None:
    await insert_records(database, 5)
    await _sealer(database, key=KEY).seal_all()
    assert (await verify(database, key=KEY)).fault is None
    assert (await verify(database, key=None)).fault is not None


async def test_concurrent_sealers_make_one_chain(database: Database) -> None:
    ids = await insert_records(database, 200)
    sealers = [_sealer(database) for _ in range(3)]
    while (await verify(database, key=None)).unsealed:
        await asyncio.gather(*(sealer.seal_all() for sealer in sealers))
    found = await verify(database, key=None)
    assert (found.records, found.fault) == (len(ids), None)


async def test_a_record_committed_after_later_ones_were_sealed_is_sealed_too(database: Database) -> None:
    sealer = _sealer(database)
    async with database.transaction() as slow:
        await audit_log.insert(slow, [recent_record()])
        await insert_records(database, 3)
        await sealer.seal_all()
        assert (await _counts(slow)) == 3
    await sealer.seal_all()
    found = await verify(database, key=None)
    assert (found.records, found.unsealed, found.fault) == (4, 0, None)


async def test_a_record_of_an_earlier_day_is_sealed_by_a_search_of_the_whole_log(database: Database) -> None:
    sealer = _sealer(database)
    await sealer.seal_all()
    await insert_records(database, 1, datetime.now(UTC) - timedelta(days=1))
    await sealer.seal_all()
    assert (await verify(database, key=None)).unsealed == 1, "this run searched the whole log again"
    await _sealer(database).seal_all()
    assert (await verify(database, key=None)).unsealed == 0


async def _counts(connection: Connection) -> int:
    return int((await connection.execute(text("select count(*) from audit_block_records"))).scalar_one())


def _command(parts: Parts, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
    url = parts.database_url.replace("postgresql+asyncpg:", "postgresql:")
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", "audit", *arguments],
        env=plain | {"LAKEGATE__PG_DATABASE_URL_WRITE": url, "LAKEGATE__PG_SSL_MODE": "disable"},
        capture_output=True,
        text=True,
        timeout=120,
    )


async def test_the_command_prints_an_anchor_and_fails_for_a_fault(parts: Parts, database: Database) -> None:
    ids, before = await _sealed(database)
    assert before.last is not None
    good = await asyncio.to_thread(_command, parts, "verify")
    assert (good.returncode, good.stdout.splitlines()[-1]) == (0, _text(before.last)), good.stderr
    assert "verified blocks: 3, records: 25, not sealed yet: 0" in good.stdout
    again = await asyncio.to_thread(_command, parts, "verify", "--anchor", _text(before.last))
    assert again.returncode == 0
    await _execute(database, "delete from audit_log where id = :id", id=ids[0])
    bad = await asyncio.to_thread(_command, parts, "verify")
    assert (bad.returncode, bad.stderr.strip()) == (3, "block 1: records were deleted: 9 instead of 10")
    malformed = await asyncio.to_thread(_command, parts, "verify", "--anchor", "x")
    assert malformed.returncode == 1 and "--anchor must be" in malformed.stderr


async def test_an_exported_file_is_verified_without_the_database(
    parts: Parts, database: Database, tmp_path: Path
) -> None:
    ids, before = await _sealed(database)
    assert before.last is not None
    file = tmp_path / "audit.jsonl"
    done = await asyncio.to_thread(_command, parts, "export", "--output", str(file))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3"), done.stderr
    nowhere = Parts("postgresql+asyncpg://nobody@127.0.0.1:1/nothing", "")
    good = await asyncio.to_thread(_command, nowhere, "verify", "--file", str(file), "--anchor", _text(before.last))
    assert (good.returncode, good.stdout.splitlines()[0]) == (0, "verified blocks: 3, records: 25"), good.stderr
    file.write_bytes(file.read_bytes().replace(b"oidc~alice", b"oidc~bobby", 1))
    bad = await asyncio.to_thread(_command, nowhere, "verify", "--file", str(file))
    assert bad.returncode == 3 and bad.stderr.startswith("block 1: a record was changed")
    absent = await asyncio.to_thread(_command, nowhere, "verify", "--file", str(tmp_path / "absent"))
    assert absent.returncode == 1 and "No such file" in absent.stderr
    again = await asyncio.to_thread(_command, parts, "export", "--output", str(file))
    assert again.returncode == 1 and "File exists" in again.stderr
    await _execute(database, "delete from audit_log where id = :id", id=ids[0])
    gone = await asyncio.to_thread(_command, parts, "export", "--output", str(tmp_path / "other.jsonl"))
    assert gone.returncode == 1 and "block 1 has 9 of 10 records" in gone.stderr


async def test_an_export_continues_after_a_block(parts: Parts, database: Database, tmp_path: Path) -> None:
    await _sealed(database)
    done = await export(database, tmp_path / "rest.jsonl", after=2)
    assert (done.last, done.records) == (3, 5)
    assert verify_file(tmp_path / "rest.jsonl", key=None, anchor=None).blocks == 1


async def test_a_running_gateway_seals_its_records_and_creates_partitions(
    killed_stack: Ready, gateway: Killable
) -> None:
    gateway.kill()
    gateway.start(AUDIT__SEAL_INTERVAL="0.2", AUDIT__SEAL_KEY=KEY.decode())
    database = Database(asyncpg_url(Secret(killed_stack.postgres)), pool_size=2, acquire_timeout=10)
    try:
        async with asyncio.timeout(120):
            while not (found := await verify(database, key=KEY)).records:
                await asyncio.sleep(0.2)
            while len(await _partitions(database)) < 2:
                await asyncio.sleep(0.2)
    finally:
        await database.close()
    assert found.fault is None


async def _partitions(database: Database) -> list[Partition]:
    async with database.read() as connection:
        return await audit_partitions.partitions(connection)


async def test_a_record_that_is_marked_as_sealed_in_no_block_is_found(parts: Parts, database: Database) -> None:
    await _sealed(database)
    (hidden,) = await insert_records(database, 1)
    await _execute(database, "insert into audit_block_records (record_id, block) values (:id, 99)", id=hidden)
    await _sealer(database).seal_all()
    assert (await verify(database, key=None)).strays == 1
    bad = await asyncio.to_thread(_command, parts, "verify")
    assert bad.returncode == 3 and "1 records are marked as sealed in a block that does not exist" in bad.stderr


async def test_a_block_has_records_of_one_month_only(database: Database) -> None:
    now = datetime.now(UTC)
    boundary = datetime(now.year, now.month, 1, tzinfo=UTC)
    for number in range(10):
        at = boundary + timedelta(milliseconds=number - 5)
        id = UUID(int=first_id(at).int + 1)
        await _execute(database, _INSERT, id=id, at=at)
    await _sealer(database, most=100).seal_all()
    counted = "select count(*) from audit_block_records group by block order by block"
    async with database.read() as connection:
        assert [row[0] for row in await connection.execute(text(counted))] == [5, 5]


def _text(anchor: Anchor) -> str:
    return f"{anchor.number}:{anchor.digest.hex()}"
