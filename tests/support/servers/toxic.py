# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that simulates failures of networks and servers, and a gateway behind such proxies.

Each proxy forwards to one server. Its failure mode can change at any time, for new and for open connections. The server
itself is not disturbed, so tests that need it intact can share the stack.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from lakegate.local.ready import Ready
from tests.support.lakegate_command import start_serving
from tests.support.processes import family, values_of
from tests.support.rows.parts import free_port

WELL = "well"
DELAYED = "delayed"
TRICKLING = "trickling"
SILENT = "silent"
HALF_OPEN = "half-open"
RESET = "reset"
GONE = "gone"

TOXICS = (DELAYED, TRICKLING, SILENT, HALF_OPEN, RESET, GONE)
"""Failure modes, in this order: late answers; answers byte by byte; connections accepted but never answered; requests
executed but never answered; answers cut off in the middle; connections refused and closed, as in a restart.
"""

Cut = Callable[[int, bytes], "str | None"]
"""Receives a connection's number and the data that its client sends. Returns None to forward the data, or how the
connection ends: `before` drops the data, `after` forwards it and drops the answer.
"""

BEFORE = "before"
AFTER = "after"


class Toxic:
    """One proxy with its own port and thread."""

    def __init__(self, target: int, *, same_length: bool = False) -> None:
        self.target = target
        # Bound for the whole life of the proxy, so that no other process takes the port while the proxy refuses
        # connections.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port = int(self._place.getsockname()[1])
        self.mode = WELL
        self.delay = 1.0
        self.cut: Cut | None = None
        """Inspects all data that is sent to the server."""
        self.afterwards = WELL
        """The mode of the proxy after `cut` ended a connection."""
        self.cuts = 0
        self.open = 0
        self._served = 0
        self._muted: set[int] = set()
        self._rewrite = (str(target).encode(), str(self.port).encode()) if same_length else None
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._on_loop(self._listen())

    def _on_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def become(self, mode: str) -> None:
        """Set the failure mode, for open connections too."""
        self._on_loop(self._become(mode))

    async def _become(self, mode: str) -> None:
        self.mode = mode
        if mode == GONE:
            await self._deafen()
            self._drop()
        elif self._server is None:
            await self._listen()
        if mode == WELL:
            # Stalled connections stay stalled: they simulate a server that lost the connection.
            self.cut, self.afterwards = None, WELL

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, reuse_port=True)

    async def _deafen(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _drop(self) -> None:
        for writer in list(self._writers):
            _reset(writer)

    def sever(self) -> None:
        """Reset every open connection, and accept new ones."""
        self._loop.call_soon_threadsafe(self._drop)

    def close(self) -> None:
        """Stop the proxy and its thread."""

        async def end() -> None:
            await self._deafen()
            self._drop()
            served = asyncio.all_tasks() - {asyncio.current_task()}
            for each in served:
                each.cancel()
            await asyncio.gather(*served, return_exceptions=True)

        self._on_loop(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._place.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self._served += 1
        number = self._served
        self._writers.add(writer)
        above: asyncio.StreamWriter | None = None
        try:
            while self.mode == SILENT:
                await asyncio.sleep(0.05)
            answers, above = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(above)
            both = [
                asyncio.ensure_future(self._send(number, reader, above)),
                asyncio.ensure_future(self._answer(number, answers, writer)),
            ]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        except OSError:
            pass
        finally:
            self.open -= 1
            for side in (writer, above):
                if side is not None:
                    self._writers.discard(side)
                    side.close()

    async def _send(self, number: int, reader: asyncio.StreamReader, above: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            while self.mode == SILENT:
                await asyncio.sleep(0.05)
            ending = self.cut(number, data) if self.cut is not None else None
            if ending is not None:
                self.cuts += 1
                if ending == AFTER:
                    self._muted.add(number)
                    above.write(data)
                    await above.drain()
                    await asyncio.sleep(0.3)
                self.cut = None
                if self.afterwards != WELL:
                    await self._become(self.afterwards)
                return
            above.write(data)
            await above.drain()

    async def _answer(self, number: int, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await answers.read(65536):
            if self._rewrite is not None:
                data = data.replace(*self._rewrite)
            mode = self.mode
            if mode in (SILENT, HALF_OPEN) or number in self._muted:
                await asyncio.sleep(3600)
            if mode == RESET:
                writer.write(data[: len(data) // 2])
                with contextlib.suppress(OSError):
                    await writer.drain()
                _reset(writer)
                return
            if mode == DELAYED:
                await asyncio.sleep(self.delay)
            if mode == TRICKLING:
                while data and self.mode == TRICKLING:
                    writer.write(data[:1])
                    data = data[1:]
                    await writer.drain()
                    await asyncio.sleep(0.05)
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST instead of FIN, as a kernel does for a killed process."""
    raw: socket.socket | None = writer.get_extra_info("socket")
    if raw is not None and not writer.is_closing():
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    writer.transport.abort()


@dataclass
class Shaky:
    """A gateway on the stack that reaches every server through a proxy."""

    base: str
    process: psutil.Process
    log: Path
    parts: dict[str, Toxic] = field(default_factory=dict)

    def well(self) -> None:
        """Make all proxies forward everything."""
        for part in self.parts.values():
            part.become(WELL)

    def descriptors(self) -> int:
        """Return the number of open files and connections of all its processes."""
        return sum(values_of(psutil.Process.num_fds, family(self.process)))

    def pids(self) -> set[int]:
        """Return the ids of its processes, to prove that none was restarted."""
        return {each.pid for each in family(self.process)}


@contextmanager
def second_gateway(
    ready: Ready, log: Path, environment: Mapping[str, str] = MappingProxyType({}), /, **settings: str
) -> Iterator[tuple[str, psutil.Process]]:
    """Start another gateway on the same stack with free ports; yield its address and its main process.

    It has one worker process unless `WORKERS` is set: each worker takes seconds to start. Another stack may take a port
    between the choice and the start; then other ports are chosen. `environment` has further variables, as they are.
    """
    for _ in range(_PORT_CHOICES):
        with contextlib.suppress(_PortTaken), _second_gateway(ready, log, settings, environment) as started:
            yield started
            return
    pytest.fail(f"no port was free to start a gateway:\n{log.read_text()[-3000:]}", pytrace=False)


#: Number of attempts to choose free ports for one gateway.
_PORT_CHOICES = 4


class _PortTaken(Exception):
    """Another process listens on the chosen port."""


class _Serving(psutil.Process):
    """The main process of a gateway. The system shows the environment of the process that it was forked from."""

    def __init__(self, pid: int, environment: dict[str, str]) -> None:
        super().__init__(pid)
        self._environment = environment

    def environ(self) -> dict[str, str]:
        return dict(self._environment)


@contextmanager
def _second_gateway(
    ready: Ready, log: Path, settings: dict[str, str], more: Mapping[str, str]
) -> Iterator[tuple[str, psutil.Process]]:
    main = psutil.Process(ready.pids["gateway"][0])
    before = log.stat().st_size if log.exists() else 0
    port, metrics = free_port(), free_port()
    base = f"http://127.0.0.1:{port}"
    changed = {"LISTEN_PORT": str(port), "METRICS__PORT": str(metrics), "BASE_URI": base, "WORKERS": "1", **settings}
    variables = {**{f"LAKEGATE__{name}": value for name, value in changed.items()}, **more}
    usual = main.environ()
    child = start_serving(main.cmdline(), usual, variables, log)
    try:
        deadline = time.monotonic() + 150
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{base}/health", timeout=5, trust_env=False).status_code == 200:
                    break
            if child.poll() is not None and b"Address already in use" in log.read_bytes()[before:]:
                raise _PortTaken
            if child.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the gateway did not start:\n{log.read_text()[-3000:]}", pytrace=False)
            time.sleep(0.1)
        yield base, _Serving(child.pid, {**usual, **variables})
    finally:
        processes: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):  # a fork that ended is no zombie: its server waits for it
            processes = family(psutil.Process(child.pid))
        child.terminate()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(10)
        values_of(psutil.Process.kill, processes)


@contextmanager
def shaky_gateway(ready: Ready, log: Path, **settings: str) -> Iterator[Shaky]:
    """Start a gateway behind proxies. Warehouses whose profile names the proxy's port reach the store through it."""
    with ExitStack() as held:

        def before(url: str, *, same_length: bool = False) -> Toxic:
            toxic = Toxic(urlsplit(url).port or 0, same_length=same_length)
            while same_length and len(str(toxic.port)) != len(str(toxic.target)):
                toxic.close()
                toxic = Toxic(urlsplit(url).port or 0, same_length=same_length)
            held.callback(toxic.close)
            return toxic

        parts = {
            "postgres": before(ready.postgres),
            "openfga": before(ready.openfga.url),
            "opa": before(ready.opa.url),
            "object-store": before(ready.s3.endpoint),
            # The provider's documents contain its own address, which must equal the configured one.
            "identity-provider": before(ready.issuer, same_length=True),
        }
        moved = {
            "PG_DATABASE_URL_WRITE": _by(ready.postgres, parts["postgres"]),
            "OPENFGA__ENDPOINT": _by(ready.openfga.url, parts["openfga"]),
            "OPA__URL": _by(ready.opa.url, parts["opa"]),
            "OPENID_PROVIDER_URI": _by(ready.issuer, parts["identity-provider"]),
            "OPENID_ADDITIONAL_ISSUERS": ready.issuer,
        }
        base, process = held.enter_context(second_gateway(ready, log, **MappingProxyType({**moved, **settings})))
        yield Shaky(base, process, log, parts)


def _by(url: str, toxic: Toxic) -> str:
    return url.replace(f":{toxic.target}", f":{toxic.port}")
