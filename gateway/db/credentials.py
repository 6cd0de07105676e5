# SPDX-License-Identifier: Apache-2.0
"""Opening the storage credential of a warehouse. What a row holds never changes, only the key it is sealed with, so
what was opened once may be kept.
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
    """The storage credentials of warehouses, opened with the settings' keys and kept in memory for up to 500
    warehouses.
    """

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._opened: OrderedDict[UUID, Credential] = OrderedDict()

    async def keep(self, connection: AsyncConnection, credential: Credential | None) -> UUID | None:
        """Store a credential, sealed, in the transaction of the warehouse that gets it; its id, None for none."""
        if credential is None:
            return None
        return await secrets.store(connection, self._sealer, encode_credential(credential))

    async def require_right_key(self) -> None:
        """Raise SecretUnreadable when there are credentials and the newest hundred can all not be opened: the key is
        not that of this database, and every load would fail. A single one may have been lost long ago.
        """
        async with self._database.read() as connection:
            found = await secrets.newest(connection, limit=_LOOKED_AT)
        if found and not await asyncio.to_thread(lambda: any(map(self._sealer.opens, found))):
            raise SecretUnreadable(
                "None of the stored credentials of warehouses can be opened: PG_ENCRYPTION_KEY is not the key that "
                "this database was used with."
            )

    async def of(self, warehouse: ResolvedWarehouse) -> Credential | None:
        """The warehouse's credential, None when it needs one and has none. Raises SecretUnreadable."""
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
