# SPDX-License-Identifier: Apache-2.0
"""Races for a pointer: start over when somebody was faster, and find out what became of a COMMIT without answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from gateway.access.operation import Operation
from gateway.access.outage import CommitUnknown, DatabaseUnavailable
from gateway.access.permit import Permit
from gateway.db import tables
from gateway.db.engine import Database
from gateway.iceberg.errors import CommitFailedException, CommitStateUnknownException

Answer = TypeVar("Answer")

_ATTEMPTS = 6


class LostRace(Exception):
    """Another commit moved the pointer first; nothing was changed."""


async def until_won(attempt: Callable[[bool], Awaitable[Answer]]) -> Answer:
    """The answer of the first attempt that loses no race; each is told whether it has to read again first.

    Raises CommitFailedException (409) when others are faster again and again.
    """
    for number in range(_ATTEMPTS):
        try:
            return await attempt(number > 0)
        except LostRace:
            # Full jitter: writers that met once do not meet again in step.
            await asyncio.sleep(random.uniform(0, 0.02 * 2**number))  # noqa: S311 - spreads load, protects nothing
    raise CommitFailedException("Commit failed: other commits were faster each time; try again.")


async def learn_outcome(
    database: Database, permit: Permit[Operation], id: UUID, *, from_version: int, written: str, unknown: CommitUnknown
) -> None:
    """Return when the change that moved `id` on from `from_version` to the file `written` happened after all.

    Raises LostRace when it did not, and CommitStateUnknownException when nobody can tell: the database is away, or the
    object went on since and keeps no log of its files.
    """
    try:
        async with database.transaction() as connection:
            await tables.wait_for_writers(connection, id)
            now = await tables.pointer(connection, id)
    except (DatabaseUnavailable, CommitUnknown):
        raise _unknown() from unknown
    if now is not None and (now.metadata_location == written or written.encode() in (now.metadata or b"")):
        permit.trail.settle()
        return
    if now is None or now.version > from_version:
        raise _unknown() from unknown
    raise LostRace from unknown


def _unknown() -> CommitStateUnknownException:
    return CommitStateUnknownException("The database went away during the commit; its outcome is unknown.")
