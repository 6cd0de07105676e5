# SPDX-License-Identifier: Apache-2.0
"""Drop tables and views: permanently, or as a soft deletion that can be undone for a while. Set and read drop
protection.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import ObjectKey, Ref
from gateway.access.nouns.resolved import Resolution, ResolvedGenericTable, ResolvedTable, ResolvedView
from gateway.access.operation import Operation
from gateway.access.operations.deletion import GetProtection, ProtectionAnswer, SetProtection
from gateway.db.engine.database import Connection
from gateway.db.tables import deleted, namespaces, tables
from gateway.db.tasks import tasks
from gateway.db.tasks.tasks import FileDisposal, Files, Queue
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_deleted
from gateway.features.approvals.change_approval import UNCONDITIONAL, Approval
from gateway.features.contents.containers import above_table
from gateway.features.kit import UseCases
from gateway.features.metadata.metadata_files import own_files
from gateway.iceberg.errors import (
    CatalogError,
    NoSuchGenericTableException,
    NoSuchTableException,
    NoSuchViewException,
    ProtectedTabularDeletionWithoutForce,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.storage.registry import parse_location


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of a drop: the keys of the tuples to deliver, what happens to the files, and the end of the retention.

    If `kept_until` is None, the object was deleted permanently.
    """

    pending: list[Pending]
    files: Files
    kept_until: datetime | None = None

    @property
    def note(self) -> str:
        """Return the value of the header `X-Lakegate-Files`: which files are deleted, and when."""
        text = _NOTES[self.files]
        if self.kept_until is None:
            return text
        until = self.kept_until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{text}; restorable-until={until}"


#: If a drop does not state what happens to the files, they are deleted after this number of seconds. `DROP TABLE …
#: PURGE` in Spark is such a drop: Spark then reads the metadata itself, and would fail without its files.
_CLIENT_PURGE_SECONDS: Final = 10.0

_NOTES: Final = {
    Files.PURGE: "deleted",
    Files.KEEP: "kept",
    Files.LAST: "last-metadata-file-deleted",
}


async def drop_tabular(
    connection: Connection,
    permit: Permit[Operation],
    dropped: ResolvedTable | ResolvedView | ResolvedGenericTable,
    identifier: TableIdentifier,
    *,
    files: Files,
    stated: bool,
    force: bool,
    approval: Approval = UNCONDITIONAL,
) -> Dropped:
    """Drop a table or view in the transaction of `permit`.

    `files` is the handling of its files. If the request does not set it (`stated` is False), the warehouse's setting
    can keep the files.

    If the warehouse has soft deletion, the row is marked as dropped. Lookups by name or id no longer find it, and its
    name is free. Location and grants are kept, and a task deletes it permanently when its time is over. `force` deletes
    permanently immediately. `identifier` is the name in the request, for errors. The tickets of `approval` are marked
    as used.

    Raises NoSuchTableException, NoSuchViewException or NoSuchGenericTableException if the object was dropped or moved
    meanwhile, ProtectedTabularDeletionWithoutForce, and DatabaseUnavailable while the task of an earlier drop is still
    running.
    """
    # A rename, or a move of the namespace, may have taken the object out of the namespace that the decision was about.
    namespace_held = await namespaces.lock_if_unmoved(connection, dropped.namespace)
    now = await tables.hold_for_drop(connection, dropped.id) if namespace_held else None
    if now is None or now.namespace_id != dropped.namespace.id:
        raise _not_found(dropped, identifier)
    if now.protected and not force:
        raise ProtectedTabularDeletionWithoutForce.of(dropped.key.type.value, identifier)
    await approval.use(connection)
    if not stated and now.keeps_files:
        files = Files.KEEP
    location = parse_location(now.location)
    file = now.metadata_location if files is Files.LAST else None
    last = [] if file is None else own_files(location, [file])
    then = FileDisposal(files, last[0] if last else None)
    warehouse = dropped.warehouse
    if now.keep_seconds is not None and not force:
        await deleted.mark(connection, dropped.id, by=permit.actor.id)
        task = await tasks.add(
            connection,
            Queue.SOFT_DELETION,
            warehouse_id=warehouse.id,
            entity_id=dropped.id,
            entity_type=dropped.key.type.value,
            payload=then,
            in_seconds=float(now.keep_seconds),
        )
        if task is None:
            # No task was added, because the running task of an earlier drop is in its place. Without a task, the object
            # would never be deleted.
            raise DatabaseUnavailable("the cleanup of an earlier drop of this table is still in progress")
        permit.pending_audit.add_details(kept_seconds=str(now.keep_seconds), files=files.value, location=now.location)
        return Dropped([], files, permit.resolution.now + timedelta(seconds=now.keep_seconds))
    await deleted.dispose_files(
        connection,
        dropped.id,
        then,
        kind=dropped.key.type,
        warehouse_id=warehouse.id,
        location=now.location,
        location_key=now.location_key,
        purge_in_seconds=0.0 if stated else _CLIENT_PURGE_SECONDS,
    )
    await tables.drop(connection, dropped.id, by=permit.actor.id)
    if files is Files.PURGE:
        permit.pending_audit.add_details(purge="scheduled", location=now.location)
    pending = await record_deleted(
        connection,
        dropped.key,
        dropped.namespace.key,
        above=above_table(dropped.namespace),
        warehouse_id=warehouse.id,
        by=permit.actor.id,
    )
    return Dropped(pending, files)


def _not_found(
    dropped: ResolvedTable | ResolvedView | ResolvedGenericTable, identifier: TableIdentifier
) -> CatalogError:
    match dropped:
        case ResolvedTable():
            return NoSuchTableException.of(identifier)
        case ResolvedView():
            return NoSuchViewException.of(identifier)
        case ResolvedGenericTable():
            return NoSuchGenericTableException.of(identifier)


class Protection(UseCases):
    """The protection flag of namespaces, tables and views: dropping requires `force`. It affects no right."""

    async def get(self, permit: Permit[GetProtection]) -> ProtectionAnswer:
        """Return the current protection flag."""
        on = permit.operation.on
        async with self._database.read() as connection:
            return _answer(on, await deleted.of(connection, _key(permit.resolution, on)))

    async def set(self, permit: Permit[SetProtection]) -> ProtectionAnswer:
        """Set or clear the flag. Idempotent."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            key = _key(permit.resolution, operation.on)
            return _answer(operation.on, await deleted.protect(connection, key, operation.protected))


def _key(resolution: Resolution, on: Ref) -> ObjectKey:
    row = resolution.get(on)
    if row is None:
        raise LookupError(f"the operation was not admitted on {on!r}")
    return row.key


def _answer(on: Ref, row: deleted.Protection | None) -> ProtectionAnswer:
    if row is None:
        raise not_found(on)
    return ProtectionAnswer(protected=row.protected, updated_at=row.updated_at)
