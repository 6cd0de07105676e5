# SPDX-License-Identifier: Apache-2.0
"""Record spans of requests and background tasks: the current span of each task, and a decorator for methods.

A span costs about one microsecond: it is a single object without locks, validation or copies.
`telemetry/span_encoding.py` converts spans to OTLP when they are sent. If the request is not recorded, a decorated
method costs only one additional lookup.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from functools import wraps
from time import time_ns
from types import TracebackType
from typing import Any, Final, TypeVar, cast

import msgspec

Method = TypeVar("Method", bound=Callable[..., Any])

Attributes = Mapping[str, str | int | bool]
"""Attributes of a span. The values of one name always have the same type."""

INTERNAL: Final = 1
SERVER: Final = 2
CLIENT: Final = 3
"""Kinds of spans, with their numbers in OTLP."""

_BITS: Final = 64


def _discard(_span: Span) -> None:
    return None


class Trace(msgspec.Struct, frozen=True):
    """A trace. `state` is the client's `tracestate`. `given` is True if the client sent the id.

    `keep` receives each of its spans at its end.
    """

    id: int
    state: str = ""
    given: bool = False
    keep: Callable[[Span], None] = _discard


class Span(msgspec.Struct):
    """A span of a recorded trace. Times are in nanoseconds since 1970. `parent` is 0 if there is no parent."""

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
    """Return a random id that is not zero, because zero is invalid."""
    return random.getrandbits(_BITS) or 1


def new_trace_id() -> int:
    """Return a random id that is not zero, because zero is invalid."""
    return random.getrandbits(2 * _BITS) or 1


def current_trace_id() -> str | None:
    """Return the id of the current trace as 32 hexadecimal digits, even if it is not recorded. Return None outside of a
    request.
    """
    current = CURRENT.get()
    if current is None:
        return None
    return f"{current.trace.id if isinstance(current, Span) else current.id:032x}"


def known_trace_id() -> str | None:
    """Return the id of the current trace if another system may know the trace; None otherwise.

    That is so if it is recorded here, or if the client sent its id.
    """
    current = CURRENT.get()
    if current is None:
        return None
    trace = current.trace if isinstance(current, Span) else current
    return f"{trace.id:032x}" if isinstance(current, Span) or trace.given else None


class NotRecorded:
    """Context manager that records nothing. One instance serves all requests that are not recorded."""

    __slots__ = ()

    def __enter__(self) -> NotRecorded:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def set_attribute(self, name: str, value: str | int | bool) -> None:
        """Do nothing."""


_NOT_RECORDED: Final = NotRecorded()
_ABSENT: Final[Mapping[str, str]] = {}


class Recording:
    """Context manager that makes a span the current one, and sends it to its trace at the end.

    For an exception only its type is recorded, never its text. An exception of the types `refusals` does not mark the
    span as failed.
    """

    __slots__ = ("_refusals", "_span", "_token")

    def __init__(self, span: Span, refusals: tuple[type[BaseException], ...] = ()) -> None:
        self._span = span
        self._refusals = refusals
        self._token: Token[Span | Trace | None] | None = None

    def __enter__(self) -> Recording:
        self._token = CURRENT.set(self._span)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
        if kind is None or not issubclass(kind, self._refusals):
            end(self._span, error=None if kind is None else kind.__name__)
        else:
            end(self._span, attributes={"lakegate.refusal": kind.__name__})

    def set_attribute(self, name: str, value: str | int | bool) -> None:
        """Set an attribute of the span."""
        self._span.attributes = {**self._span.attributes, name: value}


def span(
    name: str, attributes: Attributes = _ABSENT, *, refusals: tuple[type[BaseException], ...] = ()
) -> Recording | NotRecorded:
    """Return a context manager that records a span below the current one.

    It records nothing outside of a request or task, or if that is not recorded. Exceptions of the types `refusals` do
    not mark the span as failed.
    """
    parent = CURRENT.get()
    if type(parent) is not Span:
        return _NOT_RECORDED
    return Recording(_below(parent, name, INTERNAL, attributes), refusals)


def spanned(
    name: str,
    attributes: Callable[..., Attributes] | None = None,
    *,
    refusals: tuple[type[BaseException], ...] = (),
) -> Callable[[Method], Method]:
    """Decorate a method that returns an awaitable, so that a span is recorded until the awaitable ends.

    `attributes` is called with the arguments of the method and returns attributes of the span. The other parameters are
    those of `span`.
    """

    def decorate(method: Method) -> Method:
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            with span(name, attributes(*args, **kwargs) if attributes else _ABSENT, refusals=refusals):
                return await method(*args, **kwargs)

        @wraps(method)
        def called(*args: Any, **kwargs: Any) -> Any:
            return recorded(*args, **kwargs) if type(CURRENT.get()) is Span else method(*args, **kwargs)

        return cast(Method, called)

    return decorate


def annotate(attributes: Attributes) -> None:
    """Set attributes on the current span."""
    current = CURRENT.get()
    if type(current) is Span:
        current.attributes = {**current.attributes, **attributes}


def is_recording() -> bool:
    """Return True if the current request or task is recorded."""
    return type(CURRENT.get()) is Span


def mark(event: str) -> None:
    """Record an event with the current time on the current span."""
    current = CURRENT.get()
    if type(current) is Span:
        current.events = (*current.events, (event, time_ns()))


def complete_request(operation: str, status: int) -> None:
    """Set the operation and the response status on the current span, which is that of a request."""
    current = CURRENT.get()
    if type(current) is Span:
        current.name = operation
        annotate({"lakegate.operation": operation, "http.response.status_code": status})
        if status >= 500:
            _fail(current, str(status))


def begin(name: str, attributes: Attributes) -> Span | None:
    """Return a span for a call to another system, below the current span. Return None if the current one is not
    recorded.

    The new span does not become the current one, and the caller must pass it to `end`.
    """
    parent = CURRENT.get()
    return _below(parent, name, CLIENT, attributes) if type(parent) is Span else None


def end(ended: Span | None, *, error: str | None = None, attributes: Attributes = _ABSENT) -> None:
    """End a span. `error` is the type of an error. Do nothing if `ended` is None."""
    if ended is None:
        return
    if attributes:
        ended.attributes = {**ended.attributes, **attributes}
    if error is not None:
        _fail(ended, error)
    ended.ended = time_ns()
    ended.trace.keep(ended)


def _below(parent: Span, name: str, kind: int, attributes: Attributes) -> Span:
    return Span(parent.trace, new_span_id(), parent.id, name, kind, time_ns(), attributes)


def _fail(failed: Span, kind: str) -> None:
    failed.attributes = {**failed.attributes, "error.type": kind}
    failed.error = True
