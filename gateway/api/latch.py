# SPDX-License-Identifier: Apache-2.0
"""The latch, a middleware: replace a success by an error if the request has no permit or no durable audit record.

A permit is the proof that the request was decided. The latch is lock 5 of the mechanisms that make a missing check
impossible (`ARCHITECTURE.md`). Every response passes it, so it also sets the request id, the log context, the metrics
and the time limits.
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
from gateway.access.door.request_context import Deadline, RequestContext, RequestLocation
from gateway.access.operation import HttpOperation
from gateway.access.shares.shares import Lease
from gateway.api.compression import CompressedResponse
from gateway.api.errors import RequestTooSlow, body_of, catalog_error, is_catalog_mutation, request_timeout, send_error
from gateway.api.request_encoding import decoded_body
from gateway.api.serves import OPERATIONS_OF
from gateway.iceberg.errors import InternalServerError
from gateway.spans import complete_request
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
    """Receiver of the status and duration of each response, for metrics."""

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        """Record one response. `operation` is None for a route without operations."""
        ...


class Latch(ASGIMiddleware):
    """ASGI middleware. A success response passes only for a public operation, or with a permit and durable audit
    records.
    """

    def __init__(
        self,
        observer: RequestObserver,
        clock: Callable[[], float] = time.perf_counter,
        *,
        max_seconds: float | None = None,
        max_silence: float | None = None,
        calls: Calls | None = None,
        compress: bool = False,
    ) -> None:
        """Configure the limits, in seconds; None means no limit.

        `max_seconds` limits a request until its first commit. `max_silence` limits each wait for a part of the body.
        `observer` receives the metrics of each response, and `calls` the endpoint statistics. With `compress`,
        responses without secrets are compressed for clients that accept it.
        """
        self._observer = observer
        self._calls = calls
        self._clock = clock
        self._max_seconds = max_seconds
        self._max_silence = max_silence
        self._compress = compress

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Call the application, and check the first message of its response. Raises RuntimeError unless the protocol is
        HTTP.
        """
        if scope["type"] != ScopeType.HTTP:
            raise RuntimeError("Lakegate serves HTTP only")
        method = scope["method"]
        operations: frozenset[type[HttpOperation]] | None = scope["route_handler"].opt.get(OPERATIONS_OF)
        # The id of a request is never chosen by the client: the audit log could not distinguish two requests with one
        # id.
        request_id, client_request_id = str(uuid7()), _client_request_id(scope)
        state = scope["state"]
        state[REQUEST_ID], state[CLIENT_REQUEST_ID] = request_id, client_request_id
        echoes = any(each.echoes_request_id for each in operations or ())
        answered_id = client_request_id or request_id if echoes else request_id
        started = self._clock()
        if self._compress:
            send = CompressedResponse(scope, send, lambda: _holds_secret(state, operations)).send
        status = 500
        shut = begun = False

        async def watched(message: Message) -> None:
            nonlocal status, shut, begun
            begun = True
            if message["type"] == "http.response.start":
                status = message["status"]
                if status < 400 and not _may_be_sent(method, state, operations):
                    status, shut = 500, True
                    _log.error("answer.withheld", path=scope["path"], method=method)
                    await _send_withheld(send)
                    return
                message["headers"] = _with_request_headers(message["headers"], answered_id)
            if not shut:
                await send(message)

        with request_context(request_id=request_id, client_request_id=client_request_id):
            try:
                body = _Body(receive, self._max_silence, scope)
                # A context manager instead of a wrapper function, which would add a stack frame to every request.
                async with self._in_time(scope, body, watched, lambda: begun):
                    await next_app(scope, decoded_body(scope, body.receive, body.charge), watched)
            finally:
                location = _release(state, status)
                operation = _name(operations)
                complete_request(operation or "unmatched", status)
                self._observer.request_answered(
                    method=method,
                    operation=operation,
                    status=status,
                    seconds=self._clock() - started,
                )
                self._count(operations, status, location)

    def _count(self, operations: frozenset[type[HttpOperation]] | None, status: int, location: RequestLocation) -> None:
        if self._calls is None or not operations or any(operation.is_public() for operation in operations):
            return
        route = next(iter(operations)).endpoint
        self._calls.add(Call(location.project_id, location.warehouse_id, route, status))

    @asynccontextmanager
    async def _in_time(
        self, scope: Scope, body: _Body, send: Send, has_begun: Callable[[], bool]
    ) -> AsyncIterator[None]:
        """Context manager. Cancel the request at its time limit, unless it has committed a change or its response has
        begun.
        """
        try:
            async with asyncio.timeout(self._max_seconds) as timer:
                scope["state"][DEADLINE] = Deadline(timer)
                yield
        except (TimeoutError, asyncio.CancelledError):
            # A task group that failed earlier may leave its cancellation counted (CPython issue 116720). Then asyncio
            # does not convert the timer's cancellation to a TimeoutError.
            if has_begun() or not timer.expired():
                raise
            _log.warning("request.stopped", path=scope["path"], reading=body.waiting)
            error = catalog_error(
                _too_slow() if body.waiting else request_timeout(), catalog_mutation=is_catalog_mutation(scope)
            )
            await send_error(scope, send, error)


