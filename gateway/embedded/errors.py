# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with the embedded stack. Each message says what failed and how to mend it, and shows no secret."""

from __future__ import annotations

from pathlib import Path

_LINES = 8


class StackError(Exception):
    """The embedded stack cannot start or go on; the message is for the person at the terminal."""


class ToolMissing(StackError):
    """A program, a JDK or an archive that the stack needs is not there; the message says how to get it."""


class ChildFailed(StackError):
    """A child process failed.

    ``log`` is where it wrote, ``said`` the end of that, ``port_taken`` tells that a start on new ports may succeed.
    """

    def __init__(self, name: str, how: str, log: Path, *, said: str = "", port_taken: bool = False) -> None:
        lines = "".join(f"\n  | {line}" for line in said.splitlines()[-_LINES:])
        super().__init__(f"{name} {how}; its log is {log}{lines}")
        self.name = name
        self.log = log
        self.port_taken = port_taken
