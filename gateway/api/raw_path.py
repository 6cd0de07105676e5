# SPDX-License-Identifier: Apache-2.0
"""Decode each path exactly once from the bytes of the client, and reject U+0000 in requests.

ASGI servers decode the whole path before routing, so `%2F` in a name would become a separator. Java clients encode a
space as `+`, Python clients as `%20`. Each segment is decoded by the rules of HTML forms, which accept both.

U+0000 is rejected in every part of a request: PostgreSQL cannot store it in text, and C libraries end strings at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote_plus, unquote_to_bytes

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from gateway.api.errors import send_error
from gateway.api.path_refs import is_principal_next, protect_slashes
from gateway.iceberg.codec import refuse_nul
from gateway.iceberg.errors import BadRequestException, CatalogError


class RawPath:
    """ASGI middleware that sets the decoded path. It refuses requests that `decode_path` or `refuse_in_head` refuses.

    `refuse_early` returns the refusal of a request by an overloaded process; None admits it.
    """

    def __init__(self, app: ASGIApp, refuse_early: Callable[[Scope], CatalogError | None] | None = None) -> None:
        self._app = app
        self._refuse_early = refuse_early

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decode the path and call the application. If a request is refused, send 400 in the error form of the API of
        its path.
        """
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        if self._refuse_early is not None and (refusal := self._refuse_early(scope)) is not None:
            await send_error(scope, send, refusal)
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
_ALSO_KNOWN: Final = " To list or revoke the grants of such a column, name it as field-id:<id>."


def decode_path(raw: bytes) -> str:
    """Return the path with each segment decoded once.

    Raises BadRequestException for invalid UTF-8, for `.` and `..` as a segment, and for a slash, a backslash or U+0000
    inside a segment. A decoded slash would split a name. Only the ids of principals may have slashes and backslashes
    (`principal_ids`).
    Columns may have such names, so the message mentions field ids. An empty column name is rejected too: the router
    would skip it, and the request would apply to all columns.
    """
    path = raw.split(b"?", 1)[0]
    of_column = path.startswith(b"/management/") and b"/columns/" in path
    hint = _ALSO_KNOWN if of_column else ""
    segments: list[str] = []
    for segment in path.split(b"/"):
        try:
            text = unquote_plus(segment.decode("ascii"), errors="strict")
        except (UnicodeDecodeError, UnicodeEncodeError):
            raise BadRequestException("The path of the request is not percent-encoded UTF-8.") from None
        if is_principal_next(segments):
            text = protect_slashes(text)
        if "/" in text or "\x00" in text or "\\" in text:
            raise BadRequestException(f"A name in the path must not contain a slash, a backslash or U+0000.{hint}")
        if text in (".", ".."):
            raise BadRequestException(f"A name in the path must not be '.' or '..'.{hint}")
        segments.append(text)
    decoded = "/".join(segments)
    # The path is checked after decoding, in the form that the router sees: any character of a path can be
    # percent-encoded.
    if decoded.startswith("/management/") and "/columns//" in decoded:
        raise BadRequestException(f"The name of the column in the path is empty.{_ALSO_KNOWN}")
    return decoded


def refuse_in_head(scope: Scope) -> None:
    """Raise BadRequestException for U+0000 in the query, as a byte or percent-encoded, or in a header.

    Paths are decoded and checked by `decode_path`.
    """
    if _NUL in unquote_to_bytes(scope["query_string"]):
        raise BadRequestException("The query contains the character U+0000, which is not allowed in a request.")
    for name, value in scope["headers"]:
        if _NUL in value or _NUL in name:
            text = name.decode("latin-1")
            raise BadRequestException(
                f"The header {text!r} contains the character U+0000, which is not allowed in a request."
            )


def refuse_in_body(raw: bytes) -> None:
    """Raise BadRequestException for U+0000 in a JSON body, as a byte or as an escape sequence."""
    if _NUL in raw:
        raise BadRequestException("Malformed request: the body contains the character U+0000, which is not allowed.")
    refuse_nul(raw)
