# SPDX-License-Identifier: Apache-2.0
"""Storage credentials at rest: sealed with the keys of the settings, opened only to be used."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema import secrets


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
        self._fernet = MultiFernet([Fernet(_derive(phrase)) for phrase in passphrases])

    def seal(self, plain: bytes) -> bytes:
        """Encrypt."""
        return self._fernet.encrypt(plain)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt. Raises SecretUnreadable when no key fits."""
        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken as error:
            raise SecretUnreadable("no configured encryption key opens this secret") from error


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


def _derive(passphrase: str) -> bytes:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"lakegate storage credentials").derive(
        passphrase.encode()
    )
    return base64.urlsafe_b64encode(key)