def _release(state: dict[str, Any], status: int) -> RequestLocation:
    """Release the caller's slot, and write the audit records of operations that were admitted and failed.

    Return the project and warehouse of the request.
    """
    lease: Lease | None = state.get(LEASE)
    if lease is not None:
        lease.release()
    context: RequestContext | None = state.get(REQUEST_CONTEXT)
    if context is None:
        return RequestLocation()
    try:
        context.abandon(f"answered {status}")
    except AuditUnavailable as lost:
        # The response was sent and is not a success, so a lost record is only logged.
        _log.error("audit.record_lost", status=status, reason=str(lost))
    return context.location


class _Body:
    """The body of a request. Limits the time between its parts, and charges its bytes to the caller's share."""

    def __init__(self, receive: Receive, max_silence: float | None, scope: Scope) -> None:
        self._receive = receive
        self._max_silence = max_silence
        self._state = scope["state"]
        self._announced = announced_bytes(scope) > 0
        self._complete = False
        self.waiting = False
        """True while the gateway waits for a part of the body."""

    async def receive(self) -> Any:
        """Return the next message. Raises RequestTooSlow (408) and ShareExceeded (429)."""
        if self._complete:
            # The body is complete. The next message is the disconnect, which has no time limit.
            return await self._receive()
        self.waiting = True
        lease: Lease | None = self._state.get(LEASE)
        # A slow sender releases its slot while it waits: otherwise a few principals could hold all slots.
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

    def charge(self, size: int) -> None:
        """Charge decompressed bytes of the body to the caller's share. Raises ShareExceeded."""
        lease: Lease | None = self._state.get(LEASE)
        if lease is not None:
            lease.take_bytes(size)


def announced_bytes(scope: Scope) -> int:
    """Return the `content-length` of a request in bytes; 0 if it is absent or malformed."""
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit() and len(value) < 16:
            return int(value)
    return 0


def _too_slow() -> RequestTooSlow:
    return RequestTooSlow("The request body did not arrive in time. Nothing was done. Send the request again.")


def _with_request_headers(headers: Iterable[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response with `x-request-id` and, unless the handler set it, `cache-control`.

    No shared cache may store a response that was decided for one caller (LG-DIS-09).
    """
    given = list(headers)
    if all(name.lower() != b"cache-control" for name, _ in given):
        given.append((b"cache-control", b"private, no-cache"))
    return [*given, (b"x-request-id", request_id.encode())]


def _may_be_sent(method: str, state: dict[str, Any], operations: frozenset[type[HttpOperation]] | None) -> bool:
    if operations is None:
        # Litestar adds an OPTIONS handler to each path. It returns the allowed methods only.
        return method == "OPTIONS"
    if any(operation.is_public() for operation in operations):
        return True
    context: RequestContext | None = state.get(REQUEST_CONTEXT)
    return context is not None and context.may_answer(operations)


def _holds_secret(state: dict[str, Any], operations: frozenset[type[HttpOperation]] | None) -> bool:
    """Return True if a response may contain a secret, by its route or by the operations that were admitted for the
    request.
    """
    context: RequestContext | None = state.get(REQUEST_CONTEXT)
    return any(each.returns_secret() for each in operations or ()) or (context is not None and context.holds_secret())


async def _send_withheld(send: Send) -> None:
    body = body_of(InternalServerError("An internal error occurred. The error id is in the details."), str(uuid7()))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send(cast(Any, {"type": "http.response.start", "status": 500, "headers": headers}))
    await send(cast(Any, {"type": "http.response.body", "body": body, "more_body": False}))


def _client_request_id(scope: Scope) -> str | None:
    """Return the client's `x-request-id` if it occurs once and matches `_REQUEST_ID`, else None."""
    given = [value for name, value in scope["headers"] if name.lower() == b"x-request-id"]
    return given[0].decode() if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]) else None


def _name(operations: frozenset[type[HttpOperation]] | None) -> str | None:
    if not operations:
        return None
    return min(operation.name() for operation in operations)
