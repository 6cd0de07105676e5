# SPDX-License-Identifier: Apache-2.0
"""Streams of the proxy: detection of a disconnect, one HTTP exchange, tunnels, and closing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from gateway.storage.relay import MAX_HEAD, Head, copy_until_end, relay_body, relay_response

__all__ = ["ClientDisconnected", "ClientProtocol", "Streams", "close_streams", "exchange", "tunnel", "while_connected"]

CLOSE_SECONDS: Final = 2.0
_HOP_FIELDS: Final = frozenset({b"proxy-authorization", b"proxy-connection"})

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_T = TypeVar("_T")


class ClientDisconnected(Exception):
    """The client closed its connection before the answer was complete."""


class ClientProtocol(asyncio.StreamReaderProtocol):
    """A stream protocol that reports the disconnect of its client, even with unread data in the buffer."""

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Event], None]) -> None:
        """Call `serve` with reader, writer and the event of the disconnect. It must keep the reader alive."""
        disconnected = asyncio.Event()
        super().__init__(
            asyncio.StreamReader(limit=MAX_HEAD), lambda reader, writer: serve(reader, writer, disconnected)
        )
        self._disconnected = disconnected

    def eof_received(self) -> bool:
        """Set the event when the client closes its sending side."""
        self._disconnected.set()
        return bool(super().eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        """Set the event when the connection is closed."""
        self._disconnected.set()
        super().connection_lost(exc)


async def while_connected(disconnected: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of `work`. Cancel it and raise ClientDisconnected if the client disconnects first."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(disconnected.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


async def exchange(head: Head, start: bytes, client: Streams, store: Streams) -> bool:
    """Copy one request and its answer; return True if both connections can be used again."""
    store[1].write(head.encode(start, without=_HOP_FIELDS))
    sending = asyncio.create_task(relay_body(head, client[0], store[1]))
    try:
        again = await relay_response(start.partition(b" ")[0], store[0], client[1])
        return again and sending.done() and sending.exception() is None and not head.closes
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def tunnel(client: Streams, store: Streams) -> None:
    """Copy in both directions until either side has closed."""
    directions = (
        asyncio.create_task(copy_until_end(client[0], store[1])),
        asyncio.create_task(copy_until_end(store[0], client[1])),
    )
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def close_streams(*both: Streams | None) -> None:
    """Close connections. Buffered data gets CLOSE_SECONDS to be sent; then the sockets are aborted."""
    writers = [streams[1] for streams in both if streams is not None]
    try:
        for writer in writers:
            writer.close()
        async with asyncio.timeout(CLOSE_SECONDS):
            await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
    except (OSError, RuntimeError):
        pass  # The timeout is over, or the event loop has ended.
    finally:
        for writer in writers:
            writer.transport.abort()
