# SPDX-License-Identifier: Apache-2.0
"""Rotate the key that encrypts stored credentials, move them to another secret store, and revoke token signing keys.

`lakegate secrets move` moves storage credentials while gateways serve. A moved credential gets a new id, as a replaced
one does. Requests in flight use the old one, which is deleted ten minutes later. So the move can be interrupted and
repeated at any point.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from gateway.access.door.door import Door
from gateway.access.operations.tasks import ChangeEncryptionKey, MoveSecret, WithdrawSigningKeys
from gateway.db.credentials import secret_moves, secrets, signing_keys
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.secrets import Sealer
from gateway.db.engine.database import Database
from gateway.features.kit import admitted
from gateway.secret_stores.port import SecretUnreadable

_log = structlog.get_logger("tasks.keys")

TASK: Final = "change_encryption_key"
BATCH: Final = 100
_SHOWN: Final = 5


class NotAllReadable(Exception):
    """Some stored credentials cannot be decrypted with any of the configured keys. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class RotationResult:
    """Numbers of stored credentials: all, those that were re-encrypted, and those that are not encrypted with the first
    key in the current format.
    """

    stored: int
    sealed: int
    left: int

    @property
    def complete(self) -> bool:
        """Return True if all credentials are encrypted with the first key in the current format."""
        return self.left == 0

    def summary(self) -> str:
        """Return one line of text for the operator."""
        return f"{self.stored} stored credentials: {self.sealed} encrypted again, {self.left} still need the other key"


class KeyRotation:
    """A rotation of the encryption key. `sealer` encrypts with the first key and decrypts with each configured key."""

    def __init__(self, *, database: Database, door: Door, sealer: Sealer, batch: int = BATCH) -> None:
        self._database = database
        self._door = door
        self._sealer = sealer
        self._batch = batch

    async def run(self, *, seal: bool) -> RotationResult:
        """Check all stored credentials. With `seal`, re-encrypt those that need it.

        Raises NotAllReadable before anything is changed, the door's refusals, and the errors of outages.
        """
        stored, left = await self._count()
        if not seal or not left:
            return RotationResult(stored, 0, left)
        sealed = await self._seal_outdated()
        # The count is read again: a gateway whose first key is an older key may have stored a credential meanwhile.
        stored, left = await self._count()
        return RotationResult(stored, sealed, left)

    async def _count(self) -> tuple[int, int]:
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
                f"{len(unreadable)} of {stored} stored credentials ({shown}) can be decrypted neither with "
                "PG_ENCRYPTION_KEY nor with PG_ENCRYPTION_KEY_OTHER. Nothing was changed. Set "
                "PG_ENCRYPTION_KEY_OTHER to the key with which they were encrypted."
            )
        return stored, left

    async def _seal_outdated(self) -> int:
        run, done = uuid7(), 0
        async for rows in self._pages():
            outdated = [(id, sealed) for id, sealed in rows if not self._sealer.sealed_with_first(sealed)]
            if not outdated:
                continue
            operation = ChangeEncryptionKey(tuple(str(id) for id, _ in outdated))
            async with (
                admitted(self._door, TASK, str(run), operation) as permit,
                self._database.change(permit) as connection,
            ):
                for id, sealed in outdated:
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


REVOCATION: Final = "withdraw_signing_keys"


async def revoke(*, database: Database, door: Door) -> int:
    """Revoke all valid signing keys. Return their number.

    All processes apply it within a second, and the next token exchange creates a new key. Raises the error of a policy
    refusal and the errors of outages.
    """
    async with (
        admitted(door, REVOCATION, str(uuid7()), WithdrawSigningKeys()) as permit,
        database.change(permit) as connection,
    ):
        ended = await signing_keys.revoke(connection)
        permit.pending_audit.add_details(keys=str(ended))
    return ended


_moves_log = structlog.get_logger("tasks.secret_moves")

MOVES_TASK: Final = "move_secrets"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of a move: the numbers of moved credentials, and of credentials in stores other than `to`.

    `unreadable` is the number of credentials in other stores that their store lacks or that no key decrypts.
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
                    _moves_log.warning("secrets.found_unreadable", secret=str(id), reason=str(lost))
                    unreadable += 1
                    continue
                operation = MoveSecret(str(id), self._to)
                async with (
                    admitted(self._door, MOVES_TASK, str(uuid7()), operation) as permit,
                    self._storage.written_content(plain) as written,
                    self._database.change(permit) as connection,
                ):
                    moved += await secret_moves.replace(connection, id, written)
        # The count is read again: a gateway with other settings may have stored a credential meanwhile.
        async with self._database.read() as connection:
            left = len(await secret_moves.outside(connection, self._to))
        return MoveResult(self._to, moved, left, unreadable)
