# SPDX-License-Identifier: Apache-2.0
"""Move storage credentials into another secret store while gateways serve: `lakegate secrets move`.

A moved credential gets a new id, as a replaced one does. Requests in flight use the old one, which is deleted ten
minutes later. So the move can be interrupted and repeated at any point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from uuid_utils.compat import uuid7

from gateway.access.door.door import Door
from gateway.access.operations.tasks import MoveSecret
from gateway.db.credentials import secret_moves
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.engine.database import Database
from gateway.features.system_admission import admitted
from gateway.secret_stores.port import SecretUnreadable

_log = structlog.get_logger("tasks.secret_moves")

TASK: Final = "move_secrets"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The numbers of credentials that were moved, and of those that are left in another store than `to`.

    `unreadable` is the number of those among them that their store does not have, or that no key decrypts.
    """

    to: str
    moved: int
    left: int
    unreadable: int

    @property
    def complete(self) -> bool:
        """Return True if no credential is left in another store."""
        return self.left == 0

    def summary(self) -> str:
        """Return one line of text for the operator."""
        lost = f" ({self.unreadable} of them unreadable; the log names them)" if self.unreadable else ""
        return f"{self.moved} credentials moved to {self.to}, {self.left} left in another store{lost}"


class SecretMove:
    """A move of all credentials of warehouses into the current store of `storage`, which has the name `to`."""

    def __init__(self, *, database: Database, door: Door, storage: StorageCredentials, to: str) -> None:
        self._database = database
        self._door = door
        self._storage = storage
        self._to = to

    async def run(self, *, move: bool) -> MoveResult:
        """Count the credentials in other stores, and with `move` move them.

        An unreadable credential is logged and left. Raises the errors of the secret stores, the door's refusals, and
        the errors of outages; what was moved until then stays moved.
        """
        moved = unreadable = 0
        if move:
            async with self._database.read() as connection:
                outside = await secret_moves.outside(connection, self._to)
            for id in outside:
                try:
                    _, plain = await self._storage.content_of(id)
                except SecretUnreadable as lost:
                    _log.warning("secrets.found_unreadable", secret=str(id), reason=str(lost))
                    unreadable += 1
                    continue
                operation = MoveSecret(str(id), self._to)
                async with (
                    admitted(self._door, TASK, str(uuid7()), operation) as permit,
                    self._storage.written_content(plain) as written,
                    self._database.change(permit) as connection,
                ):
                    moved += await secret_moves.replace(connection, id, written)
        # Counted again: a gateway with other settings may have stored a credential meanwhile.
        async with self._database.read() as connection:
            left = len(await secret_moves.outside(connection, self._to))
        return MoveResult(self._to, moved, left, unreadable)
