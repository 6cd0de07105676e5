# SPDX-License-Identifier: Apache-2.0
"""Spans of HTTP calls to OpenFGA and OPA, recorded by hooks of aiohttp. The calls carry `traceparent`."""

from __future__ import annotations

from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any

import aiohttp

from gateway.spans import CURRENT, Span, begin, end, is_recording, new_span_id


def client_spans(system: str) -> aiohttp.TraceConfig:
    """Return the hooks for the session of a client. `system` is the name in spans, for example `openfga`.

    A span is named by the last segment of the path, which no client of the gateway can choose. It ends with the headers
    of the response. A call that is repeated after a lost connection has two spans. A call outside of a request has no
    span and carries no `traceparent`. A call of a request that is not recorded carries the flag that says so.
    """

    async def started(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        context.span = None
        if is_recording():
            url = request.url
            context.span = begin(
                f"{system}.http {url.name}",
                {
                    "http.request.method": request.method,
                    "server.address": url.host or "",
                    "server.port": url.port or 0,
                },
            )
        # aiohttp sends these headers, so the id is that of the call and not that of the check above it.
        propagate(context.span, request.headers)

    async def ended(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestEndParams) -> None:
        if context.span is None:
            return
        # A redirect is not followed, so the response is that of the engine itself.
        status = request.response.status
        end(
            context.span,
            attributes={"http.response.status_code": status},
            error=str(status) if status >= 400 else None,
        )

    async def failed(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestExceptionParams) -> None:
        end(context.span, error=type(request.exception).__name__)

    hooks = aiohttp.TraceConfig()
    hooks.on_request_start.append(started)
    hooks.on_request_end.append(ended)
    hooks.on_request_exception.append(failed)
    return hooks


def propagate(span: Span | None, headers: MutableMapping[str, str]) -> None:
    """Set `traceparent` and `tracestate` in the headers of a call to another system.

    They are those of `span`. If it is None, they are those of the request, which is not recorded then: the other
    system does not record it either. Outside of a request, no header is set.
    """
    current = span or CURRENT.get()
    if current is None:
        return
    if type(current) is Span:
        trace, id, flag = current.trace, current.id, "01"
    else:
        trace, id, flag = current, new_span_id(), "00"  # type: ignore[assignment]  # no span, so it is a trace
    headers["traceparent"] = f"00-{trace.id:032x}-{id:016x}-{flag}"
    if trace.state:
        headers["tracestate"] = trace.state
