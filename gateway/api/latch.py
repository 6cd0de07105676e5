# SPDX-License-Identifier: Apache-2.0
"""The latch (lock 5): no success answer leaves a request that was not admitted, or whose audit record is not durable.

It also gives each request its id, its log context and its metrics, because every answer passes it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

import structlog
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import AuditUnavailable
from gateway.access.operation import HttpOperation
from gateway.access.request_context import Deadline, Place, RequestContext
from gateway.access.shares import Lease
from gateway.api.errors import RequestTooSlow, body_of, is_catalog_mutation, overtime, send_error, told_error
from gateway.api.serves import OPERATIONS_OF
from gateway.iceberg.errors import InternalServerError
from gateway.telemetry.calls import Call, Calls
from gateway.telemetry.logs import request_context

REQUEST_CONTEXT = "request_context"
REQUEST_ID = "request_id"
CLIENT_REQUEST_ID = "client_request_id"
DEADLINE = "deadline"
LEASE = "lease"
_PROMPT_SECONDS = 0.05

_log = structlog.get_logger("api.latch")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class RequestObserver(Protocol):
    """Receives each answer, for metrics."""

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        """One answer left."""
        ...


class Latch(ASGIMiddleware):
    """Wraps `send`: an answer below 400 of an operation that is not open needs an admitted, settled request."""

    def __init__(
        self,
        observer: RequestObserver,
        clock: Callable[[], float] = time.perf_counter,
        *,
        max_seconds: float | None = None,
        max_silence: float | None = None,
        calls: Calls | None = None,
    ) -> None:
        """`max_seconds` is the longest time of a request, until it commits something; `max_silence` how long a client
        may send nothing of a body it announced; `calls` counts the answers.
        """
        self._observer = observer
        self._calls = calls
        self._clock = clock
        self._max_seconds = max_seconds
        self._max_silence = max_silence

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Pass the request on and look at the first message of its answer."""
        if scope["type"] != ScopeType.HTTP:
            raise RuntimeError("Lakegate serves HTTP only")
        method = scope["method"]
        operations: frozenset[type[HttpOperation]] | None = scope["route_handler"].opt.get(OPERATIONS_OF)
        # Never the caller's: two requests of one id could not be told apart in the audit.
        request_id, client_request_id = str(uuid7()), _client_request_id(scope)
        state = scope["state"]
        state[REQUEST_ID], state[CLIENT_REQUEST_ID] = request_id, client_request_id
        started = self._clock()
        status = 500
        shut = begun = False

        async def watched(message: Message) -> None:
            nonlocal status, shut, begun
            begun = True
            if message["type"] == "http.response.start":
                status = message["status"]
                if status < 400 and not _may_leave(method, state, operations):
                    status, shut = 500, True
                    _log.error("answer.withheld", path=scope["path"], method=method)
                    await _send_withheld(send)
                    return
                message["headers"] = _with_own(message["headers"], request_id)
            if not shut:
                await send(message)

        with request_context(request_id=request_id, client_request_id=client_request_id):
            try:
                body = _Body(receive, self._max_silence, scope)
                # A context manager, as every frame here is one that each request passes.
                async with self._in_time(scope, body, watched, lambda: begun):
                    await next_app(scope, body.receive, watched)
            finally:
                place = _release(state, status)
                self._observer.request_answered(
                    method=method,
                    operation=_name(operations),
                    status=status,
                    seconds=self._clock() - started,
                )
                self._count(operations, status, place)

    def _count(self, operations: frozenset[type[HttpOperation]] | None, status: int, place: Place) -> None:
        if self._calls is None or not operations or any(operation.is_public() for operation in operations):
            return
        route = next(iter(operations)).endpoint
        self._calls.add(Call(place.project_id, place.warehouse_id, route, status))

    @asynccontextmanager
    async def _in_time(
        self, scope: Scope, body: _Body, send: Send, has_begun: Callable[[], bool]
    ) -> AsyncIterator[None]:
        """Cut the request off when its time is over, unless it has committed something or its answer has begun."""
        try:
            async with asyncio.timeout(self._max_seconds) as timer:
                scope["state"][DEADLINE] = Deadline(timer)
                yield
        except (TimeoutError, asyncio.CancelledError):
            # A task group that failed before may leave its own cancellation counted (CPython issue 116720); the timer's
            # cancellation is then not turned into a TimeoutError.
            if has_begun() or not timer.expired():
                raise
            _log.warning("request.stopped", path=scope["path"], reading=body.waiting)
            told = told_error(_too_slow() if body.waiting else overtime(), catalog_mutation=is_catalog_mutation(scope))
            await send_error(scope, send, told)


