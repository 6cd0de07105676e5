# SPDX-License-Identifier: Apache-2.0
"""Run the programs of `pylakekeeper_programs.py` with Lakekeeper's Python client, in an environment of its own.

The client needs packages that Lakegate does not need. They are pinned with hashes in `tests/locks/pylakekeeper.lock`,
and the environment is made once for each version of that file.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "tests" / "locks" / "pylakekeeper.lock"
PROGRAMS = Path(__file__).with_name("pylakekeeper_programs.py")

_INSTALL_SECONDS = 900
_PROGRAM_SECONDS = 120


class ProgramFailed(Exception):
    """A program raised an error: its class, its HTTP status (0 without one) and its text."""

    def __init__(self, kind: str, status: int, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.status = status


def environment() -> Path:
    """Return the interpreter of the environment. Create the environment if the lock file is new."""
    directory = ROOT / ".lakegate" / "pylakekeeper"
    directory.parent.mkdir(exist_ok=True)
    python, complete = directory / "bin" / "python", directory / LOCK.name
    # Two test processes must not create it at the same time.
    with (directory.parent / "pylakekeeper.creation").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not complete.is_file() or complete.read_bytes() != LOCK.read_bytes():
            shutil.rmtree(directory, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(directory)])
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            _run([*pip, "--require-hashes", "-r", str(LOCK)])
            complete.write_bytes(LOCK.read_bytes())
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def run_program(python: Path, name: str, **given: Any) -> Any:
    """Run one function of the programs with JSON arguments; return its JSON result. Raises ProgramFailed.

    The arguments contain secrets, so they go through standard input.
    """
    done = subprocess.run(
        [str(python), str(PROGRAMS), name],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROGRAM_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise ProgramFailed(answer["error"], answer["status"], answer["text"])
    return answer["result"]
