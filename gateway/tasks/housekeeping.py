# SPDX-License-Identifier: Apache-2.0
"""Throwing away what is over: idempotency keys, old reports, and metadata files that nothing names.

Every process does it; two that do the same at once do it twice, which harms nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Final
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.door import Door
from gateway.access.operations.tasks import SweepMetadataFiles
from gateway.access.refs import WarehouseRef
from gateway.db import idempotency_claims, pending_files, reports, secrets, signing_keys
from gateway.db.credentials import StorageCredentials
from gateway.db.engine import Database
from gateway.iceberg.errors import CatalogError
from gateway.storage.errors import StorageDenied
from gateway.storage.files import Files
from gateway.storage.registry import stored_profile
from gateway.tasks.system_admission import admitted

_log = structlog.get_logger("tasks.housekeeping")

KEPT_DAYS: Final = 90
"""How long metrics reports are kept."""

_SECRETS_MINUTES: Final = 10
"""How long a storage credential outlives its replacement: longer than any request that found it before."""

_BATCH: Final = 1000
_FILES: Final = 100


class Housekeeping:
    """One process's housekeeping, `every` so many seconds on average.

    `file_seconds` is the clean-up window of metadata files: longer than any change takes from writing its file to its
    commit, or the change fails.
    """

    def __init__(
        self,
        *,
        database: Database,
        door: Door,
        files: Files,
        storage: StorageCredentials,
        file_seconds: float,
        every: float = 10.0,
    ) -> None:
        self._database = database
        self._door = door
        self._files = files
        self._storage = storage
        self._every = every
        self._file_seconds = file_seconds

    async def run(self) -> None:
        """Tidy up for as long as the process lives."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, protects nothing
            try:
                await self.sweep_rows()
                await self.sweep_files()
            except (DatabaseUnavailable, CommitUnknown, CatalogError) as outage:
                _log.warning("housekeeping.postponed", reason=str(outage))
            except Exception:
                # Must outlive every surprise; the surprise itself is told in full.
                _log.exception("housekeeping.failed")

    async def sweep_rows(self) -> None:
        """Remove rows whose time is over, some at a time."""
        async with self._database.transaction() as connection:
            await idempotency_claims.sweep(connection, limit=_BATCH)
            await reports.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)
            await signing_keys.sweep(connection)
            await secrets.sweep(connection, older_than_minutes=_SECRETS_MINUTES, limit=_BATCH)

    async def sweep_files(self) -> None:
        """Delete files that no pointer names, warehouse by warehouse. Raises the database's errors."""
        async with self._database.read() as connection:
            overdue = await pending_files.overdue(connection, seconds=self._file_seconds, limit=_FILES)
        for warehouse_id, rows in itertools.groupby(overdue, key=lambda row: row.warehouse_id):
            try:
                await self._sweep_warehouse(warehouse_id, tuple(row.location for row in rows))
            except CatalogError as left:
                # A store that is away, or a refusal, keeps the files of no other warehouse.
                _log.warning("metadata_files.left_behind", warehouse=str(warehouse_id), reason=str(left))

    async def _sweep_warehouse(self, warehouse_id: UUID, locations: tuple[str, ...]) -> None:
        operation = SweepMetadataFiles(WarehouseRef(warehouse_id), locations)
        async with admitted(self._door, "sweep_metadata_files", str(uuid7()), operation) as permit:
            warehouse = permit.warehouse(operation.warehouse)
            credential = await self._storage.of(warehouse)
            if credential is None:
                raise StorageDenied("The warehouse has no storage credential to delete files with.")
            # The rows are held while their files go: a change that is slower than the window cannot name them any more.
            async with self._database.change(permit) as connection:
                held = await pending_files.claim(connection, locations, seconds=self._file_seconds)
                await self._files.delete(stored_profile(warehouse.profile), credential, held)
                await pending_files.forget(connection, held)
                permit.trail.tell(deleted=" ".join(held))
