# SPDX-License-Identifier: Apache-2.0
"""The queue between requests and an exporter of spans: bounded, emptied by a thread. It never blocks a request.

It has the methods of the SDK's `SpanProcessor`. That of the SDK does not report how many spans it drops.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final

#: Spans that wait at most, and spans of one request to the collector.
QUEUE_SPANS: Final = 2048
BATCH_SPANS: Final = 512
_DELAY_SECONDS: Final = 1.0

Count = Callable[[str, int], None]
"""Function that counts spans by outcome: `sent`, `dropped` (the queue was full) or `failed` (the collector)."""


class SpanQueue:
    """Span processor that sends spans in batches. `export` returns True if the collector has accepted a batch."""

    def __init__(self, export: Callable[[list[Any]], bool], count: Count) -> None:
        self._export = export
        self._count = count
        self._waiting: queue.Queue[Any] = queue.Queue(QUEUE_SPANS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Do nothing: spans are sent after their end."""

    def _on_ending(self, span: Any) -> None:
        """Do nothing: the SDK calls this before the end of a span."""

    def on_end(self, span: Any) -> None:
        """Accept a span, or drop it if the queue is full."""
        if not span.context.trace_flags.sampled:
            return
        try:
            self._waiting.put_nowait(span)
        except queue.Full:
            self._count("dropped", 1)

    def shutdown(self) -> None:
        """Do nothing: `end` is called instead, which does not wait."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return False: the queue is only emptied by its thread."""
        return False

    def end(self) -> None:
        """Begin to send all waiting spans. The thread then ends. It does not keep the process alive."""
        self._closing.set()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)  # ends the wait for a span

    def is_ended(self) -> bool:
        """Return True if the thread has ended."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            batch = self._take()
            if batch:
                self._send(batch)
            elif self._closing.is_set():
                return

    def _take(self) -> list[Any]:
        """Return at most `BATCH_SPANS` spans, those of about one second."""
        batch: list[Any] = []
        until = time.monotonic() + _DELAY_SECONDS
        while len(batch) < BATCH_SPANS:
            left = 0.0 if self._closing.is_set() else until - time.monotonic()
            try:
                span = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if span is not None:
                batch.append(span)
        return batch

    def _send(self, batch: list[Any]) -> None:
        try:
            accepted = self._export(batch)
        except Exception:  # an error of the exporter must not end the thread
            accepted = False
        self._count("sent" if accepted else "failed", len(batch))
