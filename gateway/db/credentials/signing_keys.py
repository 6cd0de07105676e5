# SPDX-License-Identifier: Apache-2.0
"""Keys that sign the gateway's own tokens. All processes share them.

The private keys are encrypted like storage credentials. `lakegate secrets rotate` encrypts both with the new key.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.credentials import secrets
from gateway.db.credentials.secrets import Sealer
from gateway.db.engine.database import Database
from gateway.db.schema.credentials import signing_keys

_ONE_AT_A_TIME = select(func.pg_advisory_xact_lock(func.hashtextextended("signing_keys", 0)))


class PublishedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public key (a JWK in JSON). `signs` is True while the private key signs new tokens."""

    kid: str
    public: bytes
    signs: bool


class SigningKeys:
    """Implements `gateway.identity.own_keys.KeyStore`."""

    def __init__(self, database: Database, sealer: Sealer, *, signs_seconds: int, verifies_seconds: int) -> None:
        """Set the lifetimes.

        A key signs for `signs_seconds`, and then verifies for `verifies_seconds`, longer than a token is valid.
        """
        self._database = database
        self._sealer = sealer
        self._signs = signs_seconds
        self._verifies = verifies_seconds

    async def published(self) -> Sequence[PublishedKey]:
        """Return the keys that verify tokens now, newest first. Raises DatabaseUnavailable."""
        async with self._database.read() as connection:
            return await _published(connection)

    async def private(self, kid: str) -> bytes:
        """Return the private key in its stored encoding.

        Raises SecretUnreadable, for example if the key does not exist.
        """
        async with self._database.read() as connection:
            query = select(signing_keys.c.secret_id).where(signing_keys.c.kid == kid)
            secret_id = (await connection.execute(query)).scalar_one_or_none()
            if secret_id is None:
                raise secrets.SecretUnreadable(f"the signing key {kid} does not exist")
            return await secrets.load(connection, self._sealer, secret_id)

    async def store(self, kid: str, *, public: bytes, private: bytes) -> None:
        """Store a key that signs from now on.

        Do nothing if another process stored one meanwhile. Raises DatabaseUnavailable.
        """
        async with self._database.transaction() as connection:
            await connection.execute(_ONE_AT_A_TIME)
            if any(key.signs for key in await _published(connection)):
                return
            secret_id = await secrets.store(connection, self._sealer, private)
            now = func.clock_timestamp()
            await connection.execute(
                insert(signing_keys).values(
                    kid=kid,
                    public=public,
                    secret_id=secret_id,
                    signs_until=now + _seconds(self._signs),
                    verifies_until=now + _seconds(self._signs + self._verifies),
                )
            )


async def _published(connection: AsyncConnection) -> Sequence[PublishedKey]:
    now = func.clock_timestamp()
    query = (
        select(signing_keys.c.kid, signing_keys.c.public, (signing_keys.c.signs_until > now).label("signs"))
        .where(signing_keys.c.verifies_until > now)
        .order_by(signing_keys.c.created_at.desc())
    )
    return [
        PublishedKey(kid=row.kid, public=bytes(row.public), signs=row.signs) for row in await connection.execute(query)
    ]


async def revoke(connection: AsyncConnection) -> int:
    """Revoke all keys, and with them every token that they signed.

    Return the number of keys that could still verify tokens.
    """
    now = func.clock_timestamp()
    ended = update(signing_keys).where(signing_keys.c.verifies_until > now).values(signs_until=now, verifies_until=now)
    return (await connection.execute(ended)).rowcount


async def sweep(connection: AsyncConnection) -> None:
    """Delete keys that no longer verify tokens."""
    over = signing_keys.c.verifies_until <= func.clock_timestamp()
    gone = await connection.execute(delete(signing_keys).where(over).returning(signing_keys.c.secret_id))
    for secret_id in gone.scalars().all():
        await secrets.retire(connection, secret_id)


def _seconds(count: int) -> object:
    return func.make_interval(0, 0, 0, 0, 0, 0, count)
