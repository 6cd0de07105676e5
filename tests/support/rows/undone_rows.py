# SPDX-License-Identifier: Apache-2.0
"""A database with the rows of `parts.Rows`, in which each example of a property test runs and is rolled back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine.database import Database
from tests.support.rows.parts import Parts, Rows
from tests.support.stack.world import Loop


class Undone(Exception):
    """Rolls back the rows of an example, or of a refused change."""


@dataclass(frozen=True)
class Base:
    """A database with a warehouse, and the loop of its connections."""

    database: Database
    rows: Rows
    loop: Loop

    def undo(self, example: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Run an example in a transaction, and roll it back."""

        async def run() -> None:
            with suppress(Undone):
                async with self.database.transaction() as connection:
                    await example(connection)
                    raise Undone

        self.loop.run(run())


@pytest.fixture(scope="module")
def base(parts: Parts) -> Iterator[Base]:
    """Insert the rows into the database of the module."""
    made = Base(Database(parts.database_url, pool_size=1, acquire_timeout=30), Rows(), Loop())

    async def insert() -> None:
        async with made.database.transaction() as connection:
            await made.rows.insert(connection)

    made.loop.run(insert())
    yield made
    made.loop.run(made.database.close())
    made.loop.close()
