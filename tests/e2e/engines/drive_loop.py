# SPDX-License-Identifier: Apache-2.0
"""Serve one engine to a test: read a command a line from standard input, write a result a line to standard output.

This file and the `drive_*.py` files run in the environment of the engine and import only it and the standard library.
A driver defines `Lake`: its constructor connects as the user of `TOKEN`, and each command is a method.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from typing import Any, Protocol


class Engine(Protocol):
    """The commands of a driver. `table` is a name in the namespace of the test, or below it."""

    def namespaces(self) -> list[str]:
        """Return the names of the namespaces that the engine lists."""

    def create(self, namespace: str, table: str) -> None:
        """Create a table with the columns id (64-bit integer) and word (text)."""

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        """Append rows to the table."""

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        """Return all rows of the table, sorted by id."""


def serve(engine: type[Engine], *packages: str) -> None:
    """Serve the engine until the end of standard input. `packages` are those whose versions the result names."""
    # Engines print to standard output, which belongs to the protocol.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    lake: Engine | None = None
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer: dict[str, Any]
        try:
            if command == "versions":
                answer = {"result": {package: version(package) for package in packages}}
            else:
                lake = lake or engine()
                answer = {"result": getattr(lake, command)(*arguments)}
        except BaseException as error:  # the test reports every error of an engine, also a panic of a native library
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
