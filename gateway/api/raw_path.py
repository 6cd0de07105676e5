# SPDX-License-Identifier: Apache-2.0
"""Decode each path exactly once from the bytes of the client, and reject U+0000 in requests.

Servers decode the whole path before routing, so that `%2F` inside a name becomes a separator. Java clients write a
space as `+`, Python clients as `%20`: each segment is decoded by the rules of HTML forms, which knows both.

U+0000 is rejected everywhere: databases do not store it in text, and C libraries end strings at it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_plus, unquote_to_bytes

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from gateway.api.errors import send_error
from gateway.iceberg.codec import refuse_nul
from gateway.iceberg.errors import BadRequestException


class RawPath:
    """ASGI middleware that sets the decoded path. Refuses segments with a slash or without UTF-8, and U+0000 in path,
    query and headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decode, then go on; 400 in the protocol's error form when that is impossible."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        raw = scope.get("raw_path") or scope["path"].encode()
        try:
            scope["path"] = decode_path(raw)
            refuse_in_head(scope)
        except BadRequestException as wrong:
            await send_error(scope, send, wrong)
            return
        await self._app(scope, receive, send)


_NUL: Final = b"\x00"
_ALSO_KNOWN: Final = " A column is known as field-id:<id>, too: so its rights are read and taken away."


def decode_path(raw: bytes) -> str:
    """Return the path with each segment decoded once. Raises BadRequestException.

    A decoded slash would turn one name into two, and U+0000 ends names in too many places. Columns may have names that
    are refused here, so the message names the other way to refer to them. The router would skip a column without a
    name, and the request would be about all columns.
    """
    path = raw.split(b"?", 1)[0]
    of_column = path.startswith(b"/management/") and b"/columns/" in path
    hint = _ALSO_KNOWN if of_column else ""
    segments = []
    for segment in path.split(b"/"):
        try:
            text = unquote_plus(segment.decode("ascii"), errors="strict")
        except (UnicodeDecodeError, UnicodeEncodeError):
            raise BadRequestException("The path is not percent-encoded UTF-8.") from None
        if "/" in text or "\x00" in text or "\\" in text:
            raise BadRequestException(f"A name in the path holds a slash, a backslash or NUL; names cannot.{hint}")
        if text in (".", ".."):
            raise BadRequestException(f"A name in the path is '.' or '..'; names cannot be.{hint}")
        segments.append(text)
    decoded = "/".join(segments)
    # As it is routed: any letter of it may have come encoded.
    if decoded.startswith("/management/") and "/columns//" in decoded:
        raise BadRequestException(f"The column in the path has no name.{_ALSO_KNOWN}")
    return decoded


def refuse_in_head(scope: Scope) -> None:
    """Raise BadRequestException for U+0000 in the query, written as a byte or percent-encoded, or in a header.

    Paths are decoded and checked by `decode_path`.
    """
    if _NUL in unquote_to_bytes(scope["query_string"]):
        raise BadRequestException("The query holds U+0000, which is allowed nowhere in a request.")
    for name, value in scope["headers"]:
        if _NUL in value or _NUL in name:
            text = name.decode("latin-1")
            raise BadRequestException(f"The header {text!r} holds U+0000, which is allowed nowhere in a request.")


def refuse_in_body(raw: bytes) -> None:
    """Raise BadRequestException for U+0000 in a body of JSON, as a byte or as its escape."""
    if _NUL in raw:
        raise BadRequestException("Malformed request: the body holds U+0000.")
    refuse_nul(raw)
