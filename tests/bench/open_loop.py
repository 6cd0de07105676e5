# SPDX-License-Identifier: Apache-2.0
"""Send `HEAD` requests over plain sockets, at fixed times or one after the other.

The load shares the machine with the gateway, so it must be cheap: a request takes a tenth of the CPU time that an HTTP
library needs. The answer of a `HEAD` request ends with its headers, so nothing else is parsed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.bench.load import Request

_END = b"\r\n\r\n"
_ADMITTED = (200, 204)
_REFUSED = (429, 503)
_TICK = 0.002

_MOST_CONNECTIONS = 2000
"""As the pools of a load balancer. With one connection for each request, the kernel would drop new ones for seconds."""


@dataclass
class Measured:
    """Durations in seconds of admitted and refused requests, from the time at which each was to be sent.

    `in_time` of the admitted ones were answered during the load of `seconds` seconds. `unsent` waited for a connection
    at its end. `other`: numbers of other answers, by status; 0 is a closed connection.
    """

    seconds: float = 0.0
    in_time: int = 0
    unsent: int = 0
    admitted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    other: dict[int, int] = field(default_factory=dict)
    without_retry_after: int = 0

    @property
    def goodput(self) -> float:
        """Return answers per second during the load."""
        return self.in_time / self.seconds

    def add(self, status: int, head: bytes, seconds: float) -> None:
        """Count one answer, with the bytes of its headers."""
        if status in _ADMITTED:
            self.admitted.append(seconds)
        elif status in _REFUSED:
            self.refused.append(seconds)
            self.without_retry_after += b"\r\nretry-after:" not in head.lower()
        else:
            self.other[status] = self.other.get(status, 0) + 1


def percentile(times: Sequence[float], part: float) -> float:
    """Return a percentile in milliseconds; 0 without any times."""
    ordered = sorted(times)
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def head_bytes(request: Request) -> bytes:
    """Return a `HEAD` request as it is sent. Raises ValueError for another method, since its answer has a body."""
    if request.method != "HEAD":
        raise ValueError(f"only HEAD requests can be sent, not {request.method}")
    target = urlsplit(request.url)
    path = target.path + (f"?{target.query}" if target.query else "")
    headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    return f"HEAD {path} HTTP/1.1\r\nHost: {target.netloc}\r\n{headers}\r\n".encode()


class _Connection(asyncio.Protocol):
    """A connection with at most one request in progress."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._done: Callable[[_Connection, int, bytes], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes, done: Callable[[_Connection, int, bytes], None]) -> None:
        """Send a request. `done` receives this connection, the status and the headers."""
        assert self._transport is not None
        self._received, self._done = b"", done
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(_END):
            self._finish(int(self._received[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._finish(0)

    def _finish(self, status: int) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(self, status, self._received)

    @property
    def is_open(self) -> bool:
        """True if another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Sender:
    """Sends requests to one server in turn, and records their answers."""

    def __init__(self, requests: Sequence[Request]) -> None:
        target = urlsplit(requests[0].url)
        self._address = (target.hostname or "", target.port or 80)
        self._requests = [head_bytes(each) for each in requests]
        self._idle: list[_Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_progress = 0
        self._connections = 0
        self._waiting: deque[tuple[int, float]] = deque()

    def close(self) -> None:
        """Close all connections."""
        for each in self._idle:
            each.close()

    async def closed(self, connections: int, seconds: float) -> Measured:
        """Send over a number of connections, each with one request in progress, for some seconds."""
        measured, started = Measured(), time.perf_counter()

        async def one(first: int) -> None:
            number = first
            while time.perf_counter() - started < seconds:
                answered = asyncio.Event()
                if self._idle:
                    self._ask(self._idle.pop(), number, time.perf_counter(), measured, answered.set)
                else:
                    self._connections += 1
                    await self._send(number, time.perf_counter(), measured, answered.set)
                await answered.wait()
                number += connections

        await asyncio.gather(*(one(first) for first in range(connections)))
        measured.seconds, measured.in_time = time.perf_counter() - started, len(measured.admitted)
        return measured

    async def opened(self, rate: float, seconds: float) -> Measured:
        """Send `rate` requests per second at fixed times, whether or not earlier ones were answered.

        A request waits while all connections are in use. Those that wait at the end are not sent.
        """
        measured, started, number = Measured(), time.perf_counter(), 0
        while (now := time.perf_counter() - started) < seconds:
            while number < now * rate:
                self._waiting.append((number, started + number / rate))
                number += 1
            self._send_waiting(measured)
            await asyncio.sleep(_TICK)
        measured.seconds, measured.unsent = time.perf_counter() - started, len(self._waiting)
        measured.in_time = len(measured.admitted)
        self._waiting.clear()
        while self._in_progress:
            await asyncio.sleep(_TICK)
        return measured

    def _send_waiting(self, measured: Measured) -> None:
        """Send on idle connections now, or on new ones as soon as they are open."""
        while self._waiting and (self._idle or self._connections < _MOST_CONNECTIONS):
            number, due = self._waiting.popleft()
            self._in_progress += 1

            def then() -> None:
                self._in_progress -= 1
                self._send_waiting(measured)

            if self._idle:
                self._ask(self._idle.pop(), number, due, measured, then)
                continue
            self._connections += 1
            task = asyncio.create_task(self._send(number, due, measured, then))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, number: int, due: float, measured: Measured, then: Callable[[], None]) -> None:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(_Connection, *self._address)
        except OSError:
            self._connections -= 1
            measured.add(0, b"", time.perf_counter() - due)
            then()
            return
        self._ask(connection, number, due, measured, then)

    def _ask(
        self, connection: _Connection, number: int, due: float, measured: Measured, then: Callable[[], None]
    ) -> None:
        def done(answered: _Connection, status: int, head: bytes) -> None:
            measured.add(status, head, time.perf_counter() - due)
            if status and answered.is_open:
                self._idle.append(answered)
            else:
                self._connections -= 1
            then()

        connection.ask(self._requests[number % len(self._requests)], done)
