# SPDX-License-Identifier: Apache-2.0
"""Decrypt the storage credentials of warehouses.

The content of a row never changes, only the key that encrypts it. So a decrypted credential can be cached.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.resolved import ResolvedWarehouse
from gateway.db import secrets
from gateway.db.engine import Database
from gateway.db.secrets import Sealer, SecretUnreadable
from gateway.scope.credential import Credential
from gateway.storage.registry import decode_credential, encode_credential, stored_profile

_KEPT = 500
_LOOKED_AT = 100


class StorageCredentials:
    """Storage credentials of warehouses, decrypted with the keys of the settings. At most 500 are cached."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._opened: OrderedDict[UUID, Credential] = OrderedDict()

    async def store(self, connection: AsyncConnection, credential: Credential | None) -> UUID | None:
        """Encrypt and store a credential in the transaction of its warehouse. Return its id, None without a
        credential.
        """
        if credential is None:
            return None
        return await secrets.store(connection, self._sealer, encode_credential(credential))

    async def require_right_key(self) -> None:
        """Raise SecretUnreadable if none of the newest hundred credentials can be decrypted.

        Then the key is not the one of this database, and every load would fail. A single unreadable credential may have
        been lost earlier and raises nothing.
        """
        async with self._database.read() as connection:
            found = await secrets.newest(connection, limit=_LOOKED_AT)
        if found and not await asyncio.to_thread(lambda: any(map(self._sealer.opens, found))):
            raise SecretUnreadable(
                "None of the stored credentials of warehouses can be decrypted: PG_ENCRYPTION_KEY is not the key "
                "with which they were encrypted. Set that key."
            )

    async def of(self, warehouse: ResolvedWarehouse) -> Credential | None:
        """Return the warehouse's credential; without a stored one, the access that its profile has by itself, or None.

        Raises SecretUnreadable if no key decrypts it.
        """
        id = warehouse.credential_id
        if id is None:
            return stored_profile(warehouse.profile).own_access
        if id not in self._opened:
            async with self._database.read() as connection:
                plain = await secrets.load(connection, self._sealer, id)
            self._opened[id] = decode_credential(plain)
            while len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
        self._opened.move_to_end(id)
        return self._opened[id]
