# SPDX-License-Identifier: Apache-2.0
"""Record traces of requests: create the tracer from the settings, and wrap the application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gateway.settings import Settings, certificate_sources
from gateway.settings.tracing import headers_of
from gateway.spans import annotate, is_recording
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.otlp_client import PROTOBUF, OtlpClient
from gateway.telemetry.tracing import Tracer
from gateway.tls import trusted

if TYPE_CHECKING:
    import aiohttp

    from gateway.api.build import Application

#: Maximum length of a `traceparent` or `tracestate`; longer ones are ignored. W3C Trace Context requires 512.
_MAX_HEADER = 512
_TRACE_HEADERS = frozenset({b"traceparent", b"tracestate"})
_NO_HEADERS: dict[str, str] = {}
_SEND_SECONDS = 5.0


def open_tracer(settings: Settings, metrics: Metrics) -> Tracer | None:
    """Return the tracer of this process; None if the settings have no collector. Raises SettingsError for malformed
    headers.
    """
    wanted = settings.tracing
    if wanted.endpoint is None:
        return None
    client = OtlpClient(
        wanted.endpoint,
        encoding=PROTOBUF,
        headers=headers_of(wanted.headers, "TRACING__HEADERS"),
        timeout=_SEND_SECONDS,
        tls=trusted(*certificate_sources()).context,
    )
    return Tracer(
        client,
        sample_ratio=wanted.sample_ratio,
        service_name=wanted.service_name,
        count=metrics.spans_ended,
        trust_clients=wanted.trust_clients,
    )


def traced_application(app: Application, tracer: Tracer | None) -> Application:
    """Return `app`. If there is a tracer, each request is recorded as a span."""
    return app if tracer is None else TracedApplication(app, tracer)


def call_hooks(system: str) -> Sequence[aiohttp.TraceConfig]:
    """Return the hooks that record the calls of the HTTP client of `system`."""
    from gateway.telemetry.tracing import client_spans

    return (client_spans(system),)


class TracedApplication:
    """ASGI application that records a span for each request. It closes the tracer after the shutdown."""

    def __init__(self, app: Application, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application. If the call is a request, record it as a span."""
        if scope["type"] != "http":
            self._tracer.start()
            try:
                await self._app(scope, receive, send)
            finally:
                await self._tracer.close()
            return
        with self._tracer.server_span(scope["method"], _trace_headers(scope["headers"])):
            try:
                await self._app(scope, receive, send)
            finally:
                if is_recording():
                    # The router sets the template, which contains the names of the path parameters and not their
                    # values.
                    route = scope.get("path_template") or ""
                    annotate({"http.route": route, "url.scheme": scope.get("scheme", "http")})


def _trace_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of W3C Trace Context. A header that is repeated or too long is left out, as the standard
    requires.
    """
    # The server sends the names of headers in lower case. Nearly all requests have neither of the two headers.
    given = [(name, value) for name, value in headers if name in _TRACE_HEADERS]
    if not given:
        return _NO_HEADERS
    names = [name for name, _ in given]
    return {
        name.decode(): value.decode("latin-1")
        for name, value in given
        if names.count(name) == 1 and len(value) <= _MAX_HEADER
    }
