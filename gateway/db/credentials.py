# SPDX-License-Identifier: Apache-2.0
"""Opening the storage credential of a warehouse. Rows never change, so what was opened once may be kept."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from gateway.access.resolved import ResolvedWarehouse
from gateway.db import secrets
from gateway.db.engine import Database
from gateway.db.secrets import Sealer
from gateway.scope.credential import S3Credential, decode_credential

_KEPT = 500


class StorageCredentials:
    """The storage credentials of warehouses, opened with the settings' keys and kept in memory for up to 500
    warehouses.
    """

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._opened: OrderedDict[UUID, S3Credential] = OrderedDict()

    @property
    def sealer(self) -> Sealer:
        """What seals and opens."""
        return self._sealer

    async def of(self, warehouse: ResolvedWarehouse) -> S3Credential | None:
        """The warehouse's credential, None when it has none. Raises SecretUnreadable."""
        id = warehouse.credential_id
        if id is None:
            return None
        if id not in self._opened:
            async with self._database.read() as connection:
                plain = await secrets.load(connection, self._sealer, id)
            self._opened[id] = decode_credential(plain)
            while len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
        self._opened.move_to_end(id)
        return self._opened[id]
