# SPDX-License-Identifier: Apache-2.0
"""Relay messages between the two connections of the proxy (`connector.py`): HTTP/1.1 (RFC 9112, by h11) and tunnels.

Each message is read completely and written again in canonical form, so that both sides see the same framing. Bodies are
not inspected. If one side disconnects, the other connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import h11

__all__ = ["ClientProtocol", "Disconnect", "Peer", "RedirectRefused", "close_peers", "exchange", "tunnel"]

MAX_HEAD: Final = 65_536
"""The length of a head, or of the trailers of a body, that is always accepted. Twice this length is never accepted."""
MAX_INTERIM: Final = 8
STALL_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
_PIECE: Final = 65_536
_HOP_FIELDS: Final = frozenset({b"proxy-authorization", b"proxy-connection"})
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})


class RedirectRefused(Exception):
    """The store answered with a redirect or another protocol. No client may follow it."""


class Disconnect:
    """The disconnect of a client, noticed even while unread data is in the buffer. It ends the current exchange."""

    def __init__(self) -> None:
        self._occurred = False
        self._limit: asyncio.Timeout | None = None

    def occur(self) -> None:
        """End the current exchange, and every later one at its start."""
        self._occurred = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(0)

    @contextmanager
    def ends(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Context manager. While the block runs, the disconnect of the client ends the time limit `limit`, and so the
        exchange.
        """
        self._limit = limit
        if self._occurred:
            self.occur()
        try:
            yield
        finally:
            self._limit = None


class ClientProtocol(asyncio.StreamReaderProtocol):
    """A stream protocol that reports the disconnect of its client."""

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter, Disconnect], None]) -> None:
        """Call `serve` with reader, writer and the disconnect. It must keep the reader alive."""
        disconnect = Disconnect()
        super().__init__(asyncio.StreamReader(limit=_PIECE), lambda reader, writer: serve(reader, writer, disconnect))
        self._disconnect = disconnect

    def eof_received(self) -> bool:
        """Report that the client closed its sending side."""
        self._disconnect.occur()
        return bool(super().eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the connection was closed."""
        self._disconnect.occur()
        super().connection_lost(exc)


class Peer:
    """One side of the proxy: a connection, and the state of HTTP/1.1 on it. `role` is the gateway's role towards this
    peer.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, role: type[h11.CLIENT] | type[h11.SERVER]
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)
        self._unsent: list[bytes] = []

    async def receive(self, to: Peer | None = None) -> h11.Event:
        """Return the next part of the peer's message. Before any wait, flush the output to the peer `to`.

        Raises h11.RemoteProtocolError for a malformed or partial message.
        """
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if to is not None:
                await to.flush()
            self._http.receive_data(await self.reader.read(_PIECE))
        if not isinstance(event, h11.Event):
            raise h11.RemoteProtocolError("data behind the end of a message")
        if isinstance(event, h11.Request | h11.Response):
            names = {name.lower() for name, _ in event.headers.raw_items()}
            if names >= _LENGTHS:
                raise h11.RemoteProtocolError("a message with two lengths")
        return event

    def send(self, event: h11.Event) -> None:
        """Add a part of a message to the output. Raises h11.LocalProtocolError if the part does not fit the state of
        the exchange.
        """
        self._unsent += self._http.send_with_data_passthrough(event) or ()

    async def flush(self) -> None:
        """Write the output and wait for room in the buffer. Raises TimeoutError if the peer stops reading."""
        if self._unsent:
            self.writer.writelines(self._unsent)
            self._unsent = []
            await self._drain()

    async def request(self) -> h11.Request | None:
        """Return the head of the next request, None if the client closed the connection before its first byte."""
        event = await self.receive()
        return event if isinstance(event, h11.Request) else None

    async def copy_until_end(self, to: Peer) -> None:
        """Copy bytes until this peer closes its side. Begin with bytes that were received behind the last message."""
        piece = self._http.trailing_data[0] or await self.reader.read(_PIECE)
        while piece:
            to.writer.write(piece)
            await to._drain()
            piece = await self.reader.read(_PIECE)

    def renew(self, *, pipelines: bool) -> bool:
        """Prepare for the next exchange. Return False if the connection cannot be used again.

        `pipelines` is True if the peer may have sent the start of its next message.
        """
        done = set(self._http.states.values()) == {h11.DONE}
        if not done or not (pipelines or self._http.trailing_data == (b"", False)):
            return False
        self._http.start_next_cycle()
        return True

    @property
    def closed(self) -> bool:
        """Return True if the connection was closed by either side."""
        return self.reader.at_eof() or self.writer.is_closing()

    async def _drain(self) -> None:
        async with asyncio.timeout(STALL_SECONDS):
            await self.writer.drain()


async def exchange(request: h11.Request, target: bytes, client: Peer, store: Peer) -> bool:
    """Send one request of the client to `target` at the store, and copy the response back. Return True if both
    connections can be used again.

    Raises RedirectRefused, h11.ProtocolError for a malformed message, and TimeoutError if a receiver stops reading.
    """
    fields = [(name, value) for name, value in request.headers.raw_items() if name.lower() not in _HOP_FIELDS]
    store.send(h11.Request(method=request.method, target=target, headers=fields))
    if _LENGTHS.isdisjoint(name.lower() for name, _ in fields):
        await _copy_body(client, store)  # Copies the end of the request, which has no body.
        await _copy_answer(store, client)
    else:
        sending = asyncio.create_task(_copy_body(client, store))
        try:
            await _copy_answer(store, client)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    return store.renew(pipelines=False) and client.renew(pipelines=True)


async def _copy_answer(store: Peer, client: Peer) -> None:
    for _ in range(MAX_INTERIM + 1):
        head = await store.receive(client)
        if not isinstance(head, h11.InformationalResponse | h11.Response):
            raise h11.RemoteProtocolError("no answer")
        if head.status_code == 101 or (300 <= head.status_code < 400 and head.status_code != 304):
            raise RedirectRefused
        if head.http_version != b"1.1":  # the only version that h11 writes
            head = type(head)(status_code=head.status_code, headers=list(head.headers), reason=head.reason)
        client.send(head)
        if isinstance(head, h11.Response):
            return await _copy_body(store, client)
    raise h11.RemoteProtocolError("too many interim answers")


async def _copy_body(sender: Peer, receiver: Peer) -> None:
    while not isinstance(event := await sender.receive(receiver), h11.EndOfMessage):
        receiver.send(event)
    receiver.send(event)
    await receiver.flush()


async def tunnel(client: Peer, store: Peer) -> None:
    """Copy in both directions until either side has closed."""
    directions = (
        asyncio.create_task(client.copy_until_end(store)),
        asyncio.create_task(store.copy_until_end(client)),
    )
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def close_peers(*peers: Peer) -> None:
    """Close connections. Buffered data may be sent for CLOSE_SECONDS; then the sockets are aborted."""
    writers = [peer.writer for peer in peers]
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
