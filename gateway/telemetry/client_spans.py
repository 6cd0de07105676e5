# SPDX-License-Identifier: Apache-2.0
"""Spans of HTTP calls to OpenFGA and OPA, recorded by hooks of aiohttp. The calls carry `traceparent`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aiohttp

from gateway.telemetry.tracing import Tracer


def client_spans(tracer: Tracer, system: str) -> aiohttp.TraceConfig:
    """Return the hooks for the session of a client. `system` is the name in spans, for example `openfga`.

    A span is named by the last segment of the path, which no client of the gateway can choose. It ends with the headers
    of the response. A call that is repeated after a lost connection has two spans. A call outside of a request has no
    span and carries no `traceparent`. A call of a request that is not recorded carries the flag that says so.
    """

    async def started(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        context.span = None
        if tracer.is_recording():
            url = request.url
            context.span = tracer.begin(
                f"{system}.http {url.name}",
                {
                    "http.request.method": request.method,
                    "server.address": url.host or "",
                    "server.port": url.port or 0,
                },
            )
        # aiohttp sends these headers, so the id is that of the call and not that of the check above it.
        tracer.propagate(context.span, request.headers)

    async def ended(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestEndParams) -> None:
        if context.span is None:
            return
        # A redirect is not followed, so the response is that of the engine itself.
        status = request.response.status
        tracer.end(
            context.span,
            attributes={"http.response.status_code": status},
            error=str(status) if status >= 400 else None,
        )

    async def failed(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestExceptionParams) -> None:
        tracer.end(context.span, error=type(request.exception).__name__)

    hooks = aiohttp.TraceConfig()
    hooks.on_request_start.append(started)
    hooks.on_request_end.append(ended)
    hooks.on_request_exception.append(failed)
    return hooks
