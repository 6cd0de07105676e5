# SPDX-License-Identifier: Apache-2.0
"""Request bodies with a content coding: gzip is inflated in pieces, other codings and damaged data are refused."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any, cast

import pytest

from gateway.api.request_encoding import _PIECE, UnsupportedMediaType, decoded_body
from gateway.iceberg.errors import BadRequestException

PLAIN = b'{"namespace": ["a"]}'
# Without the time, so that the processes of one run name their tests alike.
COMPRESSED = gzip.compress(PLAIN, mtime=0)


class _Request:
    """A request whose body arrives in the given parts. `read` collects what the application receives."""

    def __init__(self, coding: bytes, *parts: bytes) -> None:
        self._parts = list(parts)
        self.charged = 0
        self.pieces: list[bytes] = []
        scope: Any = {"headers": [(b"Content-Encoding", coding)] if coding else []}
        self.receive: Any = decoded_body(scope, self._arriving, self._charge)

    async def _arriving(self) -> Any:
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts)}

    def _charge(self, size: int) -> None:
        self.charged += size

    async def read(self, limit: int | None = None) -> bytes:
        while True:
            message = await self.receive()
            self.pieces.append(message["body"])
            if not message["more_body"] or (limit is not None and sum(map(len, self.pieces)) > limit):
                return b"".join(self.pieces)


def _in_parts(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("coding", [b"", b"identity", b" Identity "])
async def test_a_plain_body_is_received_as_it_is(coding: bytes) -> None:
    request = _Request(coding, PLAIN)
    assert await request.read() == PLAIN
    assert request.charged == 0


@pytest.mark.parametrize("coding", [b"gzip", b"GZIP", b"x-gzip"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_gzip_body_is_inflated_however_it_arrives(coding: bytes, size: int) -> None:
    for plain in (PLAIN, b"", b"a" * _PIECE, b"a" * (3 * _PIECE), bytes(range(256)) * 1024):
        request = _Request(coding, *_in_parts(gzip.compress(plain), size))
        assert await request.read() == plain
        assert request.charged == len(plain)


async def test_an_empty_body_needs_no_gzip() -> None:
    assert await _Request(b"gzip", b"").read() == b""


async def test_a_bomb_is_inflated_no_further_than_it_is_read() -> None:
    bomb = gzip.compress(b"\x00" * (256 * _PIECE))
    assert len(bomb) < _PIECE
    request = _Request(b"gzip", bomb)
    await request.read(limit=4 * _PIECE)
    assert max(map(len, request.pieces)) <= _PIECE
    assert request.charged <= 5 * _PIECE


async def test_other_requests_of_the_process_run_between_the_pieces_of_one_message() -> None:
    request = _Request(b"gzip", gzip.compress(bytes(8 * _PIECE)))
    turns = 0

    async def counting() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(counting())
    await request.read()
    other.cancel()
    assert turns >= 7


async def test_the_end_of_the_connection_is_passed_on() -> None:
    async def ended() -> Any:
        return {"type": "http.disconnect"}

    receive: Any = decoded_body(cast(Any, {"headers": [(b"content-encoding", b"gzip")]}), ended, lambda size: None)
    assert await receive() == {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (COMPRESSED[:-1], "ends too early"),
        (COMPRESSED[:-9], "ends too early"),
        (PLAIN, "not valid gzip"),
        (COMPRESSED + b"x", "bytes follow"),
        (COMPRESSED + COMPRESSED, "bytes follow"),
        (COMPRESSED[:-8] + bytes(8), "not valid gzip"),
    ],
    ids=["last byte missing", "end missing", "plain", "a byte follows", "a message follows", "wrong checksum"],
)
async def test_damaged_gzip_is_400(data: bytes, reason: str) -> None:
    with pytest.raises(BadRequestException, match=reason):
        await _Request(b"gzip", *_in_parts(data, 9)).read()


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"deflate", b"gzip, gzip", b"gzip;q=1"])
async def test_another_coding_is_415_when_the_body_is_read(coding: bytes) -> None:
    request = _Request(coding, PLAIN)
    with pytest.raises(UnsupportedMediaType, match="Send it with content-encoding gzip, or without"):
        await request.read()
