# SPDX-License-Identifier: Apache-2.0
"""Delete the files of dropped tables and views, and expire staged tables that no commit has completed."""

from __future__ import annotations

import time
from typing import Final

import structlog

from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operations.tasks import ExpireStagedTable, PurgeTable
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.engine.database import Database
from gateway.db.tables import retired_locations, tables
from gateway.db.tasks import task_runs
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import PurgedLocation, Queue, Status
from gateway.features.kit import admitted
from gateway.features.tasks.worker import report
from gateway.scope.credential import AccessLevel, Credential
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import StorageDenied
from gateway.storage.files import Files
from gateway.storage.registry import parse_location
from gateway.vending.vendor import Vendor

_log = structlog.get_logger("tasks.purge")

_PAGE: Final = 1000
_CREDENTIAL_SECONDS: Final = 3600
_RENEW_SECONDS: Final = 400.0


class Purge:
    """Handler of the task `tabular_purge`: deletes the files of a table or view. Until the task ends, no other object
    can use the location (`tables.location_taken`).
    """

    def __init__(
        self, *, database: Database, door: Door, files: Files, storage: StorageCredentials, vendor: Vendor
    ) -> None:
        self._database = database
        self._door = door
        self._files = files
        self._storage = storage
        self._vendor = vendor

    async def __call__(self, task: Task) -> None:
        """Delete the files page by page. An interrupted run starts again."""
        operation = PurgeTable(WarehouseRef(task.warehouse_id), task.entity_id, task.payload(PurgedLocation).location)
        async with admitted(self._door, Queue.TABULAR_PURGE.value, str(task.id), operation) as permit:
            location = parse_location(operation.location)
            permit.pending_audit.add_details(location=location.text, table_id=str(operation.table_id))
            if await self._in_use(location):
                # The active task reserves the location, so no object can use it. If one does nevertheless, its files
                # must survive.
                _log.error("purge.place_found_in_use", task=str(task.id), location=location.text)
                async with self._database.change(permit) as connection:
                    await task_runs.finish(
                        connection, task, status=Status.CANCELLED, reason="the location is in use again"
                    )
                return
            deleted = await self._delete(permit, location, task)
            permit.pending_audit.add_details(deleted=str(deleted))
            async with self._database.change(permit) as connection:
                await retired_locations.files_deleted(
                    connection, operation.table_id, location.text, location.overlap_key
                )
                await task_runs.finish(connection, task)

    async def _in_use(self, location: Location) -> bool:
        async with self._database.transaction() as connection:
            await tables.hold_explicit_locations(connection)
            ancestors = [above.overlap_key for above in location.ancestors()]
            return await tables.location_in_use(connection, location.overlap_key, ancestors)

    async def _delete(self, permit: Permit[PurgeTable], location: Location, task: Task) -> int:
        warehouse = permit.warehouse(permit.operation.warehouse)
        profile = warehouse.storage_profile
        deleted, made_at = 0, time.monotonic()
        credential = await self._credential(warehouse, profile, location)
        while keys := await self._files.list_keys(profile, credential, location, _PAGE):
            # The report fails with TaskLost if another worker has the task. While this worker has the task, no other
            # object can use the location, so all listed files are the purged object's. A process that was suspended
            # until the task was lost stops here: its listing may contain files of a new object.
            await report(self._database, task, progress=0.0, details={"deleted": deleted})
            await self._files.delete_below(profile, credential, location, keys)
            deleted += len(keys)
            # The progress stays 0, because the number of remaining files is unknown: the store lists one page at a
            # time.
            await report(self._database, task, progress=0.0, details={"deleted": deleted})
            if time.monotonic() - made_at > _RENEW_SECONDS:
                credential, made_at = await self._credential(warehouse, profile, location), time.monotonic()
        return deleted

    async def _credential(
        self, warehouse: ResolvedWarehouse, profile: StorageProfile, location: Location
    ) -> Credential:
        """Return a credential that is limited to this location, or the warehouse's own if the store has no sessions."""
        own = await self._storage.of(warehouse)
        if own is None:
            raise StorageDenied(
                "The warehouse has no storage credential, so its files cannot be deleted. Set one with POST "
                "/management/v1/warehouse/<id>/storage-credential."
            )
        return await self._vendor.narrowed(
            profile=profile,
            profile_version=f"{warehouse.id}/{warehouse.profile_version}",
            credential=own,
            location=location,
            level=AccessLevel.READ_WRITE_DELETE,
            seconds=_CREDENTIAL_SECONDS,
            purpose=Queue.TABULAR_PURGE.value,
        )


class ExpireStaged:
    """Handler of the task `expire_staged_table`: deletes a row that is still staged, and schedules the purge of its
    location.

    If the table was created meanwhile, the task does nothing.
    """

    def __init__(self, *, database: Database, door: Door) -> None:
        self._database = database
        self._door = door

    async def __call__(self, task: Task) -> None:
        """Delete the row and schedule the purge in one transaction."""
        operation = ExpireStagedTable(WarehouseRef(task.warehouse_id), task.entity_id)
        async with (
            admitted(self._door, Queue.EXPIRE_STAGED_TABLE.value, str(task.id), operation) as permit,
            self._database.change(permit) as connection,
        ):
            gone = await tables.drop_staged(connection, task.entity_id)
            if gone:
                permit.pending_audit.add_details(table_id=str(task.entity_id), location=gone[0].location)
            await task_runs.finish(connection, task)
