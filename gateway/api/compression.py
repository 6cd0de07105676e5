# SPDX-License-Identifier: Apache-2.0
"""Compress responses by the request's `Accept-Encoding` (RFC 9110 section 12.5.3), with zstd or gzip.

A response with a secret is never compressed. The length of a compressed response depends on how much of its text
repeats. An attacker who controls a part of the text and sees the lengths could guess the secret step by step (BREACH).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import zstandard
from litestar.types import Message, Scope, Send

from gateway.offloading import offload

MIN_BYTES: Final = 2048
"""Smaller bodies fit into one or two packets, and are sent as they are."""

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 1
"""The fastest level of both codings. Higher levels take up to three times as long for a tenth less bytes."""

_TEXTS: Final = ("text/", "application/json", "application/scim+json", "application/javascript", "image/svg+xml")


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(body) + packer.flush()


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(body)


#: The codings, the preferred one first.
_CODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {"zstd": _zstd, "gzip": _gzip}


class CompressedResponse:
    """The ASGI messages of one response. `holds_secret` is called when its body is sent.

    Only a response with a single body message is compressed. A streamed response is sent unchanged, part by part.
    """

    def __init__(self, scope: Scope, send: Send, holds_secret: Callable[[], bool]) -> None:
        self._coding = coding_of(value for name, value in scope["headers"] if name.lower() == b"accept-encoding")
        self._send = send
        self._holds_secret = holds_secret
        self._start: Any = None

    async def send(self, message: Message) -> None:
        """Send one ASGI message. The start of the response is delayed until its body is known."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            if _is_text(start) and not self._holds_secret():
                message = await self._compressed(start, cast(Any, message))
            await self._send(start)
        await self._send(message)

    async def _compressed(self, start: Any, message: Any) -> Message:
        """Return the message with a compressed body, and change the headers in `start`."""
        vary = _value(start["headers"], b"vary")
        start["headers"] = _replaced(start["headers"], {b"vary": vary + b", " * bool(vary) + b"Accept-Encoding"})
        body, whole = message.get("body", b""), not message.get("more_body", False)
        if self._coding is None or not whole or len(body) < MIN_BYTES or _value(start["headers"], b"content-encoding"):
            return cast(Message, message)
        pack = _CODINGS[self._coding]
        packed = await offload(lambda: pack(body), size=len(body))
        changed = {b"content-encoding": self._coding.encode(), b"content-length": str(len(packed)).encode()}
        etag = _value(start["headers"], b"etag")
        if etag.startswith(b'"'):
            # A strong tag belongs to the bytes of one coding (RFC 9110 section 8.8.3).
            changed[b"etag"] = b"W/" + etag
        start["headers"] = _replaced(start["headers"], changed)
        return cast(Message, {**message, "body": packed})


def coding_of(accepted: Iterable[bytes]) -> str | None:
    """Return the content coding that `Accept-Encoding` prefers; None if it accepts no supported one.

    Malformed parts count as refused.
    """
    weights: dict[str, float] = {}
    for part in b",".join(accepted).decode("latin-1").lower().split(","):
        name, _, parameter = part.partition(";")
        weights[name.strip()] = _weight(parameter.replace(" ", ""))
    others = weights.get("*", 0.0)
    best = max(_CODINGS, key=lambda coding: weights.get(coding, others))
    return best if weights.get(best, others) > 0 else None


def _weight(parameter: str) -> float:
    if not parameter:
        return 1.0
    try:
        return float(parameter.removeprefix("q="))
    except ValueError:
        return 0.0


def _value(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    return b", ".join(value for name, value in headers if name.lower() == wanted)


def _replaced(headers: Iterable[tuple[bytes, bytes]], new: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [*((name, value) for name, value in headers if name.lower() not in new), *new.items()]


def _is_text(start: Any) -> bool:
    """Return True if a response can be compressed: it is a text, or the 304 for a text."""
    media_type = _value(start["headers"], b"content-type").decode("latin-1")
    return start["status"] == 304 or media_type.startswith(_TEXTS)
