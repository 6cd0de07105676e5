# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 messages (RFC 9112) copied between two streams with their framing. Bodies are not inspected."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_HEAD", "Head", "Malformed", "copy_until_end", "read_head", "relay_body", "relay_response"]

MAX_HEAD: Final = 65_536
MAX_INTERIM: Final = 8
MAX_TRAILERS: Final = 8192
STALL_SECONDS: Final = 60.0
_PIECE: Final = 65_536
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}")
_CONTROL: Final = re.compile(rb"[\r\n\x00]")
_REDIRECT: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 27\r\n\r\n"
    b"redirects are not followed\n"
)


class Malformed(Exception):
    """The peer sent no valid HTTP/1.1 message, or one with a head that is too long."""


@dataclass(frozen=True, slots=True)
class Head:
    """Start line and header fields of a message. Field names are in lower case."""

    start: bytes
    fields: tuple[tuple[bytes, bytes], ...]

    def get(self, name: bytes) -> bytes:
        """Return the values of a field, joined by commas; empty if it is absent."""
        return b",".join(value for known, value in self.fields if known == name)

    def encode(self, start: bytes, *, without: frozenset[bytes] = frozenset()) -> bytes:
        """Return the head's bytes with another start line, and without the fields `without`."""
        lines = [name + b": " + value for name, value in self.fields if name not in without]
        return b"\r\n".join([start, *lines]) + b"\r\n\r\n"

    @property
    def chunked(self) -> bool:
        """Return True if the body is chunked. Raises Malformed for another coding, or for an additional length."""
        codings = [value.lower() for name, value in self.fields if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or self.length is not None):
            raise Malformed
        return bool(codings)

    @property
    def length(self) -> int | None:
        """Return the declared length of the body, None without one. Raises Malformed."""
        lengths = [value for name, value in self.fields if name == b"content-length"]
        if not lengths:
            return None
        if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
            raise Malformed
        return int(lengths[0])

    @property
    def closes(self) -> bool:
        """Return True if the connection ends after this message."""
        return b"close" in self.get(b"connection").lower()


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read start line and fields. Return None if the peer closed before the first byte. Raises Malformed."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise Malformed from None
        return None
    except asyncio.LimitOverrunError:
        raise Malformed from None
    start, *lines = raw[:-4].split(b"\r\n")
    if any(map(_CONTROL.search, (start, *lines))):
        raise Malformed
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise Malformed
        fields.append((name.lower(), value.strip()))
    return Head(start, tuple(fields))


async def relay_body(head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a request's body: chunked, of known length, or none."""
    if head.chunked:
        await _copy_chunks(reader, writer)
    else:
        await _copy_exactly(reader, writer, head.length or 0)


async def relay_response(method: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Copy one answer. Return True if both connections can be reused.

    A redirect is replaced by 400, so that no client follows it. Raises Malformed, IncompleteReadError if the store
    closes the connection within its answer, and TimeoutError if the client stops reading.
    """
    for _ in range(MAX_INTERIM + 1):
        head = await read_head(reader)
        if head is None:
            return False
        version, status = _status_of(head)
        if status == 101 or (300 <= status < 400 and status != 304):
            await _send(writer, _REDIRECT)
            return False
        if status >= 200:
            break
        await _send(writer, head.encode(head.start))
    else:
        raise Malformed
    chunked, length = head.chunked, head.length  # Validated before the first byte is copied.
    await _send(writer, head.encode(head.start))
    if method == b"HEAD" or status in (204, 304):
        pass
    elif chunked:
        await _copy_chunks(reader, writer)
    elif length is not None:
        await _copy_exactly(reader, writer, length)
    else:
        await copy_until_end(reader, writer)
        return False
    return version == b"HTTP/1.1" and not head.closes


def _status_of(head: Head) -> tuple[bytes, int]:
    """Return the protocol version and the status code of an answer. Raises Malformed."""
    version, _, rest = head.start.partition(b" ")
    status = rest.partition(b" ")[0]
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not _STATUS.fullmatch(status):
        raise Malformed
    return version, int(status)


async def copy_until_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the sender closes its side."""
    while piece := await reader.read(_PIECE):
        await _send(writer, piece)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write and wait for room in the buffer. Raises TimeoutError if the receiver stops reading."""
    writer.write(data)
    async with asyncio.timeout(STALL_SECONDS):
        await writer.drain()


async def _copy_exactly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int) -> None:
    while length > 0:
        piece = await reader.read(min(length, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", length)
        length -= len(piece)
        await _send(writer, piece)


async def _copy_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        line = await _line(reader)
        size_text = line[:-2].partition(b";")[0].rstrip(b" \t")
        if not _CHUNK_SIZE.fullmatch(size_text):
            raise Malformed
        await _send(writer, line)
        size = int(size_text, 16)
        if size == 0:
            break
        await _copy_exactly(reader, writer, size)
        if await reader.readexactly(2) != b"\r\n":
            raise Malformed
        await _send(writer, b"\r\n")
    remaining = MAX_TRAILERS
    while True:
        line = await _line(reader)
        remaining -= len(line)
        if remaining < 0:
            raise Malformed
        await _send(writer, line)
        if line == b"\r\n":
            return


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        raise Malformed from None
    if _CONTROL.search(line[:-2]):
        raise Malformed
    return line
