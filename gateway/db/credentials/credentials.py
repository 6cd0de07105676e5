# SPDX-License-Identifier: Apache-2.0
"""Write the storage credentials of warehouses into the secret store, and read them.

The content behind an id never changes, only the key that encrypts it. So a credential that was read can be cached
without a time limit, and warehouses whose credential is cached work during an outage of the store.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.db.credentials import stored_secrets
from gateway.db.engine.database import Database
from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.secret_stores.port import SecretStores, SecretStoreUnavailable
from gateway.storage.registry import decode_credential, encode_credential

_log = structlog.get_logger("db.credentials")

_KEPT = 500


@dataclass(frozen=True, slots=True)
class WrittenCredential:
    """A credential that was written to the store, and is not used by a warehouse yet.

    `id` is None without a credential.
    """

    id: UUID | None

    async def use(self, connection: AsyncConnection) -> UUID | None:
        """Mark the credential as used, in the transaction that records its id in a warehouse. Return the id.

        Raises CredentialExpired if the credential was written too long ago.
        """
        if self.id is not None:
            await stored_secrets.use(connection, self.id)
        return self.id


class StorageCredentials:
    """Storage credentials of warehouses, in the secret stores `stores`. At most 500 are cached, decrypted."""

    def __init__(self, database: Database, stores: SecretStores) -> None:
        self._database = database
        self._stores = stores
        self._opened: OrderedDict[UUID, Credential] = OrderedDict()
        self._reads: dict[UUID, asyncio.Task[Credential]] = {}

    @asynccontextmanager
    async def written(self, credential: Credential | None) -> AsyncIterator[WrittenCredential]:
        """Write a credential to the current store, and yield it for the transaction that changes its warehouse.

        Open the transaction inside of the block, because it holds locks, and the store may be slow. If the block raises
        and the transaction was not committed, the credential is deleted. Raises SecretStoreUnavailable and
        SecretStoreRefused if it could not be written.
        """
        if credential is None:
            yield WrittenCredential(None)
            return
        async with self.written_content(encode_credential(credential)) as written:
            yield written

    @asynccontextmanager
    async def written_content(self, plain: bytes) -> AsyncIterator[WrittenCredential]:
        """Write an encoded credential, as `written` does."""
        id = await self._write(plain)
        try:
            yield WrittenCredential(id)
        except BaseException:
            await self._discard(id)
            raise

    async def _write(self, plain: bytes) -> UUID:
        store = self._stores.current
        try:
            async with self._database.transaction() as connection:
                id = await stored_secrets.reserve(connection, store.name)
            # If the write fails, the content may still arrive in the store later. So `sweep` deletes the content later,
            # and not this request.
            await store.put(id, plain)
        except CommitUnknown as unknown:
            # Committed or not, no warehouse refers to the id, so nothing changed for the caller.
            raise DatabaseUnavailable("it is unknown whether the credential was stored") from unknown
        return id

    async def _discard(self, id: UUID) -> None:
        """Delete the content of a credential whose transaction was not committed.

        If that fails, `sweep` deletes it later.
        """
        try:
            # If the outcome of the transaction that uses the id is unknown, it holds the row lock until it ends. This
            # check waits for the lock.
            async with self._database.transaction() as connection:
                unused = await stored_secrets.is_unused(connection, id)
            if unused:
                await self._stores.current.delete(id)
        except (CatalogError, CommitUnknown, DatabaseUnavailable) as outage:
            _log.warning("secrets.discard_postponed", secret=str(id), reason=type(outage).__name__)

    async def sweep(self, *, limit: int) -> None:
        """Delete up to `limit` credentials in stores outside of PostgreSQL that have been unused for long."""
        await stored_secrets.sweep(self._database, self._stores, limit=limit)

    async def check(self) -> None:
        """Check all stores before the gateway serves.

        Raises SecretUnreadable for a wrong encryption key and SecretStoreRefused for a wrong configuration, because
        every load would fail. An outage is only logged: it may end without the operator, and meanwhile all metadata and
        the warehouses without a credential are served.
        """
        for store in self._stores:
            try:
                await store.check()
            except SecretStoreUnavailable as outage:
                _log.warning("secret_store.check_failed", store=store.name, reason=outage.message)

    async def content_of(self, id: UUID) -> tuple[str, bytes]:
        """Return (name of the credential's store, encoded credential). Raises the errors of `of`."""
        async with self._database.read() as connection:
            name = await stored_secrets.store_of(connection, id)
        return name, await self._stores.named(name).get(id)

    async def of(self, warehouse: ResolvedWarehouse) -> Credential | None:
        """Return the stored credential of the warehouse.

        Without a stored one, return the access that its profile gives by itself, or None. Raises SecretUnreadable if
        the credential does not exist or no key decrypts it, SecretStoreUnavailable and SecretStoreRefused.
        """
        id = warehouse.credential_id
        if id is None:
            return warehouse.storage_profile.own_access
        if id not in self._opened:
            return await self._read_once(id)
        self._opened.move_to_end(id)
        return self._opened[id]

    async def _read_once(self, id: UUID) -> Credential:
        """Return a credential that is not cached. Concurrent requests for the same id share one read.

        Each request was permitted to use a warehouse with this id, and the content of an id is the same for all. A
        failure is raised in all requests and not cached. A request that is cancelled does not cancel the read.
        """
        task = self._reads.get(id)
        if task is None:
            task = self._reads[id] = asyncio.create_task(self._read(id), name="secret")
            task.add_done_callback(lambda done: self._forget(id, done))
        return await asyncio.shield(task)

    def _forget(self, id: UUID, done: asyncio.Task[Credential]) -> None:
        del self._reads[id]
        if not done.cancelled():
            done.exception()  # if every request was cancelled, no other code retrieves the exception

    async def _read(self, id: UUID) -> Credential:
        _, plain = await self.content_of(id)
        self._opened[id] = decoded = decode_credential(plain)
        while len(self._opened) > _KEPT:
            self._opened.popitem(last=False)
        return decoded
