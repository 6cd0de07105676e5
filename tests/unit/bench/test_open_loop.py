# SPDX-License-Identifier: Apache-2.0
"""The load of plain sockets counts every request once, by its answer, and sends at its own rate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.bench.load import Request
from tests.bench.open_loop import Measured, Sender, head_bytes, percentile

OK = b"HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\ncontent-length: 99\r\n\r\n"
BUSY_FOREVER = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
ABSENT = b"HTTP/1.1 404 Not Found\r\n\r\n"


def _request(url: str, method: str = "HEAD") -> Request:
    return Request(method=method, url=url, headers={"Authorization": "Bearer t"})


@asynccontextmanager
async def server(answer_of: Callable[[int], bytes | None], *, seconds: float = 0.0) -> AsyncIterator[str]:
    """Run a server that answers request number n in two parts, or closes the connection for None. Yield its URL."""
    number = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            answer, number = answer_of(number), number + 1
            await asyncio.sleep(seconds)
            if answer is None:
                break
            writer.write(answer[:-3])
            await writer.drain()
            await asyncio.sleep(0)
            writer.write(answer[-3:])
        writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with running:
        yield f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}/t?x=1"


async def test_each_answer_is_counted_once_by_its_kind() -> None:
    answers = [OK, BUSY, OK, BUSY_FOREVER, ABSENT, None]
    async with server(lambda n: answers[n % len(answers)]) as url:
        sender = Sender([_request(url)])
        measured = await sender.closed(1, 0.3)
        sender.close()
    sent = len(measured.admitted) + len(measured.refused) + sum(measured.other.values())
    assert measured.in_time == len(measured.admitted) == pytest.approx(sent / 3, abs=2)
    assert len(measured.refused) == pytest.approx(sent / 3, abs=2)
    assert measured.without_retry_after == pytest.approx(sent / 6, abs=2)
    assert set(measured.other) == {404, 0}


async def test_an_open_loop_sends_at_its_rate_whether_or_not_answers_arrive() -> None:
    async with server(lambda n: OK, seconds=1.5) as url:
        sender = Sender([_request(url)])
        measured = await sender.opened(200, 0.2)
        sender.close()
    # A closed loop would send its second request after the first answer.
    assert 5 <= len(measured.admitted) <= 200 * measured.seconds + 1
    assert measured.in_time == 0, "no answer arrived during the load"
    assert min(measured.admitted) >= 1.5


async def test_a_server_that_refuses_connections_is_counted() -> None:
    async with server(lambda n: OK) as url:
        pass
    measured = await Sender([_request(url)]).opened(100, 0.1)
    assert measured.admitted == []
    assert sum(measured.other.values()) > 0


def test_a_request_is_sent_with_its_query_and_headers() -> None:
    sent = head_bytes(_request("http://127.0.0.1:81/a/b?c=d"))
    assert sent == b"HEAD /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:81\r\nAuthorization: Bearer t\r\n\r\n"
    with pytest.raises(ValueError, match="only HEAD"):
        head_bytes(_request("http://127.0.0.1/", "GET"))


def test_percentiles_are_in_milliseconds() -> None:
    assert percentile([0.001 * n for n in range(100, 0, -1)], 0.5) == pytest.approx(51)
    assert percentile([], 0.99) == 0
    assert Measured(seconds=2.0, in_time=10).goodput == 5
