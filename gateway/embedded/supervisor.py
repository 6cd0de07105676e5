# SPDX-License-Identifier: Apache-2.0
"""The process that owns every child of the embedded stack and outlives nobody.

It is started as ``python -m gateway.embedded.supervisor [PATH...]`` with a pipe as standard input. Each line that
arrives is one JSON order, each line it writes one JSON event (shapes: :class:`Supervisor`). The end of the input means
that the parent is gone, by whatever cause: a clean exit, a signal, SIGKILL. Then, as on SIGTERM, every child is
stopped, gracefully first, whatever is left after that is killed, and the files and directories named on its command
line are removed.

Only the standard library is imported, so the process is up in a few hundredths of a second. It has one thread, which
makes running code between fork and exec safe.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Child:
    name: str
    process: subprocess.Popen[bytes]
    stop_signal: int
    grace: float
    order: int


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(stop_signal: int) -> Callable[[], None]:
    """Return what a child runs before exec, so that it hears of this process being killed outright.

    Only Linux can do that; elsewhere the returned function does nothing.
    """
    if not _LINUX:
        return lambda: None
    libc = ctypes.CDLL(None, use_errno=True)  # loaded before fork: no import may happen after it

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, stop_signal, 0, 0, 0)

    return before_exec


class Supervisor:
    """Starts, watches and stops children.

    Orders: ``{"op": "spawn", "id", "name", "argv", "env", "cwd", "log", "uid", "gid", "input", "stop-signal", "grace",
    "order"}`` and ``{"op": "stop-all"}``. Events: ``{"event": "spawned", "id", "pid"}``, ``{"event": "refused", "id",
    "error"}``, ``{"event": "exited", "pid", "code"}`` and, last, ``{"event": "stopped"}``.

    ``order`` says when a child is stopped: the highest first, all of one order together. ``grace`` is the time in
    seconds it gets before SIGKILL.
    """

    def __init__(self, orders: int, events: int, remove: Sequence[str] = ()) -> None:
        self._orders = orders
        self._events = events
        self._remove = tuple(remove)
        self._children: dict[int, _Child] = {}
        self._stopping = False
        self._pending = b""

    def run(self) -> None:
        """Serve until the input ends, an order or a signal says stop; returns when no child is left."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_stop_signal)
        # The parent alone decides what these mean. Handlers instead of SIG_IGN, which children would inherit.
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, lambda *_: None)
        if _LINUX:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        with selectors.DefaultSelector() as selector:
            selector.register(self._orders, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            while not self._stopping:
                ready = {key.fd for key, _ in selector.select()}
                if wake_read in ready:
                    os.read(wake_read, 4096)
                    self._reap()
                if self._orders in ready:
                    self._read_orders()
        self._stop_everything()
        for path in self._remove:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        self._tell({"event": "stopped"})

    def _on_stop_signal(self, *_: object) -> None:
        self._stopping = True

    def _tell(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: stopping goes on all the same
            os.write(self._events, json.dumps(event).encode() + b"\n")

    def _read_orders(self) -> None:
        data = os.read(self._orders, 1 << 16)
        if not data:
            self._stopping = True
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["op"] == "stop-all":
                self._stopping = True
            else:
                self._spawn(order)

    def _spawn(self, order: dict[str, Any]) -> None:
        stop_signal = int(order["stop-signal"])
        unprivileged: dict[str, Any] = {}
        if order["uid"] is not None:
            unprivileged = {"user": order["uid"], "group": order["gid"], "extra_groups": []}
        try:
            with open(order["log"], "ab") as log:
                os.fchmod(log.fileno(), 0o600)
                process = subprocess.Popen(  # the child outlives this call on purpose
                    order["argv"],
                    env=order["env"],
                    cwd=order["cwd"],
                    stdin=subprocess.PIPE if order["input"] is not None else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    umask=0o077,
                    preexec_fn=die_with_parent(stop_signal),
                    **unprivileged,
                )
        except (OSError, subprocess.SubprocessError) as error:
            self._tell({"event": "refused", "id": order["id"], "error": str(error)})
            return
        self._children[process.pid] = _Child(
            order["name"], process, stop_signal, float(order["grace"]), int(order["order"])
        )
        self._tell({"event": "spawned", "id": order["id"], "pid": process.pid})
        if process.stdin is not None:
            with contextlib.suppress(OSError), process.stdin as stdin:
                stdin.write(order["input"].encode())

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:  # others are grandchildren that were handed to this process as sub-reaper
                code = os.waitstatus_to_exitcode(status)
                child.process.returncode = code
                self._tell({"event": "exited", "pid": pid, "code": code})

    def _stop_everything(self) -> None:
        groups = [child.process.pid for child in self._children.values()]
        for order in sorted({child.order for child in self._children.values()}, reverse=True):
            self._stop_order(order)
        self._kill_leftovers(groups)

    def _stop_order(self, order: int) -> None:
        def alive() -> list[_Child]:
            self._reap()
            return [child for child in self._children.values() if child.order == order]

        started = time.monotonic()
        for child in alive():
            _send(child.process.pid, child.stop_signal)
            # A stopped (SIGSTOP) child hears nothing until it goes on.
            _send(child.process.pid, signal.SIGCONT)
        while remaining := alive():
            for child in remaining:
                if time.monotonic() - started > child.grace:
                    _send_group(child.process.pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _kill_leftovers(self, groups: list[int]) -> None:
        for group in groups:
            _send_group(group, signal.SIGKILL)
        # Orphans of orphans appear here one generation at a time; each round kills the present one.
        while _LINUX and (orphans := _own_children()):
            for pid in orphans:
                _send(pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
            self._reap()


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _send_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _own_children() -> list[int]:
    """The live children of this process by the kernel's list, those adopted from dead children included."""
    own = os.getpid()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                # The second field, the command, may hold anything; the fields after its last parenthesis do not.
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == own and fields[0] != "Z":
            found.append(int(entry))
    return found


if __name__ == "__main__":
    Supervisor(orders=0, events=1, remove=sys.argv[1:]).run()
