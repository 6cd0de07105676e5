# SPDX-License-Identifier: Apache-2.0
"""Delete rows and files that have expired or are not used any more, periodically in every process.

They are: idempotency keys, keys that signed the gateway's own tokens, entries of expired credentials in the register of
live credentials, old metrics reports of engines, storage credentials that were replaced, and metadata files to which no
table refers. If two processes do this at the same time, both do the same work, which is harmless.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Mapping
from typing import Final, Protocol
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.door.door import Door
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operations.tasks import SweepMetadataFiles
from gateway.db.credentials import live_credentials, secrets, signing_keys
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.stored_secrets import UNUSED_MINUTES
from gateway.db.engine import idempotency_claims, vacated_names
from gateway.db.engine.database import Database
from gateway.db.grants import access_requests
from gateway.db.tables import pending_files, statistics
from gateway.db.warehouses import change_tickets
from gateway.features.kit import admitted
from gateway.iceberg.errors import CatalogError
from gateway.storage.errors import StorageDenied
from gateway.storage.files import Files

_log = structlog.get_logger("tasks.housekeeping")

KEPT_DAYS: Final = 90
"""The retention of metrics reports and of change tickets, after their expiry, in days."""

_VACATED_DAYS: Final = 365
"""The time for which the restrictions of a name without an object are kept, in days."""

_CREDENTIAL_MINUTES: Final = 60
"""The retention of the register entries of expired credentials, for auditors that compare them with a store's logs."""

_BATCH: Final = 1000
_FILES: Final = 100
_SECRETS: Final = 20


class CredentialObserver(Protocol):
    """Receiver of the number of live credentials, for metrics."""

    def live_credentials_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Set the number of live credentials by (provider, level)."""
        ...


class Housekeeping:
    """The housekeeping of one process. `every` is the mean interval in seconds.

    `file_seconds` is the cleanup window of metadata files: the longest time from the write of a file to the commit of
    its change. A slower change fails.
    """

    def __init__(
        self,
        *,
        database: Database,
        door: Door,
        files: Files,
        storage: StorageCredentials,
        file_seconds: float,
        observer: CredentialObserver,
        every: float = 10.0,
    ) -> None:
        self._database = database
        self._door = door
        self._files = files
        self._storage = storage
        self._every = every
        self._file_seconds = file_seconds
        self._observer = observer

    async def run(self) -> None:
        """Run until the process ends."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            try:
                await self.sweep_rows()
                await self.count_credentials()
                await self._storage.sweep(limit=_SECRETS)
                await self.sweep_files()
            except (DatabaseUnavailable, CommitUnknown, CatalogError) as outage:
                _log.warning("housekeeping.postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("housekeeping.failed")

    async def sweep_rows(self) -> None:
        """Delete expired rows, a limited number of each kind."""
        async with self._database.transaction() as connection:
            await idempotency_claims.sweep(connection, limit=_BATCH)
            await statistics.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)
            await change_tickets.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)
            await access_requests.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)
            await signing_keys.sweep(connection)
            await live_credentials.sweep(connection, older_than_minutes=_CREDENTIAL_MINUTES, limit=_BATCH)
            await vacated_names.sweep(connection, older_than_days=_VACATED_DAYS, limit=_BATCH)
            await secrets.sweep(connection, older_than_minutes=UNUSED_MINUTES, limit=_BATCH)

    async def count_credentials(self) -> None:
        """Report the number of live credentials to the metrics. Raises the database's errors."""
        async with self._database.read() as connection:
            self._observer.live_credentials_counted(await live_credentials.counts(connection))

    async def sweep_files(self) -> None:
        """Delete files to which no table or view points, warehouse by warehouse. Raises the database's errors."""
        async with self._database.read() as connection:
            overdue = await pending_files.overdue(connection, seconds=self._file_seconds, limit=_FILES)
        for warehouse_id, rows in itertools.groupby(overdue, key=lambda row: row.warehouse_id):
            try:
                await self._sweep_warehouse(warehouse_id, tuple(row.location for row in rows))
            except CatalogError as left:
                # A failing store or a refusal in one warehouse must not block the cleanup of the others.
                _log.warning("metadata_files.left_behind", warehouse=str(warehouse_id), reason=str(left))

    async def _sweep_warehouse(self, warehouse_id: UUID, locations: tuple[str, ...]) -> None:
        operation = SweepMetadataFiles(WarehouseRef(warehouse_id), locations)
        async with admitted(self._door, "sweep_metadata_files", str(uuid7()), operation) as permit:
            warehouse = permit.warehouse(operation.warehouse)
            credential = await self._storage.of(warehouse)
            if credential is None:
                raise StorageDenied(
                    "The warehouse has no storage credential, so its files cannot be deleted. Set one with POST "
                    "/management/v1/warehouse/<id>/storage-credential."
                )
            # The rows stay locked while the files are deleted. A commit that takes longer than the window can then not
            # write the name of a deleted file into a table.
            async with self._database.change(permit) as connection:
                held = await pending_files.claim(connection, locations, seconds=self._file_seconds)
                await self._files.delete(warehouse.storage_profile, credential, held)
                await pending_files.forget(connection, held)
                permit.pending_audit.add_details(deleted=" ".join(held))
