# SPDX-License-Identifier: Apache-2.0
"""Send orders to the supervisor process and receive its events. Wait until a child serves requests or has failed.

A response counts only if the child itself holds the port. Otherwise a program that took the port first would receive
the tokens of the stack.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import httpx2

from lakegate.local.errors import ChildFailed, StackError
from lakegate.local.pg_ready import accepts_connections
from lakegate.local.ports import LOOPBACK, without_tls

_TAIL_BYTES = 4096
_ADDRESS_IN_USE = ("address already in use", "address in use", "port is already", "errno 98", "errno 48")


#: Environment of OpenFGA and OPA. Their heaps are small, so by default Go's garbage collector would run often
#: (docs/performance.md).
GO_RUNTIME: Mapping[str, str] = MappingProxyType({"GOGC": "400"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """One process to start.

    ``env`` is the whole environment of the child: it inherits no variable, and secrets are passed in it.
    ``uid``/``gid``: run as these ids (needs root). ``text`` is written to its standard input. ``order``: the highest is
    stopped first. ``grace``: seconds from the stop signal to SIGKILL.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    uid: int | None = None
    gid: int | None = None
    text: str | None = field(default=None, repr=False)
    stop_signal: int = signal.SIGTERM
    grace: float = 5.0
    order: int = 1


@dataclass(frozen=True, slots=True)
class Child:
    """A started process: its name, pid, log, and a future with its exit code (negative: the number of the signal).

    ``log_start``: offset in bytes at which the output of this process begins in the log.
    """

    name: str
    pid: int
    log: Path
    exited: asyncio.Future[int]
    log_start: int = 0


