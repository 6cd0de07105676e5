# SPDX-License-Identifier: Apache-2.0
"""A local HTTP proxy through which the clients of object stores connect to the endpoints of storage profiles.

The two client libraries let no caller choose the address of a connection, and one of them follows redirects. Both
support a proxy. For each connection, this proxy resolves the endpoint's name once, checks every address, and uses one.
TLS is end to end through the proxy, so the certificate is verified against the endpoint's name.

A client can connect only to the endpoint of its proxy URL, not to another host or port that a redirect names. Redirects
of plain HTTP are replaced by 400. Redirects inside TLS are not visible here: a client may follow a redirect to the same
host and port, and the connection to any other is refused.

The proxy listens on a loopback port, in a thread with its own event loop. Its proxy URLs contain a keyed digest, so
that other processes on the machine cannot use it. DNS lookups have a thread pool of their own: a slow name server
delays connections to its own names only.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import zip_longest
from threading import Lock, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import h11
import structlog

from gateway.scope.endpoint import EndpointRules, refuse_address
from gateway.scope.errors import InvalidStorageProfile
from gateway.storage.relay import (
    ClientProtocol,
    Disconnect,
    Peer,
    RedirectRefused,
    close_peers,
    exchange,
    tunnel,
)

__all__ = [
    "Connector",
    "NameLookup",
    "Route",
]


CONNECT_SECONDS: Final = 2.0
MIN_CONNECT_SECONDS: Final = 0.5
MAX_ADDRESSES: Final = 6
HEAD_SECONDS: Final = 10.0
EXCHANGE_SECONDS: Final = 60.0
MAX_UNAUTHENTICATED: Final = 256
MAX_REFUSALS: Final = 1024

_log = structlog.get_logger("storage.connector")


@dataclass(frozen=True, slots=True)
class Route:
    """The route to one endpoint. Implements `gateway.scope.endpoint.EndpointRoute`."""

    proxy_url: str
    endpoint: str
    refusals: OrderedDict[str, str]

    @property
    def refusal(self) -> str | None:
        """The reason why the newest connection was refused. None if its address was allowed."""
        return self.refusals.get(self.endpoint)


class _Refused(Exception):
    """The client may not connect to the target in its request."""


class _Unreachable(Exception):
    """The connection to the endpoint failed."""


class Connector:
    """Connects to endpoints whose addresses `rules` allow. The thread starts with the first route.

    `connect_seconds` limits one lookup, and then the connection. `head_seconds` limits the time until a connection has
    sent its first request head. `exchange_seconds` limits one request with its response. If more than `unauthenticated`
    connections have sent no valid head yet, the oldest of them is closed.
    """

    def __init__(
        self,
        rules: EndpointRules,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        head_seconds: float = HEAD_SECONDS,
        exchange_seconds: float = EXCHANGE_SECONDS,
        unauthenticated: int = MAX_UNAUTHENTICATED,
    ) -> None:
        self._rules = rules
        self._connect_seconds = connect_seconds
        self._head_seconds = head_seconds
        self._exchange_seconds = exchange_seconds
        self._max_unauthenticated = unauthenticated
        # Strong references to the tasks of open connections: the event loop has only weak ones.
        self._serving: set[asyncio.Task[None]] = set()
        self._unauthenticated: OrderedDict[asyncio.Task[None], None] = OrderedDict()
        self._key = secrets.token_bytes(32)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._address = ""
        self._refusals: OrderedDict[str, str] = OrderedDict()

    def route(self, endpoint: str) -> Route:
        """Return the route to the endpoint `scheme://host[:port]`. Raises InvalidStorageProfile if the host is an
        address that is not allowed.
        """
        host = urlsplit(endpoint).hostname or ""
        try:
            ip_address(host)
        except ValueError:
            pass  # A host name: its addresses are checked with each connection.
        else:
            refuse_address(host, "endpoint", self._rules)
        with self._lock:
            if self._loop is None:
                self._loop = self._start()
        user = base64.urlsafe_b64encode(endpoint.encode()).decode().rstrip("=")
        return Route(f"http://{user}:{self._digest(endpoint)}@{self._address}", endpoint, self._refusals)

    def close(self) -> None:
        """Stop listening and end all connections."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _digest(self, endpoint: str) -> str:
        return hmac.digest(self._key, endpoint.encode(), hashlib.sha256).hex()

    def _start(self) -> asyncio.AbstractEventLoop:
        listener = socket.create_server(("127.0.0.1", 0))
        # Accepted sockets inherit TCP_NODELAY. asyncio sets it only on sockets that name their protocol; these do not.
        # Without it, the body of a small response waits 40 ms for the client to acknowledge the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = f"127.0.0.1:{listener.getsockname()[1]}"
        loop = asyncio.new_event_loop()
        Thread(target=self._run, args=(loop, listener), name="storage-connector", daemon=True).start()
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        asyncio.set_event_loop(loop)
        self._names = names = NameLookup(seconds=self._connect_seconds)
        server = loop.run_until_complete(_listen(loop, lambda: ClientProtocol(self._accept), listener))
        try:
            loop.run_forever()
        finally:
            server.close()
            names.close()
            under_way = asyncio.all_tasks(loop)
            for task in under_way:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*under_way, return_exceptions=True))
            loop.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, disconnect: Disconnect) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(Peer(reader, writer, h11.SERVER), disconnect))
        self._serving.add(task)
        self._unauthenticated[task] = None
        task.add_done_callback(lambda done: self._forget(done, writer))
        if len(self._unauthenticated) > self._max_unauthenticated:
            oldest, _ = self._unauthenticated.popitem(last=False)
            oldest.cancel()

    def _forget(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._serving.discard(task)
        self._unauthenticated.pop(task, None)
        writer.transport.abort()  # A task that was cancelled before its first step has not closed the socket.

    async def _serve(self, client: Peer, disconnect: Disconnect) -> None:
        """Serve one connection of a client until either side ends it."""
        upstream: list[Peer] = []
        try:
            await self._serve_requests(client, disconnect, upstream)
        except _Refused as refused:
            await _answer(client.writer, 400, str(refused))
        except RedirectRefused:
            await _answer(client.writer, 400, "redirects are not followed")
        except _Unreachable as unreachable:
            _log.info("endpoint.failed", error=str(unreachable))
            await _answer(client.writer, 502, "no connection to the endpoint was possible")
        except (h11.ProtocolError, OSError, ValueError) as ended:
            # The client sees the same as without a proxy: its connection ends in the middle of a message.
            _log.debug("exchange.ended", error=type(ended).__name__)
        finally:
            await close_peers(client, *upstream)

    async def _serve_requests(self, client: Peer, disconnect: Disconnect, upstream: list[Peer]) -> None:
        """Serve the requests of one connection. `upstream` keeps the connection to the endpoint open."""
        reached = ""
        async with asyncio.timeout(self._head_seconds):
            request = await client.request()
        while request is not None:
            endpoint = self._endpoint_of(request)
            if (task := asyncio.current_task()) is not None:
                self._unauthenticated.pop(task, None)
            if request.method == b"CONNECT":
                _require_tunnel(endpoint, request.target)
                await close_peers(*upstream)
                upstream[:] = [await self._reach(endpoint)]
                client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await tunnel(client, upstream[0])
                return
            target = _origin_form(endpoint, request.target)
            async with asyncio.timeout(self._exchange_seconds) as limit:
                if reached != endpoint or upstream[0].closed:
                    await close_peers(*upstream)
                    upstream[:] = [await self._reach(endpoint)]
                    reached = endpoint
                with disconnect.ends(limit):
                    if not await exchange(request, target, client, upstream[0]):
                        return
            request = await client.request()

    async def _reach(self, endpoint: str) -> Peer:
        """Connect to the endpoint. Raises _Refused and _Unreachable."""
        try:
            return await self._dial(endpoint)
        except OSError as failed:
            raise _Unreachable(type(failed).__name__) from None

    def _endpoint_of(self, request: h11.Request) -> str:
        """Return the endpoint that the request's proxy credentials were made for. Raises _Refused."""
        credentials = [value for name, value in request.headers if name == b"proxy-authorization"]
        scheme, _, given = b",".join(credentials).partition(b" ")
        try:
            user, _, digest = base64.b64decode(given).decode("ascii").partition(":")
            endpoint = base64.urlsafe_b64decode(user + "=" * (-len(user) % 4)).decode()
        except ValueError:
            raise _Refused("the request has no valid proxy credentials of this gateway") from None
        if scheme.lower() != b"basic" or not hmac.compare_digest(digest, self._digest(endpoint)):
            raise _Refused("the request has no valid proxy credentials of this gateway")
        return endpoint

    async def _dial(self, endpoint: str) -> Peer:
        """Resolve the name, check every address and connect to one. Raises _Refused, OSError and TimeoutError."""
        host, port = _authority(endpoint)
        addresses = await self._names.addresses(host)
        try:
            for address in addresses:
                refuse_address(address, "endpoint", self._rules)
        except InvalidStorageProfile as refused:
            self._refusals[endpoint] = refused.message
            while len(self._refusals) > MAX_REFUSALS:
                self._refusals.popitem(last=False)
            _log.warning("endpoint.refused", endpoint=endpoint, error=refused.message)
            raise _Refused(refused.message) from None
        self._refusals.pop(endpoint, None)
        return await _connect(addresses, port, self._connect_seconds)


async def _connect(addresses: list[str], port: int, seconds: float) -> Peer:
    """Connect to the first address that responds. The time limit `seconds` is divided between the addresses.

    Each address gets MIN_CONNECT_SECONDS or more, and at most MAX_ADDRESSES are tried. Raises OSError.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    tried = _alternate(addresses)[:MAX_ADDRESSES]
    failure: OSError = OSError("the host name of the endpoint cannot be resolved")
    for position, address in enumerate(tried):
        share = (deadline - clock()) / (len(tried) - position)
        try:
            async with asyncio.timeout(max(share, MIN_CONNECT_SECONDS)):
                return Peer(*await asyncio.open_connection(address, port), h11.CLIENT)
        except OSError as failed:
            failure = failed
    raise failure


def _alternate(addresses: list[str]) -> list[str]:
    """Return the addresses of IPv4 and IPv6 alternately, so that an unreachable family does not use up all attempts."""
    first = ":" in addresses[0] if addresses else False
    same = [address for address in addresses if (":" in address) is first]
    other = [address for address in addresses if (":" in address) is not first]
    return [address for pair in zip_longest(same, other) for address in pair if address is not None]


async def _listen(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], ClientProtocol], listener: socket.socket
) -> asyncio.Server:
    return await loop.create_server(protocol, sock=listener)


def _authority(endpoint: str) -> tuple[str, int]:
    parts = urlsplit(endpoint)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _require_tunnel(endpoint: str, target: bytes) -> None:
    if not endpoint.startswith("https://") or _authority(f"https://{target.decode('latin-1')}") != _authority(endpoint):
        raise _Refused("the request is for another host than the endpoint of its proxy credentials")


def _origin_form(endpoint: str, target: bytes) -> bytes:
    """Return the request target without scheme and host. Raises _Refused if these are not the endpoint's."""
    scheme, _, rest = target.partition(b"://")
    authority, slash, path = rest.partition(b"/")
    named = f"http://{authority.decode('latin-1')}"
    if scheme != b"http" or not endpoint.startswith("http://") or _authority(named) != _authority(endpoint):
        raise _Refused("the request is for another host than the endpoint of its proxy credentials")
    return slash + path if slash else b"/"


async def _answer(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status} Refused\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with contextlib.suppress(OSError):
        writer.write(head.encode() + body)
        await writer.drain()


THREADS: Final = 64

_Found = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Running:
    lookup: Future[_Found]
    answer: asyncio.Future[_Found]
    deadline: float


class NameLookup:
    """Resolves host names. All methods belong to one event loop; the threads start with the first lookup.

    Concurrent connections to one name share a lookup and its time limit. A lookup that exceeds the limit keeps its
    thread. Until it has ended, further connections to the name fail immediately.
    """

    def __init__(self, *, seconds: float, threads: int = THREADS) -> None:
        """Configure the limits: `seconds` for one lookup, and `threads` concurrent lookups."""
        self._seconds = seconds
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[str, _Running] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return the distinct addresses of `host`. Raises TimeoutError, and OSError for an unknown name."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        running = self._running.get(host) or self._start(host)
        remaining = running.deadline - asyncio.get_running_loop().time()
        if remaining > 0:
            await asyncio.wait((running.answer,), timeout=remaining)
        if not running.answer.done() or running.answer.cancelled():
            running.lookup.cancel()  # Works for a lookup that waits for a thread; a running one cannot be cancelled.
            raise TimeoutError
        return list(dict.fromkeys(str(address[0]) for *_, address in running.answer.result()))

    def close(self) -> None:
        """Cancel the lookups and stop the threads."""
        for running in list(self._running.values()):
            running.answer.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, host: str) -> _Running:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="storage-dns")
        loop = asyncio.get_running_loop()
        lookup: Future[_Found] = self._pool.submit(_resolve, host)
        answer = asyncio.wrap_future(lookup, loop=loop)
        self._running[host] = running = _Running(lookup, answer, loop.time() + self._seconds)

        def ended(answer: asyncio.Future[_Found]) -> None:
            del self._running[host]
            if not answer.cancelled():
                answer.exception()  # Marks the exception as retrieved, for lookups without a waiter.

        answer.add_done_callback(ended)
        return running


def _resolve(host: str) -> _Found:
    try:
        return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except UnicodeError:
        raise OSError("no valid host name") from None
