# SPDX-License-Identifier: Apache-2.0
"""Decode request bodies: gzip by `Content-Encoding`, and the forms of the OAuth endpoint.

A body is decompressed in small pieces. They count towards the size limit and the caller's share like the bytes of a
plain body. So decompression stops at the limit.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from litestar.types import Receive, Scope

from gateway.iceberg.errors import BadRequestException, CatalogError

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 64 * 1024


class UnsupportedMediaType(CatalogError, code=415, type="UnsupportedMediaTypeException"):
    """The request body has a content coding that is not supported."""


def decoded_body(scope: Scope, receive: Receive, charge: Callable[[int], None]) -> Receive:
    """Return a function that receives the decoded body.

    `charge` is called with the number of decompressed bytes. The function raises UnsupportedMediaType for a coding
    other than gzip, BadRequestException for damaged data, and the errors of `charge`.
    """
    given = [value for name, value in scope["headers"] if name.lower() == b"content-encoding"]
    coding = b", ".join(given).decode("latin-1").strip().lower()
    if coding in ("", "identity"):
        return receive
    if coding in ("gzip", "x-gzip"):
        return cast(Receive, _GzipBody(receive, charge).receive)

    async def refuse() -> Any:
        raise UnsupportedMediaType(
            f"The request body has the content-encoding {coding[:40]!r}, which this server cannot read. Send it "
            "with content-encoding gzip, or without that header."
        )

    return cast(Receive, refuse)


class _GzipBody:
    """A request body in one gzip member."""

    def __init__(self, receive: Receive, charge: Callable[[int], None]) -> None:
        self._receive, self._charge = receive, charge
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)
        self._packed = b""
        self._is_empty = True
        self._arrived = False
        """True once the last packed bytes have been received."""
        self._complete = False

    async def receive(self) -> Any:
        """Return the next message. It has at most `_PIECE` decompressed bytes."""
        if self._complete:
            return await self._receive()
        if not self._packed and not self._arrived:
            message: Any = await self._receive()
            if message["type"] != "http.request":
                return message
            self._packed, self._arrived = message.get("body", b""), not message.get("more_body", False)
            self._is_empty = self._is_empty and not self._packed
        else:
            # The next piece of a message needs no waiting. Without this pause, the pieces would hold up all other
            # requests of the process.
            await asyncio.sleep(0)
        piece = self._inflate()
        self._charge(len(piece))
        # Bytes of the checksum stay packed until all output is taken.
        self._complete = self._arrived and not self._packed
        if self._complete and not self._inflater.eof and not self._is_empty:
            raise _damaged("it ends too early")
        return {"type": "http.request", "body": piece, "more_body": not self._complete}

    def _inflate(self) -> bytes:
        if self._is_empty:
            return b""
        try:
            piece = self._inflater.decompress(self._packed, _PIECE)
        except zlib.error:
            raise _damaged("it is not valid gzip") from None
        if self._inflater.unused_data:
            raise _damaged("bytes follow its end")
        self._packed = self._inflater.unconsumed_tail
        return piece


def _damaged(reason: str) -> BadRequestException:
    return BadRequestException(
        f"Malformed request: the body has the content-encoding gzip, but {reason}. Send one complete gzip member."
    )


FORM: Final = "application/x-www-form-urlencoded"
MAX_FORM: Final = 65_536
_MAX_FIELDS: Final = 40
Form = TypeVar("Form", bound=msgspec.Struct)


class UnreadableForm(Exception):
    """The body is not a form, or it is an ambiguous one. The message gives the reason."""


def read_form(media_type: str, body: bytes, kind: type[Form]) -> Form:
    """Return the form as a `kind`. A parameter may occur only once (RFC 6749 section 3.2).

    Missing parameters are empty strings and unknown ones are ignored, as that section requires. Raises UnreadableForm.
    """
    if media_type != FORM:
        raise UnreadableForm(f"the content type of the request must be {FORM}")
    if len(body) > MAX_FORM:
        raise UnreadableForm(f"the request body has more than {MAX_FORM} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=_MAX_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise UnreadableForm("the request body is not a valid form") from None
    if any("\x00" in text for pair in pairs for text in pair):
        raise UnreadableForm("a parameter contains the character U+0000")
    given = dict(pairs)
    if len(given) != len(pairs):
        raise UnreadableForm("a parameter is given twice")
    left_out = {field.encode_name: "" for field in msgspec.structs.fields(kind) if field.required}
    return msgspec.convert(left_out | given, kind)
