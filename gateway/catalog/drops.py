# SPDX-License-Identifier: Apache-2.0
"""Drop tables and views: permanently, or as a soft deletion that can be undone for a while."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.access.resolved import ResolvedGenericTable, ResolvedTable, ResolvedView
from gateway.catalog.change_approval import UNCONDITIONAL, Approval
from gateway.catalog.containers import above_table
from gateway.catalog.metadata_files import own_files
from gateway.db import deleted, namespaces, tables, tasks
from gateway.db.engine import Connection
from gateway.db.outbox import Pending
from gateway.db.ownership import record_deleted
from gateway.db.tasks import Queue
from gateway.iceberg.errors import (
    CatalogError,
    NoSuchGenericTableException,
    NoSuchTableException,
    NoSuchViewException,
    ProtectedTabularDeletionWithoutForce,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.storage.registry import parse_location


class Files(StrEnum):
    """The handling of a table's files after its permanent deletion."""

    PURGE = "purge"
    KEEP = "keep"
    LAST = "last"
    """Delete the last metadata file after the cleanup window. Until then it can be registered again."""


async def drop_tabular(
    connection: Connection,
    permit: Permit[Operation],
    dropped: ResolvedTable | ResolvedView | ResolvedGenericTable,
    identifier: TableIdentifier,
    *,
    files: Files,
    force: bool,
    approval: Approval = UNCONDITIONAL,
) -> list[Pending]:
    """Drop a table or view in the transaction of `permit`. Return the keys of the tuples to deliver.

    If the warehouse has soft deletion, the row is marked as dropped. Lookups by name or id no longer find it, and its
    name is free. Location and grants are kept, and a task deletes it permanently when its time is over. `force` deletes
    permanently at once. `identifier` is the name in the request, for errors. `approval` is used up by the drop.

    Raises NoSuchTableException, NoSuchViewException or NoSuchGenericTableException if the object was dropped or moved
    meanwhile, ProtectedTabularDeletionWithoutForce, and DatabaseUnavailable while the task of an earlier drop is still
    running.
    """
    # A rename, or a move of the namespace, may have removed the object from the namespace of the decision.
    namespace_held = await namespaces.lock_if_unmoved(connection, dropped.namespace)
    now = await tables.hold_for_drop(connection, dropped.id) if namespace_held else None
    if now is None or now.namespace_id != dropped.namespace.id:
        raise _not_found(dropped, identifier)
    if now.protected and not force:
        raise ProtectedTabularDeletionWithoutForce.of(dropped.key.type.value, identifier)
    await approval.use(connection)
    location = parse_location(now.location)
    last = own_files(location, [now.metadata_location]) if files is Files.LAST else []
    payload: Mapping[str, str] = {"files": files.value, **({"last_file": last[0]} if last else {})}
    warehouse = dropped.warehouse
    if now.keep_seconds is not None and not force:
        await deleted.mark(connection, dropped.id, by=permit.actor.id)
        task = await tasks.add(
            connection,
            Queue.SOFT_DELETION,
            warehouse_id=warehouse.id,
            entity_id=dropped.id,
            entity_type=dropped.key.type.value,
            payload=payload,
            in_seconds=float(now.keep_seconds),
        )
        if task is None:
            # The running task of an earlier drop blocks a new one: without a task, the object would never be deleted.
            raise DatabaseUnavailable("the cleanup of an earlier drop of this table is still in progress")
        permit.pending_audit.add_details(kept_seconds=str(now.keep_seconds), files=files.value, location=now.location)
        return []
    await deleted.dispose_files(
        connection,
        dropped.id,
        payload,
        kind=dropped.key.type,
        warehouse_id=warehouse.id,
        location=now.location,
        location_key=now.location_key,
    )
    await tables.drop(connection, dropped.id, by=permit.actor.id)
    if files is Files.PURGE:
        permit.pending_audit.add_details(purge="scheduled", location=now.location)
    return await record_deleted(
        connection,
        dropped.key,
        dropped.namespace.key,
        above=above_table(dropped.namespace),
        warehouse_id=warehouse.id,
        by=permit.actor.id,
    )


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
