# SPDX-License-Identifier: Apache-2.0
"""Start embedded stacks to measure: of this checkout or of another one, each with settings of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakegate.local import ready
from lakegate.local.ready import Ready

OURS = Path(__file__).parents[2]
_LAUNCH = Path(__file__).with_name("launch.py")
GROUPS = {"gateway": "gateway", "OPA": "opa", "OpenFGA": "openfga", "PostgreSQL": "postgres", "store": "object-store"}
_START_SECONDS = 180.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    """A running stack and the directory of its data."""

    ready: Ready
    data: Path


@contextmanager
def stack(
    checkout: Path = OURS, settings: Mapping[str, str] | None = None, *, python: str = sys.executable
) -> Iterator[Running]:
    """Context manager. Run the stack of a checkout with an interpreter, by default this one.

    `settings`: variables `LAKEGATE__…` of its gateway. The stack gets no such variable of this process, except those
    with the paths of programs.

    Raises:
        SystemExit: the stack did not start; the message contains the end of its output.
    """
    if not (checkout / "gateway").is_dir():
        raise SystemExit(f"{checkout} is no checkout of Lakegate: it has no directory gateway")
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-", ignore_cleanup_errors=True) as scratch:
        ready_file, data, output = (Path(scratch) / name for name in ("ready.json", "data", "output.log"))
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("LAKEGATE__") or name.startswith("LAKEGATE__EMBEDDED__")
        }
        variables = [f"{name}={value}" for name, value in (settings or {}).items()]
        with output.open("wb") as log:
            # -P: else the directory of launch.py is searched first, and its modules hide others of the same name.
            process = subprocess.Popen(
                [python, "-P", str(_LAUNCH), str(ready_file), str(data), *variables],
                env=inherited | {"PYTHONPATH": str(checkout.resolve())},
                cwd=scratch,
                stdout=log,
                stderr=log,
            )
        try:
            _await_ready(process, ready_file, output)
            yield Running(ready.read(ready_file), data)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_SECONDS)


def _await_ready(process: subprocess.Popen[bytes], ready_file: Path, output: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            end = "\n".join(output.read_text(errors="replace").splitlines()[-20:])
            raise SystemExit(f"the stack did not start:\n{end}")
        time.sleep(0.1)


def groups_of(stack: Ready) -> dict[str, list[int]]:
    """Return the process ids of each component that serves requests, by the name in the tables."""
    return {shown: stack.pids[name] for shown, name in GROUPS.items()}
