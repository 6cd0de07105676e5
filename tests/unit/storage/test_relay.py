# SPDX-License-Identifier: Apache-2.0
"""Framing of HTTP/1.1 messages from stores that send malformed, endless or ambiguous ones."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateway.storage import relay
from gateway.storage.relay import Head, Malformed, read_head, relay_body, relay_response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Written:
    """A writer that keeps its input; `undrained` is the largest number of bytes between two drains."""

    def __init__(self, *, stalls: bool = False) -> None:
        self.data = b""
        self.undrained = 0
        self._pending = 0
        self._stalls = stalls

    def write(self, data: bytes) -> None:
        self.data += data
        self._pending += len(data)
        self.undrained = max(self.undrained, self._pending)

    async def drain(self) -> None:
        if self._stalls:
            await asyncio.Event().wait()
        self._pending = 0


async def answer(sent: bytes, written: Written) -> bool:
    """Relay a response of a store that keeps its connection open."""
    reader = asyncio.StreamReader(limit=relay.MAX_HEAD)
    reader.feed_data(sent)
    async with asyncio.timeout(5):
        return await relay_response(b"GET", reader, cast(Any, written))


@pytest.mark.parametrize("size", ["-5", "-2", "+5", "1_0", "0x10", "", " 5", "5 5", "5\n", "g", "1" * 16, "٣"])
async def test_a_non_hexadecimal_chunk_size_is_refused(size: str) -> None:
    written = Written()
    with pytest.raises(Malformed):
        await answer(CHUNKED + size.encode() + b"\r\n" + b"x" * 64, written)
    assert b"x" not in written.data


async def test_a_chunk_with_a_wrong_length_is_refused() -> None:
    with pytest.raises(Malformed):
        await answer(CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", Written())


async def test_chunks_with_extensions_and_trailers_pass_unchanged() -> None:
    written, sent = Written(), CHUNKED + b"a ;x=y\r\n0123456789\r\n0F\r\n" + b"z" * 15 + b"\r\n00\r\nT: 1\r\n\r\n"
    assert await answer(sent, written)
    assert written.data.lower() == sent.lower()


async def test_interim_responses_are_forwarded_singly_and_limited() -> None:
    head = b"HTTP/1.1 103 Early Hints\r\nlink: " + b"y" * 500 + b"\r\n\r\n"
    written = Written()
    assert await answer(head * 8 + OK + b"Content-Length: 2\r\n\r\nok", written)
    assert written.data.count(b"103") == 8 and written.data.endswith(b"ok")
    assert written.undrained <= len(head)
    endless = Written()
    with pytest.raises(Malformed):
        await answer(head * 100, endless)
    assert endless.data.count(b"103") <= 9


async def test_trailers_are_forwarded_singly_and_limited_in_size() -> None:
    line = b"T: " + b"y" * 95 + b"\r\n"
    written = Written()
    with pytest.raises(Malformed):
        await answer(CHUNKED + b"0\r\n" + line * 2000, written)
    assert len(written.data) < 10_000 and written.undrained <= 200


@pytest.mark.parametrize("status", ["099", "000", "20", "2000", "2 0", "+20", "20x", "200x", "", "٢٠٠"])
async def test_a_status_without_exactly_three_digits_is_refused(status: str) -> None:
    with pytest.raises(Malformed):
        await answer(f"HTTP/1.1 {status} Fine\r\nContent-Length: 2\r\n\r\nok".encode(), Written())


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: +2\r\n", b"Content-Length: -2\r\n", b"Content-Length: 0_2\r\n", b"Content-Length: 0x2\r\n",
        b"Content-Length:\r\n", b"Content-Length: 2, 2\r\n", b"Content-Length: 2\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\nContent-Length:\r\n", b"Content-Length: " + b"1" * 16 + b"\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"X: a\nContent-Length: 2\r\n",
    ],
)  # fmt: skip
async def test_a_message_with_an_ambiguous_length_is_refused(fields: bytes) -> None:
    written = Written()
    with pytest.raises(Malformed):
        await answer(OK + fields + b"\r\n2\r\nok\r\n0\r\n\r\n", written)
    assert written.data == b""
    reader = asyncio.StreamReader()
    reader.feed_data(b"PUT /x HTTP/1.1\r\n" + fields + b"\r\n2\r\nok\r\n0\r\n\r\n")
    with pytest.raises(Malformed):
        head = await read_head(reader)
        assert isinstance(head, Head)
        await relay_body(head, reader, cast(Any, written))


async def test_a_receiver_that_stops_reading_ends_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "STALL_SECONDS", 0.05)
    reader = asyncio.StreamReader()
    reader.feed_data(OK + b"Content-Length: 2\r\n\r\nok")
    copying = asyncio.ensure_future(relay_response(b"GET", reader, cast(Any, Written(stalls=True))))
    done, _ = await asyncio.wait((copying,), timeout=5)
    copying.cancel()
    assert done and isinstance(copying.exception(), TimeoutError)
