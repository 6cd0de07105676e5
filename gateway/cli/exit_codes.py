# SPDX-License-Identifier: Apache-2.0
"""The exit codes of the command line, and the errors that end a command with one of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import click


class ExitCode(IntEnum):
    """An exit code, with its meaning for docs/command-line.md. The codes of `lakegate apply` differ."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Create a code with its meaning."""
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    DONE = 0, "The command is done. The answer of `can` is yes."
    FAILED = 1, "The command failed. The message has the reason."
    USAGE = 2, "A command, option or argument is unknown or missing."
    DIFFERS = 3, "A check found something: the answer of `can` is no, or work remains."
    NOT_SIGNED_IN = 4, "There is no login, or the gateway does not accept the token. Use `lakegate login`."
    REFUSED = 5, "The user lacks a right."
    NOT_FOUND = 6, "The object does not exist, or the user may not see it."
    NO_ANSWER = 7, "Nothing answers at the address, or something that is not a gateway."
    INTERRUPTED = 130, "Ctrl-C ended the command."


_OF_STATUS: Final[Mapping[int, ExitCode]] = {
    0: ExitCode.NO_ANSWER,
    401: ExitCode.NOT_SIGNED_IN,
    403: ExitCode.REFUSED,
    404: ExitCode.NOT_FOUND,
}


def code_of_status(status: int) -> ExitCode:
    """Return the exit code for the status of an error response. `status` is 0 if there was no response."""
    return _OF_STATUS.get(status, ExitCode.FAILED)


class Failure(click.ClickException):
    """An error that ends the command with its message and an exit code."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        # The class declares the code, and here it is one of the error.
        vars(self)["exit_code"] = code
