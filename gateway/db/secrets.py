# SPDX-License-Identifier: Apache-2.0
"""Storage credentials at rest: sealed with the keys of the settings, opened only to be used."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.secrets import secrets


class SecretUnreadable(Exception):
    """A stored credential cannot be opened with any of the configured encryption keys."""


class Sealer:
    """Encrypts with the first key, decrypts with any of them (Fernet: AES-128-CBC with HMAC-SHA256), so keys can be
    rotated.

    The keys are passphrases of at least 16 characters; HKDF-SHA256 makes the actual keys from them.
    """

    def __init__(self, passphrases: Sequence[str]) -> None:
        if not passphrases or any(len(phrase) < 16 for phrase in passphrases):
            raise ValueError("an encryption key of at least 16 characters is required")
        keys = [Fernet(_derive(phrase)) for phrase in passphrases]
        self._fernet = MultiFernet(keys)
        self._first = MultiFernet(keys[:1])

    def seal(self, plain: bytes) -> bytes:
        """Encrypt."""
        return self._fernet.encrypt(plain)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt. Raises SecretUnreadable when no key fits."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken as error:
            raise SecretUnreadable("no configured encryption key opens this secret") from error

    def opens(self, sealed: bytes) -> bool:
        """Whether any key fits."""
        try:
            self._fernet.decrypt(sealed)
        except InvalidToken:
            return False
        return True

    def sealed_with_first(self, sealed: bytes) -> bool:
        """Whether the first key alone opens it."""
        try:
            self._first.decrypt(sealed)
        except InvalidToken:
            return False
        return True


async def newest(connection: AsyncConnection, *, limit: int) -> Sequence[bytes]:
    """Sealed credentials, the newest first."""
    statement = select(secrets.c.sealed).order_by(secrets.c.id.desc()).limit(limit)
    return list((await connection.execute(statement)).scalars())


async def sealed_after(connection: AsyncConnection, after: UUID | None, *, limit: int) -> Sequence[tuple[UUID, bytes]]:
    """(id, sealed credential) of the next `limit` in the order of their ids."""
    statement = select(secrets.c.id, secrets.c.sealed).order_by(secrets.c.id).limit(limit)
    if after is not None:
        statement = statement.where(secrets.c.id > after)
    return [(row.id, row.sealed) for row in await connection.execute(statement)]


async def seal_anew(connection: AsyncConnection, id: UUID, *, before: bytes, sealed: bytes) -> bool:
    """Replace the sealed form of a credential; False when it is gone, or was replaced by somebody else."""
    statement = update(secrets).where(secrets.c.id == id, secrets.c.sealed == before).values(sealed=sealed)
    return (await connection.execute(statement)).rowcount == 1


async def store(connection: AsyncConnection, sealer: Sealer, plain: bytes) -> UUID:
    """Keep a credential and give its id."""
    id = uuid7()
    await connection.execute(insert(secrets).values(id=id, sealed=sealer.seal(plain)))
    return id


async def load(connection: AsyncConnection, sealer: Sealer, id: UUID) -> bytes:
    """The credential kept under `id`. Raises SecretUnreadable when there is none or no key fits."""
    sealed = (await connection.execute(select(secrets.c.sealed).where(secrets.c.id == id))).scalar_one_or_none()
    if sealed is None:
        raise SecretUnreadable("the secret does not exist")
    return sealer.open(sealed)


async def retire(connection: AsyncConnection, id: UUID) -> None:
    """Nobody has this credential any more. Requests that found it a moment ago may use it, then `sweep` takes it."""
    await connection.execute(update(secrets).where(secrets.c.id == id).values(replaced_at=func.clock_timestamp()))


async def sweep(connection: AsyncConnection, *, older_than_minutes: int, limit: int) -> int:
    """Remove credentials that were replaced long enough ago; how many."""
    age = func.make_interval(0, 0, 0, 0, 0, older_than_minutes)
    old = select(secrets.c.id).where(secrets.c.replaced_at < func.clock_timestamp() - age).limit(limit)
    result = await connection.execute(delete(secrets).where(secrets.c.id.in_(old.scalar_subquery())))
    return int(result.rowcount)


def _derive(passphrase: str) -> bytes:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"lakegate storage credentials").derive(
        passphrase.encode()
    )
    return base64.urlsafe_b64encode(key)
