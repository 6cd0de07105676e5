# SPDX-License-Identifier: Apache-2.0
"""Clients that send slowly, too much or nothing, and requests that take too long, against the real server.

The tests use a second gateway with short limits, so that each limit is reached soon.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, World, error_of, unique

pytestmark = pytest.mark.chaos

HEADERS, SILENCE, WHOLE = 4.0, 3.0, 5.0
LARGEST = 100_000
_BUSY = 5.0
"""Tolerance in seconds for pauses of the machine."""


@pytest.fixture(scope="module")
def strict(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a gateway with short time limits."""
    limits = {
        "MAX_HEADER_TIME": f"{HEADERS}s",
        "MAX_REQUEST_SILENCE": f"{SILENCE}s",
        "MAX_REQUEST_TIME": f"{WHOLE}s",
        "MAX_REQUEST_BODY_SIZE": str(LARGEST),
        # All of these clients are one principal; `test_fair_shares.py` tests its share.
        "SHARES__REQUESTS": "300",
        "SHARES__TOTAL_REQUESTS": "400",
    }
    with second_gateway(world.ready, tmp_path_factory.mktemp("strict") / "gateway.log", **limits) as (base, _):
        yield base


@pytest.fixture
def there(world: World, strict: str) -> Iterator[Person]:
    person = Person("admin", world.admin.id, world.admin.token, strict)
    yield person
    person.http.close()


def _connected(base: str, text: str) -> socket.socket:
    url = urlsplit(base)
    connection = socket.create_connection((url.hostname or "", url.port or 0), timeout=60)
    connection.sendall(text.encode())
    return connection


def _head(world: World, path: str, *more: str) -> str:
    lines = [f"POST {path} HTTP/1.1", "Host: gateway", f"Authorization: Bearer {world.admin.token}"]
    return "\r\n".join([*lines, "Content-Type: application/json", *more, "", ""])


def _closed(connection: socket.socket) -> tuple[bytes, float]:
    """Return (bytes received until the server closed the connection, seconds until then)."""
    began, answer = time.monotonic(), b""
    with connection:
        while True:
            try:
                part = connection.recv(65536)
            except ConnectionResetError:
                part = b""
            if not part:
                return answer, time.monotonic() - began
            answer += part


@pytest.mark.threat("LG-DIS-16")
def test_many_idle_connections_keep_no_client_out(there: Person, world: World, strict: str) -> None:
    """The server once accepted 1,024 connections in all, and new clients waited until idle ones were closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < 8192 else max(soft, 8192), hard))
    request = f"HEAD {world.root}/namespaces HTTP/1.1\r\nHost: gateway\r\n\r\n"
    idle = [_connected(strict, request) for _ in range(1200)]
    try:
        began = time.monotonic()
        assert there.get(f"{world.root}/namespaces").status_code == 200
        assert time.monotonic() - began < HEADERS
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.threat("LG-DIS-16")
def test_unfinished_requests_are_closed_and_delay_no_other_client(world: World, there: Person, strict: str) -> None:
    path = f"{world.root}/namespaces"
    heads = [_connected(strict, f"POST {path} HTTP/1.1\r\nHost: gate") for _ in range(150)]
    bodies = [_connected(strict, _head(world, path, "Content-Length: 500") + '{"namesp') for _ in range(150)]
    slowest = 0.0
    for _ in range(10):
        began = time.monotonic()
        assert there.get(path).status_code == 200
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < SILENCE
    for connection in heads:
        answer, took = _closed(connection)
        assert took < HEADERS + _BUSY
        assert b" 200 " not in answer
    for connection in bodies:
        answer, took = _closed(connection)
        assert took < SILENCE + _BUSY
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"type":"RequestTimeoutException"' in answer
        assert b"connection: close" in answer.lower()


def test_trickled_bytes_do_not_extend_the_request_timeout(world: World, strict: str) -> None:
    connection = _connected(strict, _head(world, f"{world.root}/namespaces", "Content-Length: 500"))
    over = threading.Event()

    def drip() -> None:
        while not over.wait(SILENCE / 3):
            try:
                connection.sendall(b" ")
            except OSError:
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    began = time.monotonic()
    try:
        answer = connection.recv(65536)
        took = time.monotonic() - began
    finally:
        over.set()
        dripping.join()
        connection.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert SILENCE < took < WHOLE + _BUSY


@pytest.mark.threat("LG-DIS-16")
@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_body_is_refused_without_being_read(there: Person, world: World, chunked: bool) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"namespace": ["'
        for _ in range(40):
            yield b"x" * 10_000

    content = pieces() if chunked else b"".join(pieces())
    try:
        answer = there.http.post(
            f"{world.root}/namespaces", content=content, headers={"Content-Type": "application/json"}
        )
    except (httpx.WriteError, httpx.RemoteProtocolError):
        return  # the server closed the connection during the upload: a refusal too
    assert (answer.status_code, error_of(answer)["type"]) == (413, "PayloadTooLarge")


@pytest.fixture
def hold(world: World) -> Iterator[None]:
    """Lock the table of namespaces during the test, so that no namespace can be created."""

    async def lock() -> asyncpg.Connection:
        connection = await asyncpg.connect(world.ready.postgres)
        await connection.execute("begin")
        await connection.execute("lock table namespaces in share row exclusive mode")
        return connection

    held = world._loop.run(lock())
    yield
    world._loop.run(held.close())


def test_timed_out_change_is_reported_as_failed_and_has_no_effect(world: World, there: Person, hold: None) -> None:
    name = unique("late")
    began = time.monotonic()
    answer = there.post(f"{world.root}/namespaces", {"namespace": [name]})
    assert (answer.status_code, "Nothing was changed" in answer.text) == (429, True), answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["x-request-id"]
    assert WHOLE - 0.5 < time.monotonic() - began < WHOLE + _BUSY
    world._loop.run(asyncio.sleep(0.5))
    assert world.sql("select 1 from namespaces where $1 = any(levels)", name) == []


def test_change_with_a_sent_commit_succeeds_despite_the_timeout(world: World, there: Person) -> None:
    name = unique("slow_commit")
    world.sql(
        f"""
        create function sleep_at_commit() returns trigger language plpgsql as
        $$ begin if '{name}' = any(new.levels) then perform pg_sleep({WHOLE + 2}); end if; return null; end $$
        """
    )
    try:
        world.sql(
            "create constraint trigger sleeps after insert on namespaces deferrable initially deferred "
            "for each row execute function sleep_at_commit()"
        )
        began = time.monotonic()
        answer = there.post(f"{world.root}/namespaces", {"namespace": [name]})
        took = time.monotonic() - began
    finally:
        world.sql("drop function sleep_at_commit cascade")
    assert answer.status_code == 200, answer.text
    assert took > WHOLE + 1
    assert there.get(f"{world.root}/namespaces/{name}").status_code == 200
