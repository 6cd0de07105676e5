# SPDX-License-Identifier: Apache-2.0
"""Run `lakegate` in separate processes without repeating the imports, which cost seconds of CPU each time.

A fork server imports the command line, the application and their dependencies once for each process of pytest. Each
command runs in a fork of it, with its own environment, working directory, output and exit code. Use a plain
`subprocess` for start-up behaviour, and for variables that the interpreter reads when it starts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from prometheus_client import values

from gateway.worker_processes import die_with_parent

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "gateway.cli",
        "gateway.app",
        "gateway.assembly",
        "gateway.features.tuples.reconcile",
        "gateway.features.server.model_changes",
        "gateway.db.migrate",
        "gateway.db.engine.database",
        "gateway.fga.model",
        "gateway.serving",
        "gateway.settings",
    ]
)


class Started(Protocol):
    """A process that was started: the part of `subprocess.Popen` that a fork has too."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended. Raise subprocess.TimeoutExpired if it did not end in time."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


class _Fork:
    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], directory: str, *logs: str) -> None:
        self._arguments = tuple(arguments)
        self._process = _CONTEXT.Process(target=_verb, args=(self._arguments, dict(environment), directory, *logs))
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["lakegate", *self._arguments], timeout or 0)
        return code

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def start_serving(command: Sequence[str], usual: Mapping[str, str], changed: Mapping[str, str], log: Path) -> Started:
    """Start a gateway that ends with this process. Its output is appended to `log`.

    `usual` is the environment of the stack's gateway, and `changed` the variables to change. The gateway is a fork if
    `command` is `lakegate serve`, and only settings are changed.
    """
    environment = {**usual, **changed}
    settings_only = all(name.startswith("LAKEGATE__") for name in changed)
    if settings_only and tuple(command[1:]) == ("-m", "gateway.cli", "serve"):
        log.touch()
        return _Fork(("serve",), environment, os.sep, str(log), str(log))
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=environment,
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )


def run_lakegate(
    *arguments: str, environment: Mapping[str, str], directory: str = os.sep, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line to its end.

    `environment` is its whole environment, `timeout` is in seconds. Raise subprocess.TimeoutExpired if the command did
    not end in time; it was killed.
    """
    with tempfile.TemporaryDirectory(prefix="lakegate-verb-") as scratch:
        out, err = Path(scratch) / "out", Path(scratch) / "err"
        fork = _Fork(arguments, environment, directory, str(out), str(err))
        try:
            code = fork.wait(timeout)
        except subprocess.TimeoutExpired:
            fork.kill()
            fork.wait()
            raise
        return subprocess.CompletedProcess(["lakegate", *arguments], code, out.read_text(), err.read_text())


def _verb(arguments: tuple[str, ...], environment: dict[str, str], directory: str, out: str, err: str) -> None:
    """Set up the process as a fresh one, and call the entry point of the command line."""
    die_with_parent(signal.SIGTERM)()
    multiprocessing.set_start_method(None, force=True)  # the default, as in a fresh process
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    for descriptor, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["lakegate", *arguments]
    if arguments == ("serve",):
        # The library reads the variable of this mode when it is imported, which was before `serve` set it.
        values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]  # the library has no types
    code = 1
    try:
        from gateway.cli import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
