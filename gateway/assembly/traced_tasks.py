# SPDX-License-Identifier: Apache-2.0
"""Record traces of background tasks: each run that has work to do is one trace.

If tracing is disabled, the tasks run unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Queue
from gateway.db.tuples.delivery import TupleDelivery
from gateway.events.port import Event, EventSink
from gateway.features.tasks.worker import Handler
from gateway.telemetry.tracing import Tracer

Send = Callable[[bytes], Awaitable[bytes]]
"""Sends the body of a request to a collector, and returns the response."""


def traced_handlers(handlers: Mapping[Queue, Handler], tracer: Tracer | None) -> Mapping[Queue, Handler]:
    """Return the handlers of tasks. If there is a tracer, each run is recorded as a span."""
    if tracer is None:
        return handlers
    return {queue: _traced_handler(handler, tracer) for queue, handler in handlers.items()}


def _traced_handler(handler: Handler, tracer: Tracer) -> Handler:
    async def run(task: Task) -> None:
        with tracer.task_span(f"task.{task.queue.value}", {"lakegate.attempt": task.attempt}):
            await handler(task)

    return run


class TracedDelivery(TupleDelivery):
    """Delivery of tuples that records a span for each batch of the background task. Deliveries in requests have their
    own spans.
    """

    def __init__(self, tracer: Tracer, *parameters: Any, **options: Any) -> None:
        super().__init__(*parameters, **options)
        self._tracer = tracer

    async def deliver_due(self) -> int:
        """Deliver a batch of due tuples, as `TupleDelivery` does."""
        with self._tracer.task_span("task.tuple_delivery") as span:
            count = await super().deliver_due()
            span.set_attribute("lakegate.tuples", count)
            return count


def traced_sink(sink: EventSink, tracer: Tracer | None) -> EventSink:
    """Return the sink. If there is a tracer, each batch is recorded as a span."""
    return sink if tracer is None else TracedSink(sink, tracer)


class TracedSink:
    """Event sink that records a span for each batch."""

    def __init__(self, sink: EventSink, tracer: Tracer) -> None:
        self._sink = sink
        self._tracer = tracer

    @property
    def name(self) -> str:
        """Return the name of the sink."""
        return self._sink.name

    async def send(self, events: Sequence[Event]) -> None:
        """Send the events to the wrapped sink."""
        with self._tracer.task_span(
            "task.event_delivery", {"lakegate.sink": self.name, "lakegate.events": len(events)}
        ):
            await self._sink.send(events)

    async def check(self) -> None:
        """Check the sink without a span, because the health monitor calls this."""
        await self._sink.check()

    async def close(self) -> None:
        """Close the sink."""
        await self._sink.close()


def traced_export(send: Send, tracer: Tracer | None) -> Send:
    """Return the function that sends audit records. If there is a tracer, each request is recorded as a span."""
    if tracer is None:
        return send

    async def traced(body: bytes) -> bytes:
        with tracer.task_span("task.audit_export", {"lakegate.bytes": len(body)}):
            return await send(body)

    return traced