def _release(state: dict[str, Any], status: int) -> Place:
    """Release the caller's share, and keep the audit records of admitted operations that failed. Return the place of
    the request.
    """
    lease: Lease | None = state.get(LEASE)
    if lease is not None:
        lease.release()
    context: RequestContext | None = state.get(REQUEST_CONTEXT)
    if context is None:
        return Place()
    try:
        context.abandon(f"answered {status}")
    except AuditUnavailable as lost:
        # The answer has left, and it is no success.
        _log.error("audit.record_lost", status=status, reason=str(lost))
    return context.place


class _Body:
    """The client's side of a request, which may not fall silent for long."""

    def __init__(self, receive: Receive, max_silence: float | None, scope: Scope) -> None:
        self._receive = receive
        self._max_silence = max_silence
        self._state = scope["state"]
        self._announced = announced_bytes(scope) > 0
        self._complete = False
        self.waiting = False
        """Whether the body is being waited for right now."""

    async def receive(self) -> Any:
        """The next message. Raises RequestTooSlow (408), and ShareExceeded for a body of unannounced length."""
        if self._complete:
            # The body is there; what is waited for is that the client goes away, and that may take its time.
            return await self._receive()
        self.waiting = True
        lease: Lease | None = self._state.get(LEASE)
        # A slow sender waits without its slot: a few principals could hold every slot that way.
        pausing = None if lease is None else asyncio.get_running_loop().call_later(_PROMPT_SECONDS, lease.pause)
        try:
            async with asyncio.timeout(self._max_silence) as timer:
                message = await self._receive()
        except TimeoutError:
            if timer.expired():
                raise _too_slow() from None
            raise
        finally:
            if pausing is not None:
                pausing.cancel()
        self.waiting = False
        if lease is not None and message["type"] == "http.request":
            await lease.resume()
            if not self._announced:
                lease.take_bytes(len(message.get("body", b"")))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def announced_bytes(scope: Scope) -> int:
    """Return the `content-length` of a request; 0 if it has none, or one that is no number."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit() and len(value) < 16:
            return int(value)
    return 0


def _too_slow() -> RequestTooSlow:
    return RequestTooSlow("The request's body did not arrive in time. Nothing was done.")


def _with_own(headers: Iterable[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """Return the answer's headers with the request's id. No cache may keep a decision for one caller (LG-DIS-09), so
    `Cache-Control` is set unless the handler set it.
    """
    given = list(headers)
    if all(name.lower() != b"cache-control" for name, _ in given):
        given.append((b"cache-control", b"private, no-cache"))
    return [*given, (b"x-request-id", request_id.encode())]


def _may_leave(method: str, state: dict[str, Any], operations: frozenset[type[HttpOperation]] | None) -> bool:
    if operations is None:
        # Litestar adds an OPTIONS handler to each path; it tells the allowed methods and nothing else.
        return method == "OPTIONS"
    if any(operation.is_public() for operation in operations):
        return True
    context: RequestContext | None = state.get(REQUEST_CONTEXT)
    return context is not None and context.may_answer(operations)


async def _send_withheld(send: Send) -> None:
    body = body_of(InternalServerError("An internal error happened."), str(uuid7()))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send(cast(Any, {"type": "http.response.start", "status": 500, "headers": headers}))
    await send(cast(Any, {"type": "http.response.body", "body": body, "more_body": False}))


def _client_request_id(scope: Scope) -> str | None:
    """Return the caller's `x-request-id` when it is one harmless text; None otherwise."""
    given = [value for name, value in scope["headers"] if name.lower() == b"x-request-id"]
    return given[0].decode() if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]) else None


def _name(operations: frozenset[type[HttpOperation]] | None) -> str | None:
    if not operations:
        return None
    return min(operation.name() for operation in operations)
