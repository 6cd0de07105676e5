# SPDX-License-Identifier: Apache-2.0
"""Errors of the embedded stack. Each message names the fault and the remedy, and contains no secret."""

from __future__ import annotations

from pathlib import Path

_LINES = 8


class StackError(Exception):
    """The embedded stack cannot start or continue. The message is for the user at the terminal."""


class ToolMissing(StackError):
    """A program, a JDK or an archive that the stack needs is missing. The message tells how to install it."""


class ChildFailed(StackError):
    """A child process failed.

    ``log``: its log file. ``output``: the end of its output, part of the message. ``port_taken``: a start with other
    ports may succeed.
    """

    def __init__(self, name: str, reason: str, log: Path, *, output: str = "", port_taken: bool = False) -> None:
        lines = "".join(f"\n  | {line}" for line in output.splitlines()[-_LINES:])
        super().__init__(f"{name} {reason}; its log is {log}{lines}")
        self.name = name
        self.log = log
        self.port_taken = port_taken
