# SPDX-License-Identifier: Apache-2.0
"""Keep spans in a bounded queue, and send them to the collector in a task of the event loop.

No thread is used: switching between it and the event loop would cost more than the encoding, which takes about a
microsecond for each span.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from gateway.spans import Span
from gateway.telemetry.otlp_client import CollectorUnavailable

if TYPE_CHECKING:
    from gateway.telemetry.span_encoding import SpanEncoding

#: Spans that wait at most, and spans of one request to the collector.
QUEUE_SPANS: Final = 4096
BATCH_SPANS: Final = 512
_DELAY_SECONDS: Final = 1.0
_ATTEMPTS: Final = 3
_LONGEST_PAUSE: Final = 5.0
_FLUSH_SECONDS: Final = 3.0

Count = Callable[[str, int], None]
"""Function that counts spans by outcome: `sent`, `dropped` (the queue was full) or `failed` (the collector)."""
Client = AbstractAsyncContextManager[Callable[[bytes], Awaitable[bytes]]]
"""Opens a function that sends the body of a request, as `OtlpClient` does."""


class SpanSender:
    """Sends spans in batches. `add` never waits. `start` and `close` must be called in the event loop of the
    process.
    """

    def __init__(self, client: Client, encoding: SpanEncoding, count: Count) -> None:
        self._client = client
        self._encoding = encoding
        self._count = count
        self._waiting: deque[Span] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def add(self, span: Span) -> None:
        """Add a span that has ended to the queue, or drop it if the queue is full."""
        waiting = len(self._waiting)
        if waiting >= QUEUE_SPANS:
            self._count("dropped", 1)
            return
        self._waiting.append(span)
        if waiting == BATCH_SPANS:
            self._wake.set()

    def start(self) -> None:
        """Start to send. Call it once, inside the event loop."""
        self._task = asyncio.create_task(self._run(), name="spans")

    async def close(self) -> None:
        """Send the spans that wait. Return after at most 3 seconds; spans that were not sent are lost."""
        self._closing = True
        self._wake.set()
        task = self._task or asyncio.create_task(self._run(), name="spans")
        await asyncio.wait({task}, timeout=_FLUSH_SECONDS)
        task.cancel()
        await asyncio.wait({task}, timeout=_FLUSH_SECONDS)

    async def _run(self) -> None:
        async with self._client as send:
            while not self._closing:
                try:
                    async with asyncio.timeout(_DELAY_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
                await self._send_waiting(send)
            await self._send_waiting(send)

    async def _send_waiting(self, send: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Send the spans that wait, in full batches and a last one that may be smaller."""
        for _ in range(-(-len(self._waiting) // BATCH_SPANS)):
            batch = [self._waiting.popleft() for _ in range(min(BATCH_SPANS, len(self._waiting)))]
            try:
                rejected = min(len(batch), await self._sent(send, self._encoding.request(batch)))
            except Exception:  # an error of one batch must not end the task
                rejected = len(batch)
            if rejected:
                self._count("failed", rejected)
            if rejected < len(batch):
                self._count("sent", len(batch) - rejected)

    async def _sent(self, send: Callable[[bytes], Awaitable[bytes]], body: bytes) -> int:
        """Send a request with retries. Return the number of spans that the collector rejects. Raises the error of the
        last attempt.
        """
        attempt = 1
        while True:
            try:
                return self._encoding.rejected(await send(body))
            except CollectorUnavailable as outage:
                if attempt == _ATTEMPTS or self._closing:
                    raise
                pause = float(attempt) if outage.retry_after is None else outage.retry_after
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
                attempt += 1
