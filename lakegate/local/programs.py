# SPDX-License-Identifier: Apache-2.0
"""Run external programs during an installation: their output is shown, and the last lines explain a failure."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from lakegate.local.errors import StackError

_OUTPUT_LINES = 12
_VERSION_SECONDS = 30

Notify = Callable[[str], None]


def run(argv: Sequence[str], environment: dict[str, str], notify: Notify, hint: str) -> None:
    """Run a program and pass each output line to ``notify``.

    Raises:
        StackError: the program failed. The message contains its last lines and ``hint``, the remedy.
    """
    output: list[str] = []
    try:
        with subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                output = [*output[1 - _OUTPUT_LINES :], line.rstrip()]
                notify(line.strip())
            code = process.wait()
    except OSError as error:
        raise StackError(f"{argv[0]} cannot be run: {error}\n{hint}") from error
    if code != 0:
        raise StackError("\n".join([f"{Path(argv[0]).name} failed with exit code {code}:", *output, hint]))


def output_of(argv: Sequence[str], environment: dict[str, str]) -> str:
    """Return what a program prints on both outputs, empty if it cannot be run or takes too long."""
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
