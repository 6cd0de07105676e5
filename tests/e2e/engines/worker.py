# SPDX-License-Identifier: Apache-2.0
"""A worker process of an engine: it runs statements in the environment of the engine and answers by JSON lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gateway.settings import java_home, search_path
from lakegate.local import jdk
from tests.support.engines.engine_results import ROOT

_END_SECONDS = 30.0


class Refused(Exception):
    """A statement failed in the engine; the message is that of the engine."""


class Worker:
    """One process that runs statements one after the other."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def send(self, message: Mapping[str, Any]) -> list[list[Any]]:
        """Send one JSON line and return the rows of its answer; raises `Refused`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                answer = json.loads(line)
                if "error" in answer:
                    raise Refused(f"{answer['error']}: {answer['message']}")
                rows: list[list[Any]] = answer["rows"]
                return rows
        raise AssertionError(f"the worker ended:\n{self._log.read_text(errors='replace')[-3000:]}")


def java_environment(home: Path) -> dict[str, str]:
    """Return the environment of a process that starts Java. It inherits no variable of this process."""
    java = jdk.find(java_home(), search_path())
    return {
        "JAVA_HOME": str(java),
        "PATH": f"{java / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "LC_ALL": "C.UTF-8",
        "HOME": str(home),
    }


@contextmanager
def running(python: Path, module: str, home: Path, environment: Mapping[str, str]) -> Iterator[Worker]:
    """Run `python -m module` until the end of the block, with its log and scratch files in `home`."""
    log = home / "worker.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [str(python), "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            cwd=home,
            text=True,
        ) as process,
    ):
        try:
            yield Worker(process, log)
        finally:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
