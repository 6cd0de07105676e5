# SPDX-License-Identifier: Apache-2.0
"""The client of collectors: redirects, proxies, silent and endless answers. Spans, metrics and audit records use it.

Each test runs with the client alone, as the exporter of spans, and as the exporter of metrics, against a local server.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.telemetry.otlp_client import PROTOBUF, CollectorRefused, CollectorUnavailable, OtlpClient
from gateway.telemetry.otlp_metrics import MetricsExport
from tests.support.kept_spans import new_tracer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LONG = 600.0


@asynccontextmanager
async def _collector(answer: Answer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1/traces"))


def _client(url: str, timeout: float = 30.0) -> OtlpClient:
    return OtlpClient(url, encoding=PROTOBUF, headers={"x-key": "secret"}, timeout=timeout, tls=None)


async def _send_span(client: OtlpClient) -> Counter[str]:
    """Send one span, and return the counts of its outcome."""
    counts: Counter[str] = Counter()
    tracer = new_tracer(client, counts)
    with tracer.server_span("GET", {}):
        pass
    await tracer.close()
    return counts


async def _send_metrics(client: OtlpClient) -> None:
    """Export an empty list of metrics once."""
    export = MetricsExport(lambda: (), client, seconds=_LONG, service_name="lakegate")
    await asyncio.to_thread(export.end)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_exporter_follows_a_redirect(status: int) -> None:
    """The target would receive the headers, which contain a key, and the data."""
    seen: list[str] = []

    async def redirect(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.Response(status=status, headers={"Location": "/stolen"})

    async with _collector(redirect) as url:
        async with _client(url) as send:
            with pytest.raises(CollectorRefused, match=str(status)):
                await send(b"data")
        assert await _send_span(_client(url)) == {"failed": 1}
        await _send_metrics(_client(url))
    assert seen == ["/v1/traces"] * 3


async def test_no_exporter_uses_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment would receive the headers of every request."""
    by_proxy: list[str] = []
    direct: list[str | None] = []

    async def proxy(request: web.Request) -> web.StreamResponse:
        by_proxy.append(request.path)
        return web.Response()

    async def collect(request: web.Request) -> web.StreamResponse:
        direct.append(request.headers.get("x-key"))
        return web.Response()

    async with _collector(proxy) as other, _collector(collect) as url:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, other)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with _client(url) as send:
            assert await send(b"data") == b""
        assert await _send_span(_client(url)) == {"sent": 1}
        await _send_metrics(_client(url))
    assert (by_proxy, direct) == ([], ["secret"] * 3)


async def test_an_endless_answer_is_cut_off() -> None:
    """An unbounded read would fill the memory. Without an end, the test ends only because the client stops reading."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        except ConnectionError:
            return response

    async with _collector(endless) as url:
        async with _client(url) as send:
            assert len(await send(b"data")) == 65_536
        # The answer is not of the protocol, but its status says that the spans were accepted.
        assert await _send_span(_client(url)) == {"sent": 1}
        await _send_metrics(_client(url))


async def test_an_answer_that_does_not_end_in_time_is_a_failure() -> None:
    """A timeout of each read alone would not end an answer that has one byte from time to time."""

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.05)
        except ConnectionError:
            return response

    async with _collector(slow) as url, _client(url, timeout=0.5) as send:
        with pytest.raises(CollectorUnavailable, match="TimeoutError"):
            await send(b"data")


async def test_a_compressed_answer_is_not_decompressed() -> None:
    """A small answer could have gigabytes of zeros."""
    bomb = gzip.compress(bytes(10_000_000))

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with _collector(answer) as url, _client(url) as send:
        assert await send(b"data") == bomb[:65_536]


@pytest.mark.parametrize(("status", "sent"), [(429, 3), (503, 3), (400, 1), (401, 1), (500, 1)])
async def test_spans_are_sent_again_only_if_the_status_is_retryable(status: int, sent: int) -> None:
    """The specification forbids retries after other statuses. Without a limit, one batch would block all later ones."""
    requests: list[bytes] = []

    async def refuse(request: web.Request) -> web.StreamResponse:
        requests.append(await request.read())
        return web.Response(status=status, headers={"Retry-After": "0"})

    counts: Counter[str] = Counter()
    async with _collector(refuse) as url:
        tracer = new_tracer(_client(url), counts)
        tracer.start()
        with tracer.server_span("GET", {}):
            pass
        while not counts:
            await asyncio.sleep(0.05)
        await tracer.close()
    assert (counts, len(requests), len(set(requests))) == ({"failed": 1}, sent, 1)


def test_the_text_of_a_client_does_not_show_its_headers() -> None:
    described: Any = repr(_client("http://127.0.0.1:1/v1/traces"))
    assert "secret" not in described
