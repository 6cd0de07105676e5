# SPDX-License-Identifier: Apache-2.0
"""Allow pages of the configured origins to call every endpoint (Fetch Standard, CORS protocol).

The gateway uses no cookies, and its responses never allow browsers to send stored credentials. A page of another origin
therefore has only the token that it sends itself in the header `Authorization`.
"""

from __future__ import annotations

from typing import Any, Final, cast

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

ANY: Final = "*"
_METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_SECONDS: Final = b"600"
_LONGEST: Final = 1024
"""Longest list of header names in a preflight request, in bytes."""


class Cors:
    """ASGI middleware around the whole application, so that pages can read error responses of every kind too."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        """Set the allowed origins, in the form in which browsers send them; `*` allows all."""
        self._app = app
        self._origins = frozenset(each.encode() for each in origins)
        self._any = ANY.encode() in self._origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight request of an allowed origin. Add the headers to every other response."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        given = {name.lower(): value for name, value in scope["headers"]}
        origin = given.get(b"origin")
        allowed = origin is not None and (self._any or origin in self._origins)
        headers: list[tuple[bytes, bytes]] = [] if self._any else [(b"vary", b"Origin")]
        if allowed:
            headers.append((b"access-control-allow-origin", ANY.encode() if self._any else cast(bytes, origin)))
            if scope["method"] == "OPTIONS" and b"access-control-request-method" in given:
                await _answer_preflight(send, headers, given.get(b"access-control-request-headers", b""))
                return
            headers.append((b"access-control-expose-headers", ANY.encode()))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        await self._app(scope, receive, with_headers)


async def _answer_preflight(send: Send, headers: list[tuple[bytes, bytes]], wanted: bytes) -> None:
    """Allow all methods and the header names `wanted`. The response does not depend on the path, so it reveals nothing.

    No header is refused, because clients other than browsers can send every header anyway.
    """
    names = [each.strip() for each in wanted[:_LONGEST].split(b",")]
    valid = b", ".join(each for each in names if each and each.replace(b"-", b"").replace(b"_", b"").isalnum())
    answer = [
        *headers,
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", valid or b"authorization"),
        (b"access-control-max-age", _SECONDS),
        (b"vary", b"Access-Control-Request-Headers"),
    ]
    await send(cast(Any, {"type": "http.response.start", "status": 204, "headers": answer}))
    await send(cast(Any, {"type": "http.response.body", "body": b"", "more_body": False}))