class Children:
    """The children of one stack. As an async context manager it stops all of them at the end of its block.

    ``logs``: the directory of the log files, one per name. ``keep_open``: file descriptors that the supervisor holds
    while a child lives (the lock of the data directory). ``remove``: files and directories that it removes at the end.
    """

    def __init__(self, logs: Path, *, keep_open: Sequence[int] = (), remove: Sequence[Path] = ()) -> None:
        self._logs = logs
        self._remove = tuple(map(str, remove))
        self._keep_open = tuple(keep_open)
        self._ids = itertools.count(1)
        self._pending_replies: dict[int, asyncio.Future[int]] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        # The child gets its own session: Ctrl-C in the terminal signals only the parent, which then closes the pipe.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lakegate.local.supervisor",
            *self._remove,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self._keep_open,
            start_new_session=True,
            cwd="/",
            env={"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self._listener = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every child. Return when all have ended. A second call does nothing."""
        if self._process is None or self._listener is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.shield(self._process.wait())
        await self._listener

    @property
    def supervisor_pid(self) -> int:
        """Return the process id of the supervisor."""
        if self._process is None:
            raise StackError("the supervisor was not started")
        return self._process.pid

    async def start(self, spec: ChildSpec) -> Child:
        """Start one child.

        Raises:
            ChildFailed: the program could not be executed (missing file, no permission).
            StackError: the supervisor was not started.
        """
        if self._process is None or self._process.stdin is None:
            raise StackError("the supervisor was not started")
        number = next(self._ids)
        reply: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pending_replies[number] = reply
        log = self._logs / f"{spec.name}.log"
        log_start = log.stat().st_size if log.exists() else 0
        order = {
            "op": "spawn",
            "id": number,
            "name": spec.name,
            "argv": list(spec.argv),
            "env": dict(spec.env),
            "cwd": str(spec.cwd) if spec.cwd else None,
            "log": str(log),
            "uid": spec.uid,
            "gid": spec.gid,
            "input": spec.text,
            "stop-signal": int(spec.stop_signal),
            "grace": spec.grace,
            "order": spec.order,
        }
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            await self._process.stdin.drain()
            pid = await reply
        except OSError as error:
            raise ChildFailed(spec.name, f"cannot be started: {error}", log) from error
        return Child(spec.name, pid, log, self._exits[pid], log_start)

    async def run(self, spec: ChildSpec, *, timeout: float) -> None:
        """Run one child, and return when it has ended.

        Raises:
            ChildFailed: the child ended with another code than 0, or not within ``timeout`` seconds.
        """
        child = await self.start(spec)
        try:
            code = await asyncio.wait_for(asyncio.shield(child.exited), timeout)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            raise ChildFailed(spec.name, f"did not finish within {timeout:.0f} seconds", child.log) from None
        if code != 0:
            raise failure_of(child, code)

    async def _listen(self) -> None:
        if self._process is None or self._process.stdout is None:
            return
        while line := await self._process.stdout.readline():
            self._on_event(json.loads(line))
        gone = ConnectionError("the supervisor process of the embedded stack has ended unexpectedly")
        for future in (*self._pending_replies.values(), *self._exits.values()):
            if not future.done():
                future.set_exception(gone)
                future.exception()  # marks the error as retrieved, or asyncio would log it

    def _on_event(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "spawned":
                self._exits[event["pid"]] = asyncio.get_running_loop().create_future()
                _settle(self._pending_replies.pop(event["id"]), event["pid"])
            case "refused":
                reply = self._pending_replies.pop(event["id"])
                if not reply.done():
                    reply.set_exception(OSError(event["error"]))
            case "exited":
                _settle(self._exits[event["pid"]], event["code"])


def _settle(future: asyncio.Future[int], value: int) -> None:
    if not future.done():
        future.set_result(value)


def log_tail(log: Path, start: int = 0) -> str:
    """Return the end of a log as text, not before offset ``start``. Return an empty text if the file cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


def failure_of(child: Child, code: int) -> ChildFailed:
    """Return the error for a child that ended. ``port_taken`` is True if its log reports a port in use."""
    tail = log_tail(child.log, child.log_start)
    reason = f"ended with exit code {code}" if code >= 0 else f"was stopped by signal {-code}"
    taken = any(phrase in tail.lower() for phrase in _ADDRESS_IN_USE)
    return ChildFailed(child.name, reason, child.log, output=tail, port_taken=taken)


_PAUSE_SECONDS = 0.03
_ONE_TRY_SECONDS = 2.0


async def until(child: Child, port: int, serves: Callable[[], Awaitable[bool]], *, timeout: float) -> None:
    """Wait until ``serves()`` is true and the child, or a descendant of it, listens on the loopback ``port``.

    Raises:
        ChildFailed: the child ended, or ``timeout`` seconds passed.
    """
    try:
        async with asyncio.timeout(timeout):
            while not child.exited.done():
                if await serves() and _holds(child.pid, port):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise ChildFailed(
            child.name,
            f"did not respond within {timeout:.0f} seconds",
            child.log,
            output=log_tail(child.log, child.log_start),
        ) from None
    raise failure_of(child, child.exited.result())


def _holds(pid: int, port: int) -> bool:
    # Imported here because psutil is part of the extra `embedded`. Commands that start no child, such as `lakegate
    # policy check`, work without that extra.
    import psutil

    try:
        process = psutil.Process(pid)
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for member in (process, *process.children(recursive=True))
            for connection in member.net_connections("tcp")
        )
    except psutil.Error:  # the process has ended
        return False


async def until_postgres(child: Child, port: int, *, timeout: float) -> None:
    """Wait until a PostgreSQL server accepts connections on the loopback ``port``. Raises the errors of
    :func:`until`.
    """
    await until(child, port, lambda: accepts_connections(LOOPBACK, port, timeout=_ONE_TRY_SECONDS), timeout=timeout)


async def until_answering(child: Child, port: int, path: str, *, timeout: float, token: str | None = None) -> None:
    """Wait until a GET of ``path`` on the loopback ``port`` returns 200. Raises the errors of :func:`until`.

    ``token``: the bearer token to send. It is sent only after the child is known to hold the port.
    """
    address = f"http://{LOOPBACK}:{port}{path}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(
        timeout=_ONE_TRY_SECONDS, trust_env=False, verify=without_tls(), headers=headers
    ) as client:

        async def serves() -> bool:
            if token is not None and not _holds(child.pid, port):
                return False
            try:
                return (await client.get(address)).status_code == httpx2.codes.OK
            except httpx2.TransportError:
                return False

        await until(child, port, serves, timeout=timeout)
