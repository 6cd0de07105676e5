# SPDX-License-Identifier: Apache-2.0
"""Sealing stored credentials with another key while gateways serve: `lakegate secrets rotate`.

Every gateway must know both keys before the first row changes (docs/operator.md, "The encryption key"). Then it does
not matter which of them a row is sealed with, so this may be cut short anywhere and begun anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.operations.tasks import ChangeEncryptionKey
from gateway.db import secrets
from gateway.db.engine import Database
from gateway.db.secrets import Sealer
from gateway.tasks.system_admission import admitted

_log = structlog.get_logger("tasks.keys")

TASK: Final = "change_encryption_key"
BATCH: Final = 100
_SHOWN: Final = 5


class NotAllReadable(Exception):
    """Some stored credentials can be opened with none of the keys; nothing was changed."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Number of stored credentials, of those sealed anew, and of those that are not sealed with the first key in the
    present form.
    """

    stored: int
    sealed: int
    left: int

    @property
    def complete(self) -> bool:
        """Return True if everything is sealed with the first key in the present form."""
        return self.left == 0

    def summary(self) -> str:
        """One line for people."""
        return f"{self.stored} stored credentials: {self.sealed} sealed anew, {self.left} need the other key still"


class SealAnew:
    """One run. `sealer` seals with the first key and opens with each."""

    def __init__(self, *, database: Database, door: Door, sealer: Sealer, batch: int = BATCH) -> None:
        self._database = database
        self._door = door
        self._sealer = sealer
        self._batch = batch

    async def run(self, *, seal: bool) -> KeyChange:
        """Look at all credentials; with `seal`, then seal anew those that need it.

        Raises NotAllReadable before anything is changed, the door's refusals and the outages.
        """
        stored, left = await self._look()
        if not seal or not left:
            return KeyChange(stored, 0, left)
        sealed = await self._seal()
        # Looked at once more: a gateway that seals with the other key may have stored something meanwhile.
        stored, left = await self._look()
        return KeyChange(stored, sealed, left)

    async def _look(self) -> tuple[int, int]:
        stored, left, unreadable = 0, 0, list[UUID]()
        async for rows in self._pages():
            stored += len(rows)
            for id, sealed in rows:
                if await asyncio.to_thread(self._sealer.sealed_with_first, sealed):
                    continue
                left += 1
                if not await asyncio.to_thread(self._sealer.opens, sealed):
                    unreadable.append(id)
        if unreadable:
            shown = ", ".join(map(str, unreadable[:_SHOWN])) + (", …" if len(unreadable) > _SHOWN else "")
            raise NotAllReadable(
                f"{len(unreadable)} of {stored} stored credentials ({shown}) can be opened neither with "
                "PG_ENCRYPTION_KEY nor with PG_ENCRYPTION_KEY_OTHER. Nothing was changed. Give the key they were "
                "sealed with as PG_ENCRYPTION_KEY_OTHER."
            )
        return stored, left

    async def _seal(self) -> int:
        run, done = uuid7(), 0
        async for rows in self._pages():
            wanting = [(id, sealed) for id, sealed in rows if not self._sealer.sealed_with_first(sealed)]
            if not wanting:
                continue
            operation = ChangeEncryptionKey(tuple(str(id) for id, _ in wanting))
            async with (
                admitted(self._door, TASK, str(run), operation) as permit,
                self._database.change(permit) as connection,
            ):
                for id, sealed in wanting:
                    fresh = self._sealer.seal(self._sealer.open(sealed))
                    done += await secrets.seal_anew(connection, id, before=sealed, sealed=fresh)
            _log.info("secrets.sealed_anew", secrets=done)
        return done

    async def _pages(self) -> AsyncIterator[Sequence[tuple[UUID, bytes]]]:
        after: UUID | None = None
        while True:
            async with self._database.read() as connection:
                rows = await secrets.sealed_after(connection, after, limit=self._batch)
            if not rows:
                return
            yield rows
            after = rows[-1][0]
