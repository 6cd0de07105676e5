# SPDX-License-Identifier: Apache-2.0
"""Spans are encoded as OpenTelemetry's own types read them, and sampled as by the SDK."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from gateway.spans import CLIENT, INTERNAL, SERVER, Recording, Span, Trace, new_trace_id
from gateway.telemetry.span_encoding import SpanEncoding
from gateway.telemetry.tracing import Tracer
from tests.support.kept_spans import Kept
from tests.support.servers.otlp import attributes

TRACE = Trace(0x0AF7651916CD43DD8448EB211C80319C)


def _decoded(*spans: Span) -> Any:
    (resource,) = ExportTraceServiceRequest.FromString(
        SpanEncoding({"service.name": "lakegate"}).request(spans)
    ).resource_spans
    return resource


def _span(number: int, **more: Any) -> Span:
    fields = {"parent": 1, "kind": CLIENT, "attributes": {"lakegate.questions": number % 5}, **more}
    return Span(trace=TRACE, id=number + 1, name=f"call {number % 7}", started=number, ended=2**63 + number, **fields)


def test_each_field_of_a_span_is_decoded() -> None:
    span = _span(
        7,
        kind=SERVER,
        parent=2**64 - 1,
        remote=True,
        error=True,
        events=(("commit", 5),),
        attributes={"text": "é\0", "number": -1, "large": 2**63 - 1, "yes": True, "no": False},
    )
    span.trace = Trace(2**128 - 1, "vendor=value")
    resource = _decoded(span)
    assert attributes(resource.resource) == {"service.name": "lakegate"}
    (scope,) = resource.scope_spans
    assert scope.scope.name == "lakegate"
    (read,) = scope.spans
    assert (read.trace_id, read.span_id, read.parent_span_id) == (b"\xff" * 16, b"\0" * 7 + b"\x08", b"\xff" * 8)
    assert (read.start_time_unix_nano, read.end_time_unix_nano) == (7, 2**63 + 7)
    assert (read.name, read.kind, read.trace_state) == ("call 0", SpanMessage.SPAN_KIND_SERVER, "vendor=value")
    assert (read.status.code, read.flags) == (Status.STATUS_CODE_ERROR, 0x301)
    assert [(event.name, event.time_unix_nano) for event in read.events] == [("commit", 5)]
    assert attributes(read) == {"text": "é\0", "number": -1, "large": 2**63 - 1, "yes": True, "no": False}


def test_a_span_without_a_parent_has_none() -> None:
    (read,) = _decoded(_span(0, parent=0, kind=INTERNAL)).scope_spans[0].spans
    assert (read.parent_span_id, read.kind, read.flags) == (b"", SpanMessage.SPAN_KIND_INTERNAL, 0x101)


@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_all_spans_of_a_batch_are_read_in_order(count: int) -> None:
    """A wrong length of one message hides the messages after it. The lengths here have one, two and three bytes."""
    spans = [_span(number, attributes={"text": "x" * (number % 3 * 100)}) for number in range(count)]
    read = _decoded(*spans).scope_spans[0].spans
    assert [(each.start_time_unix_nano, each.name) for each in read] == [(each.started, each.name) for each in spans]


def test_attributes_of_two_spans_with_one_name_are_not_confused() -> None:
    read = _decoded(_span(0, attributes={"a": "b"}), _span(0, attributes={"a": "c"}), _span(0, error=True)).scope_spans
    first, second, third = read[0].spans
    assert (attributes(first), attributes(second)) == ({"a": "b"}, {"a": "c"})
    assert (second.status.code, third.status.code) == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR)


@pytest.mark.parametrize("answer", [b"\xff", b"<html>", b"\x0a\x02\x08"])
def test_a_response_that_is_not_of_the_protocol_rejects_nothing(answer: bytes) -> None:
    assert SpanEncoding({}).rejected(answer) == 0


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.5, 1.0])
async def test_the_sampler_decides_as_that_of_the_sdk(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gateway or service with the same ratio must record the same traces."""
    tracer = Tracer(Kept(), sample_ratio=ratio, service_name="lakegate")
    sampler = TraceIdRatioBased(ratio)
    bound = round(ratio * 2**64)
    edges = [max(bound - 1, 1), min(bound, 2**64 - 1), 1, 2**64 - 1, 2**128 - 1]
    for trace_id in [*edges, *(new_trace_id() for _ in range(200))]:
        monkeypatch.setattr("gateway.telemetry.tracing.new_trace_id", lambda id=trace_id: id)
        expected = sampler.should_sample(None, trace_id, "GET").decision is Decision.RECORD_AND_SAMPLE
        assert isinstance(tracer.server_span("GET", {}), Recording) is expected, hex(trace_id)
        assert isinstance(tracer.task_span("task"), Recording) is expected, hex(trace_id)
