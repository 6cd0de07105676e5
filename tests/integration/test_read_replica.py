# SPDX-License-Identifier: Apache-2.0
"""A read replica on a real PostgreSQL: lists, searches, statistics and histories for users are read from it, nothing
else is, and the primary answers when the replica cannot.

The replica is a copy of the database that never catches up: rows that exist only in the copy show where a read was
sent.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from structlog.testing import capture_logs

from gateway.db.engine.database import Connection, Database
from gateway.db.warehouses import servers
from gateway.db.warehouses.read_pool import ReadPool
from lakegate.local import account
from lakegate.local.postgres import programs_directory
from lakegate.local.ready import Ready
from tests.integration.conftest import _up
from tests.support.servers.toxic import GONE, WELL, Toxic, second_gateway
from tests.support.stack.world import Person, Table, World

pytestmark = pytest.mark.servers

ONLY_THERE = "Onlyinthereplica"


@dataclass
class Replica:
    """A copy of the stack's database, reached through a proxy that records what is sent to it."""

    url: str
    direct: str
    proxy: Toxic
    sent: list[bytes] = field(default_factory=list)

    def note(self, _: int, data: bytes) -> None:
        self.sent.append(data)

    async def execute(self, statement: str) -> None:
        """Run a statement on the copy itself, past the proxy."""
        connection = await asyncpg.connect(self.direct)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def _program(name: str, url: str, *arguments: str, given: bytes = b"") -> bytes:
    """Run one of PostgreSQL's own programs and return its output."""
    at = urlsplit(url)
    environment = {"PGPASSWORD": at.password or "", "PGHOST": at.hostname or "", "PGPORT": str(at.port)}
    done = subprocess.run(
        [str(programs_directory(None) / "bin" / name), "--username", at.username or "", *arguments],
        env=os.environ | environment,
        input=given,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return done.stdout


@dataclass(frozen=True)
class Site:
    """A stack and its data directory."""

    ready: Ready
    data: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    data = tmp_path_factory.mktemp("replicated") / "data"
    with _up(data=data) as ready:
        yield Site(ready, data)
    account.remove_data(data / "postgres")


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    world = World(site.ready)
    yield world
    world.close()


@pytest.fixture(scope="module")
def table(world: World) -> Table:
    return world.table(world.namespace(), "on_the_primary")


@pytest.fixture(scope="module")
def lost(world: World, table: Table) -> Person:
    """Create a user with a grant on the table, which is revoked after the copy was made."""
    person = world.stranger()
    world.grant("select", person, "table", table.uuid)
    return person


@pytest.fixture(scope="module")
def replica(site: Site, world: World, table: Table, lost: Person) -> Iterator[Replica]:
    """Create a copy of the database in which objects have other names than on the primary."""
    at = urlsplit(site.ready.postgres)
    password = json.loads((site.data / "secrets.json").read_text())["postgres_superuser"]
    superuser = f"postgresql://postgres:{password}@{at.hostname}:{at.port}/postgres"
    _program("createdb", superuser, "--owner", "lakegate", "copy")
    dump = _program("pg_dump", site.ready.postgres, "--format", "custom", "--dbname", at.path.removeprefix("/"))
    _program("pg_restore", site.ready.postgres, "--no-owner", "--exit-on-error", "--dbname", "copy", given=dump)
    direct = site.ready.postgres.rsplit("/", 1)[0] + "/copy"
    proxy = Toxic(at.port or 0)
    made = Replica(direct.replace(f":{proxy.target}/", f":{proxy.port}/"), direct, proxy)
    world._loop.run(
        made.execute(
            f"update users set name = '{ONLY_THERE}' where id = '{world.bob.id}';"
            f"update tables set name = '{ONLY_THERE}', name_key = '{ONLY_THERE.lower()}'"
            f" where table_uuid = '{table.uuid}'"
        )
    )
    yield made
    proxy.close()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway") / "gateway.log"


@pytest.fixture(scope="module")
def admin(site: Site, world: World, replica: Replica, log: Path) -> Iterator[httpx.Client]:
    """Yield the administrator's client at a second gateway, which reads from the copy.

    The stack's own gateway has no replica.
    """
    settings = {"PG_DATABASE_URL_READ": replica.url, "PG_READ_POOL_CONNECTIONS": "2", "PG_ACQUIRE_TIMEOUT": "2s"}
    with (
        second_gateway(site.ready, log, **settings) as (base, _),
        httpx.Client(base_url=base, headers=world.admin.http.headers, timeout=60, trust_env=False) as http,
    ):
        yield http


def _found(http: httpx.Client) -> list[str]:
    answer = http.post("/management/v1/search/user", json={"search": ONLY_THERE})
    assert answer.status_code == 200, answer.text
    return [user["name"] for user in answer.json()["users"]]


def _for_people(world: World, table: Table) -> list[tuple[str, str, object]]:
    warehouse = world.warehouse
    return [
        ("POST", "/management/v1/search/user", {"search": "alice"}),
        ("POST", "/management/v1/search/role", {"search": "engineers"}),
        ("GET", "/management/v1/user", None),
        ("POST", f"/management/v1/warehouse/{warehouse}/search-tabular", {"search": ONLY_THERE}),
        ("GET", f"/management/v1/warehouse/{warehouse}/statistics", None),
        ("POST", "/management/v1/endpoint-statistics", {"warehouse": {"type": "all"}}),
        ("POST", f"/management/v1/warehouse/{warehouse}/task/list", {}),
        ("POST", "/management/v1/project/task/list", {}),
        ("GET", f"/management/v1/warehouse/{warehouse}/grants/history", None),
    ]


def _exact(world: World, table: Table) -> list[tuple[str, str, object]]:
    """Return the requests that the primary must answer: permissions, current state, and results of own changes."""
    warehouse = world.warehouse
    return [
        ("GET", table.path, None),
        ("GET", f"/catalog/v1/{warehouse}/namespaces", None),
        ("GET", f"/catalog/v1/{warehouse}/namespaces/{table.namespace}/tables", None),
        ("GET", "/management/v1/whoami", None),
        ("GET", f"/management/v1/user/{world.bob.id}", None),
        ("GET", "/management/v1/role", None),
        ("GET", "/management/v1/warehouse", None),
        ("GET", "/management/v1/project-list", None),
        ("GET", "/management/v1/grants", None),
        ("GET", f"/management/v1/warehouse/{warehouse}/grants", None),
        ("POST", f"/catalog/v1/{warehouse}/namespaces", {"namespace": [f"made_{uuid4().hex}"]}),
    ]


def test_only_lists_are_read_from_the_replica(
    admin: httpx.Client, world: World, table: Table, replica: Replica
) -> None:
    _found(admin)
    replica.proxy.cut = replica.note
    for method, path, body in _for_people(world, table):
        replica.sent.clear()
        answer = admin.request(method, path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        assert replica.sent, f"{method} {path} was not read from the replica"
    replica.sent.clear()
    for method, path, body in _exact(world, table):
        answer = admin.request(method, path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        assert not replica.sent, f"{method} {path} was read from the replica"


def test_searches_read_the_replica_and_single_objects_the_primary(
    admin: httpx.Client, world: World, table: Table, replica: Replica
) -> None:
    assert _found(admin) == [ONLY_THERE]
    assert _found(world.admin.http) == []
    path = f"/management/v1/warehouse/{world.warehouse}/search-tabular"
    [hit] = admin.post(path, json={"search": ONLY_THERE}).json()["tabulars"]
    assert hit["tabular-name"] == ONLY_THERE
    assert admin.get(f"/management/v1/user/{world.bob.id}").json()["name"] != ONLY_THERE


def test_replica_search_omits_rights_revoked_on_the_primary(
    admin: httpx.Client, world: World, table: Table, lost: Person
) -> None:
    path = f"/management/v1/warehouse/{world.warehouse}/search-tabular"

    def found() -> list[str]:
        answer = admin.post(path, json={"search": ONLY_THERE}, headers={"Authorization": f"Bearer {lost.token}"})
        assert answer.status_code in (200, 404), answer.text
        return [hit["tabular-name"] for hit in answer.json().get("tabulars", [])]

    assert found() == [ONLY_THERE]
    world.revoke("select", lost, "table", table.uuid)
    assert found() == []


def test_primary_serves_lists_while_the_replica_is_down_and_logs_it(
    admin: httpx.Client, world: World, table: Table, replica: Replica, log: Path
) -> None:
    replica.proxy.become(GONE)
    try:
        for method, path, body in _for_people(world, table):
            answer = admin.request(method, path, json=body)
            assert answer.status_code == 200, (path, answer.text)
        assert _found(admin) == []
        events = [json.loads(line) for line in log.read_text().splitlines() if "read_pool.replica_failed" in line]
        assert events and events[0]["level"] == "warning" and "copy" not in json.dumps(events)
    finally:
        replica.proxy.become(WELL)


async def _bob(connection: Connection) -> str:
    row = await connection.execute(text("select name from users where name = :name"), {"name": ONLY_THERE})
    return str(row.scalar_one_or_none())


@dataclass
class Pool:
    """A pool in this process, with a clock that the test advances."""

    reads: ReadPool
    server_id: UUID
    now: float = 0.0


@pytest.fixture
async def pool(site: Site, replica: Replica) -> AsyncIterator[Pool]:
    primary = Database(_sqlalchemy(site.ready.postgres), pool_size=1, acquire_timeout=5)
    copy = Database(_sqlalchemy(replica.url), pool_size=1, acquire_timeout=5, read_only=True)
    async with primary.read() as connection:
        server_id = await servers.stored_id(connection)
    assert server_id is not None
    made: Pool
    made = Pool(ReadPool(primary, copy, server_id, retry_seconds=10.0, clock=lambda: made.now), server_id)
    yield made
    replica.proxy.become(WELL)
    await primary.close()
    await copy.close()


def _sqlalchemy(url: str) -> str:
    return url.replace("postgresql://", "postgresql+asyncpg://", 1)


async def test_failed_replica_is_retried_after_the_pause(pool: Pool, replica: Replica) -> None:
    assert await pool.reads.run(_bob) == ONLY_THERE
    replica.proxy.become(GONE)
    with capture_logs() as logs:
        assert await pool.reads.run(_bob) == "None"
    assert [event["event"] for event in logs] == ["read_pool.replica_failed"]
    replica.proxy.become(WELL)
    pool.now = 9.9
    assert await pool.reads.run(_bob, in_transaction=True) == "None", (
        "a failed replica must not be used again before the pause has ended"
    )
    pool.now = 10.1
    assert await pool.reads.run(_bob, in_transaction=True) == ONLY_THERE


async def test_replica_without_a_migration_is_skipped_but_not_for_query_errors(pool: Pool, replica: Replica) -> None:
    async def newer(connection: Connection) -> int:
        return int((await connection.execute(text("select count(*) from server"))).scalar_one())

    async def wrong(connection: Connection) -> None:
        await connection.execute(text("select 1 / 0"))

    with capture_logs() as logs, pytest.raises(DBAPIError, match="division"):
        await pool.reads.run(wrong)
    assert logs == [] and await pool.reads.run(_bob) == ONLY_THERE
    await replica.execute("alter table server rename to server_before")
    try:
        assert await pool.reads.run(newer) == 1
        assert await pool.reads.run(_bob) == "None"
    finally:
        await replica.execute("alter table server_before rename to server")


async def test_a_replica_of_another_server_is_never_read(pool: Pool, replica: Replica) -> None:
    await replica.execute(f"update server set id = '{uuid4()}'")
    try:
        with capture_logs() as logs:
            assert await pool.reads.run(_bob) == "None"
        assert str(pool.server_id) in logs[0]["reason"]
    finally:
        await replica.execute(f"update server set id = '{pool.server_id}'")


async def test_the_replica_is_never_written_to(replica: Replica) -> None:
    copy = Database(_sqlalchemy(replica.url), pool_size=1, acquire_timeout=5, read_only=True)
    try:
        with pytest.raises(DBAPIError, match="read-only"):
            async with copy.transaction() as connection:
                await connection.execute(text("delete from users"))
    finally:
        await copy.close()
