# SPDX-License-Identifier: Apache-2.0
"""A running gateway with a webhook: it fails at first, and then receives each event in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import httpx2
import pytest

from gateway.db.engine import Database
from gateway.embedded.ready import Ready
from gateway.events.webhook import signature
from gateway.settings.env import Secret
from gateway.settings.postgres_url import asyncpg_url
from tests.integration.event_outbox import count_waiting, put_committed
from tests.integration.kills import Killable

pytestmark = [pytest.mark.integration, pytest.mark.servers]

SECRET = "a secret of the webhook"


class Receiver:
    """A web server that answers 503 to the first requests, then keeps the id of each event with a right signature."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.received: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.answer(dict(self.headers.items()), body))
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, headers: dict[str, str], body: bytes) -> int:
        """Return the status for a request."""
        if self.failures:
            self.failures -= 1
            return 503
        named = {name.lower(): value for name, value in headers.items()}
        id, stamp = named["webhook-id"], int(named["webhook-timestamp"])
        if named["webhook-signature"] != signature(SECRET.encode(), UUID(id), stamp, body):
            return 500
        self.received.append(id)
        return 204

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(failures=3)
    yield receiver
    receiver.close()


async def test_gateway_delivers_to_a_webhook_that_fails_at_first(
    killed_stack: Ready, gateway: Killable, receiver: Receiver
) -> None:
    """Events wait for a former sink too: they are shown, and are removed by the command only."""
    gateway.kill()
    database = Database(asyncpg_url(Secret(killed_stack.postgres)), pool_size=2, acquire_timeout=10)
    ids = await put_committed(database, ["a", "b", "a"], "hook", "former")
    gateway.start(
        EVENTS__SINKS__HOOK__KIND="webhook", EVENTS__SINKS__HOOK__URL=receiver.url,
        EVENTS__SINKS__HOOK__SECRET=SECRET, EVENTS__MIN_BACKOFF="100ms", EVENTS__MAX_BACKOFF="500ms",
    )  # fmt: skip
    async with asyncio.timeout(60):
        while await count_waiting(database, "hook"):
            await asyncio.sleep(0.1)
    assert receiver.received == ids
    assert await count_waiting(database, "former") == 3
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client, asyncio.timeout(60):
        base = killed_stack.catalog_uri.removesuffix("/catalog")
        while True:
            health = (await client.get(f"{base}/health")).json()
            (shown,) = health["services"]["events"]
            if shown["status"] == "ok":
                break
            await asyncio.sleep(0.2)
    assert (shown["name"], health["health"]) == ("hook", "ok")
    await _commands(gateway, receiver, ids)
    await database.close()


async def _commands(gateway: Killable, receiver: Receiver, ids: list[str]) -> None:
    """Check `lakegate events`: lists, a replay from the first event, and the removal of the former sink."""
    settings = {
        "LAKEGATE__EVENTS__SINKS__HOOK__KIND": "webhook",
        "LAKEGATE__EVENTS__SINKS__HOOK__URL": receiver.url,
        "LAKEGATE__EVENTS__SINKS__HOOK__SECRET": SECRET,
    }

    async def run(*arguments: str) -> str:
        done = await asyncio.to_thread(gateway.run, "events", *arguments, **settings)
        return done.stdout + done.stderr

    shown = await run("sinks")
    assert "former: waiting 3" in shown and "not in the settings" in shown and "hook: waiting 0" in shown
    lines = (await run("list")).splitlines()
    assert [line.split()[2] for line in lines] == ids
    assert "no such sink" in await run("replay", "--from", "1", "--sink", "other")
    assert "must be a sequence" in await run("replay", "--from", "yesterday")
    assert "wait again: 2" in await run("replay", "--from", lines[1].split()[0], "--sink", "hook")
    async with asyncio.timeout(60):
        while len(receiver.received) < 5:
            await asyncio.sleep(0.1)
    assert receiver.received == [*ids, *ids[1:]]
    assert "is in the settings" in await run("forget", "--sink", "hook")
    assert "deleted rows: 3" in await run("forget", "--sink", "former")
    assert await run("dead-letters") == ""
