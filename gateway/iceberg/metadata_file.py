# SPDX-License-Identifier: Apache-2.0
"""Names and compression of metadata files."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from gateway.iceberg.errors import BadRequestException, UnsupportedCompressionCodec

COMPRESSION_PROPERTY: Final = "write.metadata.compression-codec"
DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024

_VERSION = re.compile(r"v?(\d{1,9})(?=[-.])")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_GZIP_LEVEL: Final = 6
MAX_MEMBERS: Final = 16
_CHUNK: Final = 1024 * 1024


def next_metadata_location(
    location: str, previous: str | None, *, uuid: UUID, gzip: bool, metadata_path: str | None = None
) -> str:
    """Return the location of the next metadata file: `<location>/metadata/%05d-<uuid>.metadata.json`.

    With `gzip` it ends with `.gz.metadata.json`. The number is that of the `previous` file plus one. It is 0 for the
    first file and after a name without number. `metadata_path` is the value of `write.metadata.path`. The caller must
    check that it is inside of the table's prefix.
    """
    folder = (metadata_path or f"{location.rstrip('/')}/metadata").rstrip("/")
    version = metadata_version(previous) + 1 if previous is not None else 0
    return f"{folder}/{version:05d}-{uuid}{'.gz' if gzip else ''}.metadata.json"


def metadata_version(location: str) -> int:
    """Return the number in the name of a metadata file (`00007-….metadata.json`, `v7.metadata.json`).

    Return -1 if the name has none.
    """
    match = _VERSION.match(location.rsplit("/", 1)[-1])
    return int(match[1]) if match else -1


def uses_gzip(properties: Mapping[str, str], *, default: bool = False) -> bool:
    """Return True if the properties require compressed metadata. Raises `UnsupportedCompressionCodec`."""
    codec = properties.get(COMPRESSION_PROPERTY)
    if codec is None:
        return default
    if codec.lower() not in ("none", "gzip"):
        raise UnsupportedCompressionCodec(f"{COMPRESSION_PROPERTY} must be none or gzip, not {codec!r}")
    return codec.lower() == "gzip"


def compress(document: bytes) -> bytes:
    """Compress with gzip without a timestamp. Equal documents give equal files."""
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(document) + packer.flush()


def decompress(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Return the document in a metadata file. Its content, not its name, determines whether it is decompressed.

    Stops as soon as the result exceeds `max_bytes`, and accepts at most `MAX_MEMBERS` gzip members. A decompression
    bomb or millions of empty members therefore cost no more than the limits. Raises `BadRequestException`.
    """
    if not data.startswith(_GZIP_MAGIC):
        return _within(data, max_bytes)
    try:
        return b"".join(_unpacked(data, max_bytes))
    except zlib.error as error:
        raise BadRequestException(f"The metadata file is damaged: {error}") from None


def _unpacked(data: bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed chunks.

    The input is passed in slices, because zlib copies the unread part after each call.
    """
    room = max_bytes
    members = 1
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    for start in range(0, len(data), _CHUNK):
        pending = data[start : start + _CHUNK]
        while pending:
            if unpacker.eof:
                members += 1
                if members > MAX_MEMBERS:
                    raise BadRequestException(
                        f"The metadata file has more than {MAX_MEMBERS} gzip members. Write it with fewer."
                    )
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
            chunk = unpacker.decompress(pending, min(_CHUNK, room + 1))
            pending = unpacker.unconsumed_tail or unpacker.unused_data
            room = _room_left(room, chunk, max_bytes)
            yield chunk
    while not unpacker.eof:  # Flush the output that the decoder buffered.
        chunk = unpacker.decompress(b"", min(_CHUNK, room + 1))
        if not chunk and not unpacker.eof:
            raise BadRequestException("The metadata file is damaged: its gzip data is incomplete")
        room = _room_left(room, chunk, max_bytes)
        yield chunk


def _room_left(room: int, chunk: bytes, max_bytes: int) -> int:
    if len(chunk) > room:
        raise BadRequestException(f"The metadata file has more than {max_bytes} bytes when decompressed")
    return room - len(chunk)


def _within(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise BadRequestException(f"The metadata file has {len(data)} bytes; at most {max_bytes} are allowed")
    return data
