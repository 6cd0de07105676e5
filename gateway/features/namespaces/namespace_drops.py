# SPDX-License-Identifier: Apache-2.0
"""Drop namespaces: an empty one, or one with all its contents."""

from __future__ import annotations

from functools import partial

from gateway.access.door.permit import Permit
from gateway.access.events.change_event import DroppedObject, FurtherChanges
from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.namespaces import DropNamespace
from gateway.db.engine.database import Connection
from gateway.db.tables import namespace_drop, namespaces, tables
from gateway.db.tables.namespace_drop import Tabular, Tree
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_deleted
from gateway.features.contents.containers import above_namespace, parent_of
from gateway.iceberg.errors import (
    ChildNamespaceProtected,
    ChildTabularProtected,
    NamespaceHasRunningTabularExpirations,
    NamespaceNotEmptyException,
    NamespaceProtected,
    NoSuchNamespaceException,
)
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.iceberg.properties import GC_ENABLED, flag


async def drop_empty(connection: Connection, permit: Permit[DropNamespace]) -> list[Pending]:
    """Drop an empty namespace. Return the keys of the tuples to deliver.

    Raises NoSuchNamespaceException, NamespaceProtected without `force`, NamespaceNotEmptyException, and
    NamespaceHasRunningTabularExpirations if the namespace contains soft-deleted tables or views.
    """
    row = permit.namespace(permit.operation.namespace)
    inside = await namespaces.lock_and_find_obstacle(connection, row)
    if inside is None:
        raise NoSuchNamespaceException.of(row.namespace)
    if inside.protected and not permit.operation.force:
        raise _protected(row.namespace)
    if inside.filled:
        raise NamespaceNotEmptyException.of(row.namespace)
    if inside.kept:
        raise _waiting(row.namespace)
    await namespaces.drop_empty(connection, row.id)
    return await record_deleted(
        connection,
        row.key,
        parent_of(row),
        above=above_namespace(row),
        warehouse_id=row.warehouse.id,
        by=permit.actor.id,
    )


async def drop_tree(connection: Connection, permit: Permit[DropNamespace]) -> list[Pending]:
    """Drop a namespace with all its contents, in one transaction. Return the keys of the tuples to deliver.

    The contents cannot be undropped. So in a warehouse with soft deletion `force` is required. Without it, tables and
    views cause NamespaceNotEmptyException, and soft-deleted ones cause NamespaceHasRunningTabularExpirations. Raises
    NamespaceProtected, ChildNamespaceProtected and ChildTabularProtected without `force`, and NoSuchNamespaceException.
    """
    operation = permit.operation
    row = permit.namespace(operation.namespace)
    tree = await namespace_drop.lock(connection, row)
    if tree is None:
        raise NoSuchNamespaceException.of(row.namespace)
    if not operation.force:
        _refuse_protected(tree)
        if any(each.deleted_at is not None for each in tree.tabulars):
            raise _waiting(row.namespace)
        if row.warehouse.soft_deletion and any(each.staged_by is None for each in tree.tabulars):
            raise NamespaceNotEmptyException(
                f"Namespace {row.namespace.dotted} is not empty, and dropped tables and views in its warehouse can "
                "be restored. Drop its tables and views and wait until they expire, or send force=true to delete them "
                "permanently."
            )
    purge = not await tables.keeps_files(connection, row.warehouse.id) if operation.purge is None else operation.purge
    purged = [each for each in tree.tabulars if _purged(each, purge)]
    permit.pending_audit.add_details(
        namespaces=" ".join(str(each.id) for each in tree.namespaces),
        tabulars=" ".join(str(each.id) for each in tree.tabulars),
        purged=str(len(purged)),
    )
    permit.pending_audit.further_changes = partial(_contents, tree)
    return await namespace_drop.remove(connection, tree, purged=purged, by=permit.actor.id)


def _contents(tree: Tree) -> FurtherChanges:
    """Return the dropped contents for their events: tables and views first, then namespaces from the bottom up. Staged
    tables have no events, because they were not visible.
    """
    levels = {each.id: tuple(each.levels) for each in tree.namespaces}
    tabulars = [
        DroppedObject(each.kind, str(each.id), levels[each.namespace_id], each.name, each.deleted_at is not None)
        for each in tree.tabulars
        if each.staged_by is None
    ]
    below = sorted((each for each in tree.namespaces if each.id != tree.top.id), key=lambda each: -len(each.levels))
    spaces = [DroppedObject("namespace", str(each.id), tuple(each.levels)) for each in below]
    return FurtherChanges.limited([*tabulars, *spaces])


def _refuse_protected(tree: Tree) -> None:
    top, *below = tree.namespaces
    if top.protected:
        raise _protected(tree.top.namespace)
    for each in below:
        if each.protected:
            raise ChildNamespaceProtected(
                f"Namespace {Namespace(tuple(each.levels)).dotted} is protected. Remove its protection first, or "
                "send force=true."
            )
    levels = {each.id: tuple(each.levels) for each in tree.namespaces}
    for inside in tree.tabulars:
        if inside.protected:
            named = TableIdentifier(Namespace(levels[inside.namespace_id]), inside.name).dotted
            raise ChildTabularProtected(
                f"The {inside.kind.replace('_', ' ')} {named} is protected. Remove its protection first, or send "
                "force=true."
            )


def _purged(row: Tabular, purge: bool) -> bool:
    """Return True if the files of the row are to be deleted.

    Files of staged tables are always deleted. Files of adopted generic tables and of tables with `gc.enabled=false` are
    not: other tables may use them.
    """
    if row.staged_by is not None:
        return True
    if not purge or row.kind == ObjectType.VIEW:
        return purge
    if row.adopted:
        return False
    return flag({} if row.gc_enabled is None else {GC_ENABLED: row.gc_enabled}, GC_ENABLED, default=True)


def _protected(namespace: Namespace) -> NamespaceProtected:
    return NamespaceProtected(
        f"Namespace {namespace.dotted} is protected. Remove its protection first, or send force=true."
    )


def _waiting(namespace: Namespace) -> NamespaceHasRunningTabularExpirations:
    return NamespaceHasRunningTabularExpirations(
        f"Namespace {namespace.dotted} contains dropped tables or views that can still be restored. Wait until they "
        "expire, or drop the namespace with recursive=true and force=true."
    )
