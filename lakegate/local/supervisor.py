# SPDX-License-Identifier: Apache-2.0
"""The supervisor process: it owns every child of the embedded stack, and stops them when its parent ends.

It is started as ``python -m lakegate.local.supervisor [PATH...]`` with a pipe as standard input. Each line of input
is one order and each line of output one event, both as JSON (fields: :class:`Supervisor`). The input ends when the
parent has ended for any reason: a clean exit, a signal, SIGKILL. Then, and on SIGTERM, the supervisor stops every child
gracefully and kills the remaining processes. At last it removes the files and directories named on its command line.

Only the standard library and a module that needs no more are imported, so the process starts within 0.1 seconds. It has
one thread, because code between fork and exec is safe only in a process with one thread.
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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.worker_processes import die_with_parent

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


class Supervisor:
    """Starts, watches and stops children.

    Orders: ``{"op": "spawn", "id", "name", "argv", "env", "cwd", "log", "uid", "gid", "input", "stop-signal", "grace",
    "order"}`` and ``{"op": "stop-all"}``. Events: ``{"event": "spawned", "id", "pid"}``, ``{"event": "refused", "id",
    "error"}``, ``{"event": "exited", "pid", "code"}`` and, last, ``{"event": "stopped"}``.

    ``order``: children with the highest order are stopped first, those with the same order together. ``grace``: seconds
    from the stop signal to SIGKILL.
    """

    def __init__(self, orders: int, events: int, remove: Sequence[str] = ()) -> None:
        self._orders = orders
        self._events = events
        self._remove = tuple(remove)
        self._children: dict[int, _Child] = {}
        self._stopping = False
        self._pending = b""

    def run(self) -> None:
        """Execute orders until the input ends, or an order or a signal requests the stop. Return when no child is
        left.
        """
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_stop_signal)
        # Only the parent reacts to these signals. The handlers do nothing; SIG_IGN would be inherited by children.
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
        self._send_event({"event": "stopped"})

    def _on_stop_signal(self, *_: object) -> None:
        self._stopping = True

    def _send_event(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the parent may have ended: stopping continues
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
                process = subprocess.Popen(  # no `with`: the child runs on after this call
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
            self._send_event({"event": "refused", "id": order["id"], "error": str(error)})
            return
        self._children[process.pid] = _Child(
            order["name"], process, stop_signal, float(order["grace"]), int(order["order"])
        )
        self._send_event({"event": "spawned", "id": order["id"], "pid": process.pid})
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
            if child is not None:  # otherwise the pid is of a grandchild, which this process adopted as subreaper
                code = os.waitstatus_to_exitcode(status)
                child.process.returncode = code
                self._send_event({"event": "exited", "pid": pid, "code": code})

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
            # A child that SIGSTOP has stopped handles the signal only after SIGCONT.
            _send(child.process.pid, signal.SIGCONT)
        while remaining := alive():
            for child in remaining:
                if time.monotonic() - started > child.grace:
                    _send_group(child.process.pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)

    def _kill_leftovers(self, groups: list[int]) -> None:
        for group in groups:
            _send_group(group, signal.SIGKILL)
        # The children of a killed orphan become children of this process, so each round kills one generation.
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
    """Return the pids of the live children of this process, including adopted ones. Source: ``/proc``."""
    own = os.getpid()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as stat:
                # The second field, the command in parentheses, can contain spaces and parentheses; later fields cannot.
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == own and fields[0] != "Z":
            found.append(int(entry))
    return found


if __name__ == "__main__":
    Supervisor(orders=0, events=1, remove=sys.argv[1:]).run()
