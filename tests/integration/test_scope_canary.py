# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the canary on a running stack: how they are stored, what they forbid, and `lakegate verify-scope`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import httpx
import psutil
import pytest

from gateway.db.credentials import scope_verdicts
from gateway.db.credentials.scope_verdicts import Claimed
from gateway.db.engine.database import Database
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from tests.support.lakegate_command import run_lakegate
from tests.support.servers.toxic import second_gateway
from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import World, unique

pytestmark = pytest.mark.servers

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture(scope="module")
def made(world: World) -> Made:
    return warehouses.make(world, **warehouses.stored_at(world, unique("canary")))


@pytest.fixture
async def database(world: World) -> AsyncIterator[Database]:
    opened = Database(asyncpg_url(Secret(world.ready.postgres)), pool_size=2, acquire_timeout=30)
    yield opened
    await opened.close()


async def _claim(database: Database, id: UUID) -> Claimed:
    async with database.transaction() as connection:
        claimed = await scope_verdicts.claim(connection, id)
    assert claimed is not None
    return claimed


async def _record(
    database: Database, id: UUID, verdict: str, claimed: Claimed | None = None, *, version: int = 1, keep: float = 0
) -> bool:
    async with database.transaction() as connection:
        return await scope_verdicts.record(
            connection,
            id,
            verdict=verdict,
            report=b'{"verdict":"proven"}',
            profile_version=version,
            claimed=claimed,
            keep_seconds=keep,
        )


async def _verdict(database: Database, id: UUID) -> str | None:
    async with database.read() as connection:
        row = await scope_verdicts.stored(connection, id)
    assert row is not None
    return None if row.verdict is None else str(row.verdict)


async def test_an_inconclusive_run_keeps_an_escape_and_a_recent_proof(database: Database, made: Made) -> None:
    id = UUID(made.id)
    for verdict, keep, expected in (
        ("proven", 60.0, "proven"),
        ("proven", 0.0, "inconclusive"),
        ("escaped", 0.0, "escaped"),
    ):
        assert await _record(database, id, verdict)
        assert await _record(database, id, "inconclusive", keep=keep)
        assert await _verdict(database, id) == expected
    assert await _record(database, id, "proven")
    assert await _verdict(database, id) == "proven"


async def test_a_run_of_another_profile_or_before_a_later_one_is_not_recorded(database: Database, made: Made) -> None:
    id = UUID(made.id)
    assert await _record(database, id, "proven")
    assert not await _record(database, id, "escaped", version=2)
    earlier, later = await _claim(database, id), await _claim(database, id)
    assert not await _record(database, id, "inconclusive", earlier)
    assert await _record(database, id, "escaped", earlier), "an escape counts although a later run has begun"
    assert await _record(database, id, "proven", later)
    assert await _verdict(database, id) == "proven"


async def test_a_change_of_the_profile_makes_the_verdict_void(database: Database, world: World, made: Made) -> None:
    id = UUID(made.id)
    await _record(database, id, "escaped")
    world.sql("update warehouses set profile_version = profile_version + 1 where id = $1", id)
    assert await _verdict(database, id) is None
    world.sql("update warehouses set profile_version = profile_version - 1 where id = $1", id)


async def test_verdict_of_a_new_profile_is_as_old_as_its_run(database: Database, world: World, made: Made) -> None:
    """A verdict that seems older than its run by a microsecond would be tried again after an hour."""
    times = "select scope_verdict_at - scope_tried_at as apart from warehouses where id = $1"
    for _ in range(200):
        assert await _record(database, UUID(made.id), "proven")
        assert not world.sql(times, UUID(made.id))[0]["apart"]


async def test_a_due_warehouse_is_claimed_once(database: Database, world: World, made: Made) -> None:
    id = UUID(made.id)
    await _record(database, id, "proven")

    async def due() -> UUID | None:
        async with database.transaction() as connection:
            claimed = await scope_verdicts.claim_due(connection, every=DAY, retry=HOUR)
        return None if claimed is None else claimed.warehouse_id

    assert await due() is None, "the validation of each warehouse was its first run"
    for age, verdict, is_due in (("2 hours", "proven", False), ("25 hours", "proven", True)):
        await _record(database, id, verdict)
        for column in ("scope_tried_at", "scope_verdict_at"):
            world.sql(f"update warehouses set {column} = {column} - interval '{age}' where id = $1", id)
        assert await due() == (id if is_due else None)
        assert await due() is None, "a claimed warehouse is not due before the retry time"
    await _record(database, id, "inconclusive")
    world.sql("update warehouses set scope_tried_at = scope_tried_at - interval '2 hours' where id = $1", id)
    assert await due() == id
    await _record(database, id, "proven")


def test_verify_scope_proves_a_warehouse_of_the_stack(world: World, made: Made) -> None:
    environment = psutil.Process(world.ready.pids["gateway"][0]).environ()
    done = run_lakegate("verify-scope", "--warehouse", made.name, "--locations", "2", "--json", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["canary"]["verdict"] == "proven" and report["proof"]["violations"] == []
    assert report["canary"]["attempts"] > 150 and report["proof"]["policies"] == 6
    unknown = run_lakegate("verify-scope", "--warehouse", unique("none"), environment=environment)
    assert unknown.returncode == 1 and "no warehouse has the name" in unknown.stderr


async def test_an_escaped_warehouse_gets_no_keys_where_it_is_enforced(
    database: Database, world: World, made: Made, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The gateway of this test also runs the canary for a warehouse without a verdict."""
    table = world.table(world.namespace())
    id = UUID(world.warehouse)
    log = tmp_path_factory.mktemp("canary") / "gateway.log"
    token = {"Authorization": f"Bearer {world.admin.token}"}
    address = f"{world.ready.s3.endpoint}/{table.location.removeprefix('s3://')}/data/f"
    read = {"region": world.ready.s3.region, "method": "GET", "uri": address, "headers": {}}
    world.sql("update warehouses set scope_verdict = null, scope_tried_at = null where id = $1", UUID(made.id))
    with second_gateway(world.ready, log, CANARY__ENFORCE="escaped", CANARY__RETRY="1") as (base, _):
        await _record(database, id, "escaped")
        try:
            answer = httpx.get(f"{base}{table.path}", headers=token, timeout=60, trust_env=False)
            signed = httpx.post(f"{base}{table.path}/sign", json=read, headers=token, timeout=60, trust_env=False)
            kept = world.admin.get(table.path)
        finally:
            await _record(database, id, "proven")
        again = httpx.get(f"{base}{table.path}", headers=token, timeout=60, trust_env=False)
        async with asyncio.timeout(60):
            while await _verdict(database, UUID(made.id)) is None:
                await asyncio.sleep(0.1)
    assert answer.status_code == 200 and not answer.json().get("storage-credentials")
    assert not {name for name in answer.json()["config"] if "access-key" in name or "token" in name}
    assert "s3.remote-signing-enabled" not in answer.json()["config"]
    assert signed.status_code == 403 and "leave its scope" in signed.text
    assert world.admin.post(f"{table.path}/sign", read).status_code == 200
    assert kept.json()["storage-credentials"] and again.json()["storage-credentials"]
    request = answer.headers["x-request-id"]
    assert await _verdict(database, UUID(made.id)) == "proven"
    assert world.sql("select 1 from audit_log where operation = 'verify_credential_scope'")
    records = world.sql("select * from audit_log where request_id = $1", request)
    assert len([each for each in records if "leave its scope" in str(dict(each))]) == 1
