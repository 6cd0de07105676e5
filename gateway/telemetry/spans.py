# SPDX-License-Identifier: Apache-2.0
"""The spans of a process in memory, and the span or trace of the current task.

A span costs about a microsecond: it is one object without locks, validation or copies. `span_encoding` converts spans
to OTLP when they are sent.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

import msgspec

Attributes = Mapping[str, str | int | bool]
"""Attributes of a span. The values of one name always have the same type."""

INTERNAL: Final = 1
SERVER: Final = 2
CLIENT: Final = 3
"""Kinds of spans, with their numbers in OTLP."""

_BITS: Final = 64


class Trace(msgspec.Struct, frozen=True, gc=False):
    """A trace. `state` is the `tracestate` of the client, `given` tells if the client sent the id."""

    id: int
    state: str = ""
    given: bool = False


class Span(msgspec.Struct):
    """A span of a recorded trace. Times are nanoseconds since 1970; `parent` is 0 without a parent."""

    trace: Trace
    id: int
    parent: int
    name: str
    kind: int
    started: int
    attributes: Attributes
    remote: bool = False
    """True if the parent is a span of the client."""
    ended: int = 0
    error: bool = False
    events: tuple[tuple[str, int], ...] = ()
    """The name and the time of each event."""


CURRENT: Final[ContextVar[Span | Trace | None]] = ContextVar("trace", default=None)
"""The current span. A trace instead of a span means that the request is not recorded; None is outside of a request."""


def new_span_id() -> int:
    """Return a random id. Zero is invalid."""
    return random.getrandbits(_BITS) or 1


def new_trace_id() -> int:
    """Return a random id. Zero is invalid."""
    return random.getrandbits(2 * _BITS) or 1


def current_trace_id() -> str | None:
    """Return the id of the current trace, recorded or not, as 32 hexadecimal digits; None outside of a request."""
    current = CURRENT.get()
    if current is None:
        return None
    return f"{current.trace.id if isinstance(current, Span) else current.id:032x}"


def known_trace_id() -> str | None:
    """Return the id of the current trace if another system may know the trace; None otherwise.

    It is recorded here, or the client sent its id.
    """
    current = CURRENT.get()
    if current is None:
        return None
    trace = current.trace if isinstance(current, Span) else current
    return f"{trace.id:032x}" if isinstance(current, Span) or trace.given else None
