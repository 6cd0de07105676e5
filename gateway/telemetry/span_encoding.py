# SPDX-License-Identifier: Apache-2.0
"""Encode spans as a request of OTLP (protobuf), with the message types of OpenTelemetry.

Most spans of a gateway differ only in their ids and times. Everything else in a span is encoded once and cached. The
ids and times have fixed lengths and are put before it: protobuf defines the concatenation of two messages as their
union.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from gateway.spans import Attributes, Span

_TRACE_ID: Final = b"\x0a\x10"  # field 1 of a span, 16 bytes
_SPAN_ID: Final = b"\x12\x08"  # field 2 of a span, 8 bytes
_PARENT_ID: Final = b"\x22\x08"  # field 4 of a span, 8 bytes
_TIMES: Final = struct.Struct("<BQBQ")  # fields 7 and 8 of a span: start and end, fixed64
_START: Final = 0x39
_END: Final = 0x41
_SECOND: Final = b"\x12"  # field 2 of two messages: the spans of a scope, the scopes of a resource
_FIRST: Final = b"\x0a"  # field 1 of the request message: its resources
_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
_CACHED: Final = 2048


class SpanEncoding:
    """Encodes spans of one process. `resource` contains the attributes of the process."""

    def __init__(self, resource: Attributes) -> None:
        described = Resource(attributes=_attributes(tuple(resource.items())))
        self._resource = ResourceSpans(resource=described).SerializeToString()
        self._scope = ScopeSpans(scope=InstrumentationScope(name="lakegate")).SerializeToString()

    def request(self, spans: Sequence[Span]) -> bytes:
        """Return the body of a request with these spans."""
        parts = [self._scope]
        for span in spans:
            encoded = _encoded(span)
            parts += (_SECOND, _length(len(encoded)), encoded)
        scope = b"".join(parts)
        resource = b"".join((self._resource, _SECOND, _length(len(scope)), scope))
        return b"".join((_FIRST, _length(len(resource)), resource))

    def rejected(self, answer: bytes) -> int:
        """Return the number of spans that a successful response reports as rejected; 0 if the response is malformed."""
        try:
            rejected: int = ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
        except Exception:  # protobuf's error, which only modules for tokens may import
            return 0
        return max(0, rejected)


def _encoded(span: Span) -> bytes:
    parts = [
        _TRACE_ID,
        span.trace.id.to_bytes(16, "big"),
        _SPAN_ID,
        span.id.to_bytes(8, "big"),
        _TIMES.pack(_START, span.started, _END, span.ended),
        _rest(span.name, span.kind, span.error, span.remote, tuple(span.attributes.items())),
    ]
    if span.parent:
        parts += (_PARENT_ID, span.parent.to_bytes(8, "big"))
    if span.trace.state or span.events:
        parts.append(_unusual(span))
    return b"".join(parts)


@lru_cache(maxsize=_CACHED)
def _rest(
    name: str, kind: int, error: bool, remote: bool, attributes: tuple[tuple[str, str | int | bool], ...]
) -> bytes:
    message = SpanMessage(
        name=name,
        kind=kind,  # type: ignore[arg-type]  # the numbers are those of the enumeration
        attributes=_attributes(attributes),
        status=Status(code=Status.STATUS_CODE_ERROR) if error else None,
        flags=_HAS_IS_REMOTE | (_IS_REMOTE if remote else 0) | 1,
    )
    encoded: bytes = message.SerializeToString()
    return encoded


def _unusual(span: Span) -> bytes:
    events = [SpanMessage.Event(name=name, time_unix_nano=at) for name, at in span.events]
    encoded: bytes = SpanMessage(trace_state=span.trace.state, events=events).SerializeToString()
    return encoded


def _attributes(pairs: Sequence[tuple[str, str | int | bool]]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in pairs]


def _value(value: str | int | bool) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)


def _length(number: int) -> bytes:
    """Encode a length as a varint of protobuf."""
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
