# SPDX-License-Identifier: Apache-2.0
"""Traces of background tasks: a run is a trace of its own, also if a request started the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from gateway import spans
from gateway.assembly.traced_tasks import TracedDelivery, traced_export, traced_handlers, traced_sink
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Queue
from gateway.db.tuples.delivery import TupleDelivery
from gateway.events.port import Event, EventSink, SinkUnavailable
from gateway.spans import known_trace_id
from gateway.telemetry.tracing import Tracer
from tests.support.kept_spans import Kept
from tests.support.servers.otlp import attributes

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Sink:
    """A sink that is down."""

    name = "lake"
    closed = False

    async def send(self, events: Sequence[Event]) -> None:
        raise SinkUnavailable("secret text")

    async def check(self) -> None:
        raise SinkUnavailable("down")

    async def close(self) -> None:
        self.closed = True


def _tracer(kept: Kept, ratio: float = 1.0) -> Tracer:
    return Tracer(kept, sample_ratio=ratio, service_name="lakegate")


async def test_a_run_of_a_task_is_a_trace_with_its_calls_below_it() -> None:
    """Below the span of a request, a task that outlives it would extend the request's trace."""
    kept = Kept()
    tracer = _tracer(kept)
    seen: list[str | None] = []

    async def purge(_task: Task) -> None:
        seen.append(known_trace_id())
        with spans.span("store.delete"):
            pass

    handlers = traced_handlers({Queue.TABULAR_PURGE: purge}, tracer)
    task = cast(Any, type("SomeTask", (), {"queue": Queue.TABULAR_PURGE, "attempt": 2}))
    with tracer.server_span("POST", {"traceparent": PARENT}):
        await handlers[Queue.TABULAR_PURGE](task)
    await tracer.close()
    call, run, _ = kept.spans
    assert (run.name, attributes(run), run.parent_span_id) == ("task.tabular_purge", {"lakegate.attempt": 2}, b"")
    assert (call.parent_span_id, call.trace_id) == (run.span_id, run.trace_id)
    assert run.trace_id.hex() != PARENT.split("-")[1]
    # The decisions of the task are audited with this trace.
    assert seen == [run.trace_id.hex()]


async def test_a_batch_that_a_sink_does_not_accept_is_a_failed_span_without_its_text() -> None:
    kept = Kept()
    tracer = _tracer(kept)
    inner = Sink()
    sink = traced_sink(inner, tracer)
    with pytest.raises(SinkUnavailable):
        await sink.send([])
    with pytest.raises(SinkUnavailable):
        await sink.check()
    await sink.close()
    await tracer.close()
    (span,) = kept.spans
    assert attributes(span) == {"lakegate.sink": "lake", "lakegate.events": 0, "error.type": "SinkUnavailable"}
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert "secret" not in str(span)
    assert inner.closed


async def test_deliveries_and_exports_are_spans_with_their_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def due(_self: TupleDelivery) -> int:
        return 3

    async def send(_body: bytes) -> bytes:
        return b"answer"

    monkeypatch.setattr(TupleDelivery, "deliver_due", due)
    kept = Kept()
    tracer = _tracer(kept)
    unused = cast(Any, None)
    delivery = TracedDelivery(tracer, unused, unused, unused, settle_seconds=1.0, new_tuples=unused)
    assert await delivery.deliver_due() == 3
    assert await traced_export(send, tracer)(b"12345") == b"answer"
    await tracer.close()
    assert [(span.name, attributes(span)) for span in kept.spans] == [
        ("task.tuple_delivery", {"lakegate.tuples": 3}),
        ("task.audit_export", {"lakegate.bytes": 5}),
    ]


async def test_a_task_outside_of_the_sample_records_nothing() -> None:
    kept = Kept()
    tracer = _tracer(kept, ratio=0.0)
    with tracer.task_span("task.audit_export"), spans.span("postgresql.statement"):
        assert known_trace_id() is None
    await tracer.close()
    assert kept.spans == []


def test_without_a_tracer_nothing_is_wrapped() -> None:
    handlers: dict[Queue, Any] = {}
    sink: EventSink = Sink()

    async def send(_body: bytes) -> bytes:
        return b""

    assert traced_handlers(handlers, None) is handlers
    assert traced_sink(sink, None) is sink
    assert traced_export(send, None) is send
