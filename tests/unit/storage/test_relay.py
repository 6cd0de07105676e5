# SPDX-License-Identifier: Apache-2.0
"""Framing of HTTP/1.1 messages from stores that send malformed, endless or ambiguous ones."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
import pytest

from gateway.storage import relay
from gateway.storage.relay import Peer, exchange

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET http://store/x HTTP/1.1\r\nHost: store\r\n\r\n"


class Written:
    """A writer that keeps its input; `undrained` is the largest number of bytes between two drains."""

    def __init__(self, *, stalls: bool = False) -> None:
        self.data = b""
        self.undrained = 0
        self._pending = 0
        self._stalls = stalls

    def writelines(self, data: list[bytes]) -> None:
        self.data += b"".join(data)
        self._pending += sum(map(len, data))
        self.undrained = max(self.undrained, self._pending)

    async def drain(self) -> None:
        if self._stalls:
            await asyncio.Event().wait()
        self._pending = 0


def peer(received: bytes, written: Written, role: Any) -> Peer:
    """Return a peer that sent `received` and keeps its connection open."""
    reader = asyncio.StreamReader()
    reader.feed_data(received)
    return Peer(reader, cast(Any, written), role)


async def relayed(request: bytes, answer: bytes, to_client: Written, to_store: Written) -> bool:
    client, store = peer(request, to_client, h11.SERVER), peer(answer, to_store, h11.CLIENT)
    async with asyncio.timeout(5):
        head = await client.request()
        assert head is not None
        return await exchange(head, b"/x", client, store)


async def answer(sent: bytes, written: Written) -> bool:
    """Relay a response of a store that keeps its connection open."""
    return await relayed(GET, sent, written, Written())


@pytest.mark.parametrize("size", ["-5", "-2", "+5", "1_0", "0x10", "", " 5", "5 5", "5\n", "g", "1" * 21, "٣"])
async def test_a_non_hexadecimal_chunk_size_is_refused(size: str) -> None:
    written = Written()
    with pytest.raises(h11.RemoteProtocolError):
        await answer(CHUNKED + size.encode() + b"\r\n" + b"x" * 64, written)
    assert b"x" not in written.data


async def test_a_chunk_with_a_wrong_length_is_refused() -> None:
    with pytest.raises(h11.RemoteProtocolError):
        await answer(CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", Written())


async def test_chunks_and_trailers_pass_and_extensions_are_dropped() -> None:
    written, sent = Written(), CHUNKED + b"a;x=y\r\n0123456789\r\n0F\r\n" + b"z" * 15 + b"\r\n00\r\nT: 1\r\n\r\n"
    assert await answer(sent, written)
    head, _, body = written.data.partition(b"\r\n\r\n")
    assert head.lower() == CHUNKED.lower().strip()
    assert body == b"a\r\n0123456789\r\nf\r\n" + b"z" * 15 + b"\r\n0\r\nT: 1\r\n\r\n"


async def test_the_output_is_flushed_with_each_piece_of_the_input() -> None:
    written, length = Written(), 2**20
    assert await answer(OK + b"Content-Length: %d\r\n\r\n" % length + b"x" * length, written)
    assert len(written.data) > length
    assert written.undrained <= 2 * relay.MAX_HEAD


async def test_interim_responses_are_forwarded_and_limited() -> None:
    head = b"HTTP/1.1 103 Early Hints\r\nlink: " + b"y" * 500 + b"\r\n\r\n"
    written = Written()
    assert await answer(head * 8 + OK + b"Content-Length: 2\r\n\r\nok", written)
    assert written.data.count(b"103") == 8 and written.data.endswith(b"ok")
    endless = Written()
    with pytest.raises(h11.RemoteProtocolError):
        await answer(head * 100, endless)
    assert endless.data.count(b"103") <= 9


async def test_trailers_are_limited_in_size() -> None:
    written = Written()
    with pytest.raises(h11.RemoteProtocolError):
        await answer(CHUNKED + b"0\r\n" + (b"T: " + b"y" * 95 + b"\r\n") * 2000, written)
    assert len(written.data) < 100


@pytest.mark.parametrize("status", ["099", "000", "20", "2000", "2 0", "+20", "20x", "200x", "", "٢٠٠"])
async def test_a_status_without_exactly_three_digits_is_refused(status: str) -> None:
    written = Written()
    with pytest.raises(h11.ProtocolError):
        await answer(f"HTTP/1.1 {status} Fine\r\nContent-Length: 2\r\n\r\nok".encode(), written)
    assert written.data == b""


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: +2\r\n", b"Content-Length: -2\r\n", b"Content-Length: 0_2\r\n", b"Content-Length: 0x2\r\n",
        b"Content-Length:\r\n", b"Content-Length: 2, 3\r\n", b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: 2\r\nContent-Length:\r\n", b"Content-Length: " + b"1" * 21 + b"\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"X: a\rContent-Length: 2\r\n",
    ],
)  # fmt: skip
async def test_a_message_with_an_ambiguous_length_is_refused(fields: bytes) -> None:
    to_client, to_store = Written(), Written()
    with pytest.raises(h11.RemoteProtocolError):
        await answer(OK + fields + b"\r\n2\r\nok\r\n0\r\n\r\n", to_client)
    assert to_client.data == b""
    request = b"PUT /x HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n2\r\nok\r\n0\r\n\r\n"
    with pytest.raises(h11.RemoteProtocolError):
        await relayed(request, OK + b"Content-Length: 0\r\n\r\n", to_client, to_store)
    assert to_store.data == b""


@pytest.mark.parametrize("fields", [b"Content-Length: 2, 2\r\n", b"Content-Length: 2\r\nContent-Length: 2\r\n"])
async def test_a_repeated_length_is_forwarded_once(fields: bytes) -> None:
    written = Written()
    assert await answer(OK + fields + b"\r\nok", written)
    assert written.data == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_bytes_behind_a_response_end_the_connection_to_the_store() -> None:
    written = Written()
    again = OK + b"Content-Length: 2\r\n\r\nno"
    assert not await answer(OK + b"Content-Length: 2\r\n\r\nok" + again, written)
    assert written.data.endswith(b"ok")


async def test_the_credentials_of_the_proxy_are_not_forwarded() -> None:
    to_store = Written()
    request = GET[:-2] + b"Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\r\n"
    assert await relayed(request, OK + b"Content-Length: 0\r\n\r\n", Written(), to_store)
    assert to_store.data == b"GET /x HTTP/1.1\r\nHost: store\r\n\r\n"


async def test_a_receiver_that_stops_reading_ends_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "STALL_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        await answer(OK + b"Content-Length: 2\r\n\r\nok", Written(stalls=True))
