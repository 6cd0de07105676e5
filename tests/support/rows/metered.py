# SPDX-License-Identifier: Apache-2.0
"""A gateway inside the test process, on a real stack's PostgreSQL, OpenFGA and OPA, that measures the cost of a
request.

Work is assigned to a request through a context variable. Background work (delivery, drift, health, the audit writer) is
therefore in no request's cost.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import aiohttp
import asyncpg
import httpx
import psutil
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

import gateway
from gateway.app import create_app
from gateway.db.pools.compiled_reads import DirectRead
from gateway.settings import load
from lakegate.local.ready import Ready


@dataclass(slots=True)
class Cost:
    """Cost of one request: calls to the decision engines by path, SQL statements, and transactions around them."""

    openfga: Counter[str] = field(default_factory=Counter)
    opa: int = 0
    statements: list[str] = field(default_factory=list)
    transactions: int = 0
    frames: tuple[str, ...] = ()
    """The gateway's functions between the ASGI call and a direct read, outermost first, for the first read."""


_GATEWAY = f"{Path(gateway.__file__).parent}{os.sep}"
_account: ContextVar[Cost | None] = ContextVar("account", default=None)


@contextmanager
def accounted() -> Iterator[Cost]:
    """Yield a `Cost` that collects the work done inside the block."""
    cost = Cost()
    token = _account.set(cost)
    try:
        yield cost
    finally:
        _account.reset(token)


class Metered:
    """The ASGI application, called without a socket."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def send(
        self, method: str, path: str, token: str, *, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[httpx.Response, Cost]:
        """Send a request; return (the complete answer, its cost)."""
        with accounted() as cost:
            response = await self._client.request(
                method, path, json=body, headers={"Authorization": f"Bearer {token}", **(headers or {})}
            )
        return response, cost


@asynccontextmanager
async def metered(stack: Ready, **settings: str) -> AsyncIterator[Metered]:
    """Run another gateway on the stack, with the stack's settings changed by these (named without their prefix)."""
    given = psutil.Process(stack.pids["gateway"][0]).environ()
    own = {name: value for name, value in given.items() if name.startswith("LAKEGATE__")}
    own |= {f"LAKEGATE__{name}": value for name, value in settings.items()}
    # Its logging configuration would apply to the whole test process.
    silent = patch("gateway.app.configure_logging")
    with patch.dict(os.environ, own), silent, _counted(stack):
        application: Any = create_app(load())
        async with _running(application):
            transport = httpx.ASGITransport(app=application)
            async with httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=60) as client:
                yield Metered(client)


@contextmanager
def _counted(stack: Ready) -> Iterator[None]:
    """Add each call to the engines and to PostgreSQL to the cost of the request that makes it."""
    send = aiohttp.ClientSession._request

    async def counted(session: aiohttp.ClientSession, method: str, url: Any, **more: Any) -> Any:
        cost = _account.get()
        if cost is not None and str(url).startswith(stack.openfga.url):
            cost.openfga[str(url).rpartition("/")[2]] += 1
        elif cost is not None and str(url).startswith(stack.opa.url):
            cost.opa += 1
        return await send(session, method, url, **more)

    def executed(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if (cost := _account.get()) is not None:
            cost.statements.append(statement)

    async def read(direct: DirectRead[Any], *given: Any) -> Any:
        if (cost := _account.get()) is not None:
            cost.statements.append(str(direct.statement))
            cost.frames = cost.frames or (*_gateway_frames(), "DirectRead.all")
        return await all_of(direct, *given)

    def sent(logged: asyncpg.connection.LoggedQuery) -> None:
        if (cost := _account.get()) is not None and logged.query.startswith("BEGIN"):
            cost.transactions += 1

    def connected(connection: Any, _record: Any) -> None:
        connection.driver_connection.add_query_logger(sent)

    all_of = DirectRead.all
    event.listen(Engine, "before_cursor_execute", executed)
    event.listen(Pool, "connect", connected)
    try:
        with patch.object(aiohttp.ClientSession, "_request", counted), patch.object(DirectRead, "all", read):
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Pool, "connect", connected)


def _gateway_frames() -> tuple[str, ...]:
    """Return the gateway's functions on this task's call stack, outermost first. Coroutines that await another one
    count, functions of libraries do not.
    """
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_GATEWAY):
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return tuple(reversed(found))


@asynccontextmanager
async def _running(application: Any) -> AsyncIterator[None]:
    """Run the ASGI lifespan protocol as a server does."""
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    serving = asyncio.create_task(
        application({"type": "lifespan", "asgi": {"version": "3.0"}}, events.get, received.put)
    )
    await events.put({"type": "lifespan.startup"})
    started = await received.get()
    assert started["type"] == "lifespan.startup.complete", started
    try:
        yield
    finally:
        await events.put({"type": "lifespan.shutdown"})
        await serving
