# SPDX-License-Identifier: Apache-2.0
"""Data policies that a decision reads, as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.access.dependency_errors import DatabaseUnavailable


class Rows:
    """A database that keeps what is written, and fails while `down`."""

    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []
        self.down = False

    async def execute_repeatable(self, statement: object, parameters: Mapping[str, Any]) -> list[Any]:
        if self.down:
            raise DatabaseUnavailable("down")
        self.written.append(parameters)
        return []
