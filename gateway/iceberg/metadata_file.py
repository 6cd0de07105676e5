# SPDX-License-Identifier: Apache-2.0
"""Names of metadata files, and their compression."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gateway.iceberg.errors import BadRequestException, UnsupportedCompressionCodec

COMPRESSION_PROPERTY: Final = "write.metadata.compression-codec"
METADATA_PATH_PROPERTY: Final = "write.metadata.path"
DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024

_VERSION = re.compile(r"v?(\d{1,9})(?=[-.])")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_GZIP_LEVEL: Final = 6
_CHUNK: Final = 1024 * 1024


def next_metadata_location(
    location: str, previous: str | None, *, uuid: UUID, gzip: bool, metadata_path: str | None = None
) -> str:
    """Where the next metadata file goes: `<location>/metadata/%05d-<uuid>.metadata.json` (`.gz.metadata.json`).

    The number is that of the `previous` file plus one, 0 for the first file and after a name without number (specification,
    "File System Tables" naming as the reference implementation uses it). `metadata_path` is the value of
    `write.metadata.path`, which the caller has checked to lie within the table.
    """
    folder = (metadata_path or f"{location.rstrip('/')}/metadata").rstrip("/")
    version = metadata_version(previous) + 1 if previous is not None else 0
    return f"{folder}/{version:05d}-{uuid}{'.gz' if gzip else ''}.metadata.json"


def metadata_version(location: str) -> int:
    """The number in a metadata file's name (`00007-….metadata.json`, `v7.metadata.json`), -1 when it has none."""
    match = _VERSION.match(location.rsplit("/", 1)[-1])
    return int(match[1]) if match else -1


def uses_gzip(properties: Mapping[str, str], *, default: bool = False) -> bool:
    """Whether the table's properties ask for compressed metadata; raises `UnsupportedCompressionCodec`."""
    codec = properties.get(COMPRESSION_PROPERTY)
    if codec is None:
        return default
    if codec.lower() not in ("none", "gzip"):
        raise UnsupportedCompressionCodec(f"{COMPRESSION_PROPERTY} must be none or gzip, not {codec!r}")
    return codec.lower() == "gzip"


def compress(data: bytes) -> bytes:
    """Gzip without a time stamp, so that equal documents give equal files."""
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def decompress(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The document in a metadata file, compressed or not (told by content: names of foreign files may lie).

    Stops unpacking as soon as the result exceeds `max_bytes`. Raises `BadRequestException` for that and for damaged data.
    """
    if not data.startswith(_GZIP_MAGIC):
        return _within(data, max_bytes)
    chunks: list[bytes] = []
    size = 0
    rest = data
    try:
        while rest:
            unpacker = zlib.decompressobj(_GZIP_WINDOW)
            while not unpacker.eof:
                chunk = unpacker.decompress(rest, min(_CHUNK, max_bytes - size + 1))
                rest = unpacker.unconsumed_tail
                if not chunk and not rest and not unpacker.eof:
                    raise BadRequestException("The metadata file is damaged: its gzip data ends early")
                size += len(chunk)
                if size > max_bytes:
                    raise BadRequestException(f"The metadata file unpacks to more than {max_bytes} bytes")
                chunks.append(chunk)
            rest = unpacker.unused_data
    except zlib.error as error:
        raise BadRequestException(f"The metadata file is damaged: {error}") from None
    return b"".join(chunks)


def _within(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise BadRequestException(f"The metadata file takes {len(data)} bytes, at most {max_bytes} are allowed")
    return data
