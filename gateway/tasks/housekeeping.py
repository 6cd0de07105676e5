# SPDX-License-Identifier: Apache-2.0
"""Throwing away what is over: idempotency keys, old reports and tasks, and metadata files of changes that never were.

Every process does it; two that do the same at once do it twice, which harms nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Final

import structlog
from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.operations.tasks import SweepMetadataFiles
from gateway.access.outage import CommitUnknown, DatabaseUnavailable
from gateway.access.refs import WarehouseRef
from gateway.db import claims, pending_files, reports, tasks
from gateway.db.credentials import StorageCredentials
from gateway.db.engine import Database
from gateway.iceberg.errors import CatalogError
from gateway.scope.profile import decode_profile
from gateway.storage.errors import StorageDenied
from gateway.storage.files import Files
from gateway.tasks.visits import admitted

_log = structlog.get_logger("tasks.housekeeping")

KEPT_DAYS: Final = 90
"""How long metrics reports and ended tasks are kept."""

PENDING_FILE_SECONDS: Final = 3600.0
"""The clean-up window of metadata files: far longer than any change takes from writing its file to its commit."""

_BATCH: Final = 1000
_FILES: Final = 100


class Housekeeping:
    """One process's housekeeping, `every` so many seconds on average."""

    def __init__(
        self, *, database: Database, door: Door, files: Files, storage: StorageCredentials, every: float = 10.0
    ) -> None:
        self._database = database
        self._door = door
        self._files = files
        self._storage = storage
        self._every = every

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
            await claims.sweep(connection, limit=_BATCH)
            await reports.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)
            await tasks.sweep(connection, older_than_days=KEPT_DAYS, limit=_BATCH)

    async def sweep_files(self) -> None:
        """Delete files that were written for changes that never happened. Raises the store's and the door's errors."""
        async with self._database.read() as connection:
            overdue = await pending_files.overdue(connection, seconds=PENDING_FILE_SECONDS, limit=_FILES)
        for warehouse_id, rows in itertools.groupby(overdue, key=lambda row: row.warehouse_id):
            locations = tuple(row.location for row in rows)
            operation = SweepMetadataFiles(WarehouseRef(warehouse_id), locations)
            async with admitted(self._door, "sweep_metadata_files", str(uuid7()), operation) as permit:
                warehouse = permit.warehouse(operation.warehouse)
                credential = await self._storage.of(warehouse)
                if credential is None:
                    raise StorageDenied("The warehouse has no storage credential to delete files with.")
                await self._files.delete(decode_profile(warehouse.profile), credential, locations)
                permit.trail.tell(deleted=" ".join(locations))
                async with self._database.change(permit) as connection:
                    await pending_files.forget(connection, locations)
