# SPDX-License-Identifier: Apache-2.0
"""Encrypted storage credentials in the database. They are decrypted only when they are used."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from threading import Lock
from typing import Final
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.credentials import secrets
from gateway.secret_stores.port import SecretUnreadable as SecretUnreadable

POSTGRES: Final = "postgres"
"""The name of the store that holds credentials encrypted in the database."""

_MARK: Final = b"scrypt1$"
_SALT_BYTES: Final = 16
_HEAD_BYTES: Final = len(_MARK) + 24 + 1
"""Bytes before the Fernet token: the mark, the salt in base64, and a separator."""
_COST: Final = 2**15
_KEPT: Final = 64


class Sealer:
    """Encrypts with the first key, and decrypts with any key (Fernet: AES-128-CBC with HMAC-SHA256), so that keys can
    be rotated.

    The keys are passphrases of at least 16 characters. scrypt (RFC 7914) derives the encryption keys from them, with a
    salt that is stored with each secret. Secrets of earlier versions, whose keys HKDF-SHA256 derived, can still be
    decrypted. A derivation takes a fraction of a second and 32 MiB. So call `prepare`, and every function that
    decrypts, outside of the event loop.
    """

    def __init__(self, passphrases: Sequence[str], *, salt: bytes | None = None, former: bool = False) -> None:
        """Set the keys. Raises ValueError if there is no key, or one with less than 16 characters.

        `salt` is the salt of new secrets, random by default. With `former`, secrets are encrypted in the form of
        earlier versions, which gateways of those versions can decrypt.
        """
        if not passphrases or any(len(phrase) < 16 for phrase in passphrases):
            raise ValueError("an encryption key of at least 16 characters is required")
        self._phrases = tuple(phrase.encode() for phrase in passphrases)
        self._former = [Fernet(_by_hkdf(phrase)) for phrase in self._phrases]
        self._salt = salt or os.urandom(_SALT_BYTES)
        self._seals_former = former
        self._derived: dict[tuple[int, bytes], Fernet] = {}
        self._lock = Lock()

    def prepare(self) -> None:
        """Derive the key that encrypts new secrets."""
        for index in range(len(self._phrases)):
            self._by_scrypt(index, self._salt)

    def seal(self, plain: bytes) -> bytes:
        """Encrypt a secret."""
        if self._seals_former:
            return self._former[0].encrypt(plain)
        sealed = self._by_scrypt(0, self._salt).encrypt(plain)
        return _MARK + base64.urlsafe_b64encode(self._salt) + b"$" + sealed

    def open(self, sealed: bytes) -> bytes:
        """Decrypt a secret. Raises SecretUnreadable if no key decrypts it."""
        for index in range(len(self._phrases)):
            plain = self._opened(index, sealed)
            if plain is not None:
                return plain
        raise SecretUnreadable("no configured encryption key decrypts this secret")

    def opens(self, sealed: bytes) -> bool:
        """Return True if one of the keys decrypts the secret."""
        return any(self._opened(index, sealed) is not None for index in range(len(self._phrases)))

    def sealed_with_first(self, sealed: bytes) -> bool:
        """Return True if the secret has the current form and the first key decrypts it."""
        return salt_of(sealed) is not None and self._opened(0, sealed) is not None

    def _opened(self, index: int, sealed: bytes) -> bytes | None:
        salt = salt_of(sealed)
        fernet = self._former[index] if salt is None else self._by_scrypt(index, salt)
        try:
            return fernet.decrypt(sealed if salt is None else sealed[_HEAD_BYTES:])
        except InvalidToken:
            return None

    def _by_scrypt(self, index: int, salt: bytes) -> Fernet:
        with self._lock:
            found = self._derived.get((index, salt))
            if found is None:
                key = Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(self._phrases[index])
                found = self._derived[index, salt] = Fernet(base64.urlsafe_b64encode(key))
                while len(self._derived) > _KEPT:
                    del self._derived[next(iter(self._derived))]
            return found


def salt_of(sealed: bytes) -> bytes | None:
    """Return the salt of a secret whose key scrypt derives.

    Return None for a secret in the form of earlier versions.
    """
    if not sealed.startswith(_MARK) or sealed[_HEAD_BYTES - 1 : _HEAD_BYTES] != b"$":
        return None
    try:
        return base64.b64decode(sealed[len(_MARK) : _HEAD_BYTES - 1], altchars=b"-_", validate=True)
    except ValueError:
        return None


async def sealer_for(connection: AsyncConnection, passphrases: Sequence[str]) -> Sealer:
    """Return the sealer for the secrets of this database, with derived keys.

    New secrets share the salt of the newest one. As long as all stored secrets have the form of earlier versions, new
    ones get it too, because gateways of an earlier version may serve at the same time. `lakegate secrets rotate`
    changes the form. Raises ValueError for passphrases that are too short.
    """
    found = await newest(connection, limit=100)
    salts = [salt for sealed in found if (salt := salt_of(sealed)) is not None]
    sealer = Sealer(passphrases, salt=salts[0] if salts else None, former=bool(found) and not salts)
    await asyncio.to_thread(sealer.prepare)
    return sealer


async def newest(connection: AsyncConnection, *, limit: int) -> Sequence[bytes]:
    """Return up to `limit` encrypted credentials, newest first."""
    statement = select(secrets.c.sealed).where(secrets.c.sealed.is_not(None)).order_by(secrets.c.id.desc()).limit(limit)
    return list((await connection.execute(statement)).scalars())


async def sealed_after(connection: AsyncConnection, after: UUID | None, *, limit: int) -> Sequence[tuple[UUID, bytes]]:
    """Return the next `limit` pairs (id, encrypted credential) after the id `after`, ordered by id."""
    held = select(secrets.c.id, secrets.c.sealed).where(secrets.c.sealed.is_not(None))
    statement = held.order_by(secrets.c.id).limit(limit)
    if after is not None:
        statement = statement.where(secrets.c.id > after)
    return [(row.id, row.sealed) for row in await connection.execute(statement)]


async def seal_anew(connection: AsyncConnection, id: UUID, *, before: bytes, sealed: bytes) -> bool:
    """Replace the encrypted form of a credential.

    Return False if the credential was deleted, or another process replaced its form.
    """
    statement = update(secrets).where(secrets.c.id == id, secrets.c.sealed == before).values(sealed=sealed)
    return (await connection.execute(statement)).rowcount == 1


async def store(connection: AsyncConnection, sealer: Sealer, plain: bytes) -> UUID:
    """Encrypt and store a credential. Return its id."""
    id = uuid7()
    sealed = await asyncio.to_thread(sealer.seal, plain)
    await connection.execute(insert(secrets).values(id=id, sealed=sealed))
    return id


async def load(connection: AsyncConnection, sealer: Sealer, id: UUID) -> bytes:
    """Return the decrypted credential `id`. Raises SecretUnreadable if it does not exist or no key decrypts it."""
    sealed = (await connection.execute(select(secrets.c.sealed).where(secrets.c.id == id))).scalar_one_or_none()
    if sealed is None:
        raise SecretUnreadable("the secret does not exist")
    return await asyncio.to_thread(sealer.open, sealed)


async def retire(connection: AsyncConnection, id: UUID) -> None:
    """Mark a credential that no warehouse uses any more. Requests in flight may use it until `sweep` deletes it."""
    await connection.execute(update(secrets).where(secrets.c.id == id).values(replaced_at=func.clock_timestamp()))


async def sweep(connection: AsyncConnection, *, older_than_minutes: int, limit: int) -> int:
    """Delete up to `limit` encrypted credentials that have been unused for `older_than_minutes`.

    Return their number.
    """
    age = func.make_interval(0, 0, 0, 0, 0, older_than_minutes)
    replaced = secrets.c.replaced_at < func.clock_timestamp() - age
    old = select(secrets.c.id).where(replaced, secrets.c.store == POSTGRES).limit(limit)
    result = await connection.execute(delete(secrets).where(secrets.c.id.in_(old.scalar_subquery())))
    return int(result.rowcount)


def _by_hkdf(passphrase: bytes) -> bytes:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"lakegate storage credentials").derive(passphrase)
    return base64.urlsafe_b64encode(key)
