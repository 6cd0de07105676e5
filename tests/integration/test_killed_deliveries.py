# SPDX-License-Identifier: Apache-2.0
"""Processes killed at every step of a change and its delivery: OpenFGA finally holds exactly what the rows require.

The changes are grants with and without expiry, revocations, creations, drops and moves of tables, moves of a namespace,
deletions of users, and expiries. Four run at a time in a process that kills itself at the n-th boundary: before or
after a commit, before or after a write to OpenFGA, or during one. A proxy forwards some writes late, even if the client
has disconnected, and loses some. Between kills every difference from the rows must have a row in the outbox, and a
confirmed revocation must stay effective. At the end nothing may differ.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.tuples import outbox
from gateway.fga.client import FgaClient
from gateway.fga.relationships import rfc3339, to_wire
from tests.support.rows import parts
from tests.support.rows.parts import Parts, Proxy, Rows, Seen, all_desired, delivery, seen, store, tuples

pytestmark = pytest.mark.chaos

_TIMEOUT, _LATEST = 0.25, 1.2
_SETTLE = _TIMEOUT + _LATEST + 3.0


@dataclass
class Trial:
    """A sequence of kills, and the checks after each."""

    database: Database
    client: FgaClient
    rows: Rows
    proxy: Proxy
    chance: random.Random
    revoked: set[tuple[str, str, str]] = field(default_factory=set)
    kills: int = 0
    deaths: int = 0
    confirmed: int = 0

    async def prepare(self) -> None:
        """Insert the rows and deliver their tuples."""
        async with self.database.transaction() as connection:
            await self.rows.insert(connection)
            pending = await outbox.enqueue(connection, self.rows.edges, takes_away=False)
        await delivery(self.database, self.client).deliver(pending)

    def how_late(self, _: str) -> float:
        """Return the delay of a write: most pass at once, some late, a few are lost."""
        luck = self.chance.random()
        if luck < 0.75:
            return 0.0
        return self.chance.uniform(0.3, _LATEST) if luck < 0.97 else -self.chance.uniform(0.05, _LATEST)

    async def kill(self, child: asyncio.subprocess.Process, order: dict[str, Any]) -> None:
        """Run one child until its end, and record the grants and confirmed revocations that it reports."""
        assert child.stdin is not None
        assert child.stdout is not None
        self.kills += 1
        child.stdin.write((json.dumps(order) + "\n").encode())
        await child.stdin.drain()
        while True:
            line = await asyncio.wait_for(child.stdout.readline(), 120)
            what, *key = json.loads(line)
            assert what != "surprise", key[0]
            if what == "ended":
                self.deaths += int(key[0]) == 9
                return
            user, relation, object = key
            if what == "gives":
                self.revoked.discard((user, relation, object))
            else:
                self.revoked.add((user, relation, object))
                self.confirmed += 1

    async def check(self) -> None:
        """Check that every difference has a row in the outbox, and that no confirmed revocation is undone."""
        async with self.database.transaction() as connection:
            await connection.execute(text("set transaction isolation level repeatable read"))
            waiting = await outbox.waiting(connection)
            expected = await all_desired(connection, self.rows)
            now = (await connection.execute(text("select clock_timestamp()"))).scalar_one()
        found = {each for each in await tuples(self.client) if each[3] is None or each[3] > rfc3339(now)}
        known = {seen(to_wire(row.key))[:3] for row in waiting}
        untold = {each for each in found ^ expected if each[:3] not in known and not _just_over(each, now)}
        assert untold == set(), f"OpenFGA differs from the rows without a pending delivery: {untold}"
        back = {each[:3] for each in found} & self.revoked
        assert back == set(), f"grants exist again whose revocation was confirmed: {back}"

    async def settle(self) -> None:
        """Deliver all rows of the outbox, as the background task of another process does."""
        finishing = delivery(self.database, self.client, settle_seconds=_SETTLE)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            async with self.database.transaction() as connection:
                await connection.execute(text("update outbox set not_before = clock_timestamp()"))
            while await finishing.deliver_due():
                pass
            async with self.database.read() as connection:
                if await outbox.count(connection) == 0:
                    return
            await asyncio.sleep(0.1)
        raise AssertionError("the outbox was not delivered before the deadline")

    async def some_background(self) -> None:
        """Deliver a part of the outbox, as a background task does, and insert deleted users again."""
        async with self.database.transaction() as connection:
            await connection.execute(text("update outbox set not_before = clock_timestamp() where random() < 0.5"))
            for user in self.rows.users:
                await parts.add_user(connection, user)
        await delivery(self.database, self.client, settle_seconds=_SETTLE).deliver_due()


def _just_over(each: Seen, now: Any) -> bool:
    """Return True if the tuple expired between the two reads."""
    return each[3] is not None and each[3] <= rfc3339(now)


async def _kill_many(parts: Parts, *, kills: int, seed: int, confirmed: int = 0) -> Trial:
    """Run this many kills, and up to twice as many until `confirmed` revocations, a random number, were confirmed."""
    chance = random.Random(seed)
    proxy = Proxy(parts.openfga_url, latest=_LATEST + 0.5)
    database = Database(parts.database_url, pool_size=4, acquire_timeout=30)
    async with proxy.serving() as endpoint, store(parts) as client:
        trial = Trial(database, client, Rows(), proxy, chance)
        await trial.prepare()
        proxy.plan = trial.how_late
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.load.kill_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        try:
            for number in range(2 * kills):
                if number >= kills and trial.confirmed >= confirmed:
                    break
                order = {
                    "seed": seed * 1_000_000 + number,
                    "kill_at": chance.randint(1, 40),
                    "at_most": 20.0,
                    "rows": json.loads(json.dumps(vars(trial.rows), default=str)),
                    "database_url": parts.database_url,
                    "endpoint": endpoint,
                    "store_id": client._url.rpartition("/")[2],
                    "model_id": client.model_id,
                    "timeout": _TIMEOUT,
                    "settle": _SETTLE,
                }
                await trial.kill(child, order)
                await trial.check()
                if chance.random() < 0.5:
                    await trial.some_background()
                    if chance.random() < 0.5:
                        await proxy.drained()
                    await trial.check()
        finally:
            assert child.stdin is not None
            child.stdin.close()
            await child.wait()
        await proxy.drained()
        await trial.check()
        await trial.settle()
        async with database.read() as connection:
            expected = await all_desired(connection, trial.rows)
            orphans = await connection.execute(
                text(
                    "select * from grants g where g.object_type = 'table' "
                    "and not exists (select 1 from tables t where t.id::text = g.object_id) "
                    "or g.principal_type = 'user' and not exists (select 1 from users u where u.id = g.principal_id)"
                )
            )
            assert orphans.all() == [], "no grant of or on a missing object may stay"
        live = {each for each in await tuples(client) if each in expected or not _ends_soon(each)}
        assert live == expected
    await database.close()
    return trial


def _ends_soon(each: Seen) -> bool:
    """Return True for a grant that expires at once; only the expiry task removes its tuples."""
    return each[3] is not None and each[3] < rfc3339(datetime.now(UTC) + timedelta(seconds=60))


async def test_openfga_matches_the_rows_after_a_few_kills(parts: Parts) -> None:
    trial = await _kill_many(parts, kills=12, seed=7)
    assert trial.deaths >= 10


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_openfga_matches_the_rows_after_500_kills(parts: Parts) -> None:
    trial = await _kill_many(parts, kills=500, seed=11, confirmed=40)
    print(f"{trial.kills} kills, {trial.deaths} deaths, {trial.confirmed} revocations confirmed in between")
    assert trial.deaths >= 0.9 * trial.kills
    assert trial.confirmed >= 40, "too few revocations were confirmed, so the test proves nothing"
