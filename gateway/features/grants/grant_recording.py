# SPDX-License-Identifier: Apache-2.0
"""Record a change of grants in its transaction: lock the object, change the rows, and enqueue their tuples."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.access.delegate_grants import limits_text
from gateway.access.management_errors import TupleAlreadyExists, TupleNotFound
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import (
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
    warehouse_of,
)
from gateway.access.operations.grants import Assignment, WritingGrants
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Connection
from gateway.db.grants import grants
from gateway.db.policies import data_policy_bindings
from gateway.db.tables import tables
from gateway.db.tuples import grant_writes, outbox
from gateway.db.tuples.desired_tuples import Containers, containers_of, following
from gateway.db.tuples.outbox import Pending
from gateway.features.grants.columns import GrantObject, refuse_another_column


async def lock(connection: Connection, key: ObjectKey, row: Resolved, change: WritingGrants) -> Containers:
    """Lock the object for a change of its grants and return its place. Raises the 404 of an absent object.

    On a dropped object that can be restored, grants may be revoked but not added. The lock serializes changes of one
    object's grants. Without it, two requests with different orders could deadlock. The containers are locked before any
    grant row changes. A namespace move also locks namespaces before grants, so the two cannot deadlock. For grants on a
    data policy, the warehouses in which it is bound get a new revision, which locks their rows.
    """
    kept = not change.writes
    above: Sequence[ObjectKey] | None = await grant_writes.lock_object(connection, key, kept=kept)
    if above is None:
        await grants.lock_object(connection, key)
        if not await grants.lock_object_shared(connection, key, kept=kept):
            raise not_found(change.on)
        above = await _reread_containers(connection, row)
    if key.type is ObjectType.DATA_POLICY:
        await data_policy_bindings.touch_warehouses(connection, UUID(key.id))
    warehouse = warehouse_of(row)
    return Containers(None if warehouse is None else warehouse.id, tuple(above))


async def _reread_containers(connection: Connection, row: Resolved) -> Sequence[ObjectKey]:
    """Read the containers of the object again under its lock, because it may have been renamed or moved since
    resolution.
    """
    match row:
        case ResolvedTable(id=id) | ResolvedView(id=id) | ResolvedGenericTable(id=id):
            return await tables.containers(connection, id)
        case ResolvedNamespace():
            return (await containers_of(connection, [row.key]))[row.key].above
        case ResolvedWarehouse(project_id=project_id):
            return [ObjectKey(ObjectType.PROJECT, project_id)]
        case _:
            return []


async def record_new(
    connection: Connection, on: ObjectKey, place: Containers, change: WritingGrants, by: str
) -> list[Pending] | None:
    """Record a change that only adds grants, in one statement. Return the keys of their tuples. Return None for
    another change.

    Return None also for grants on roles and on the server (they have further rules) and for new subjects of policies.
    """
    if not change.writes or change.deletes or on.type in (ObjectType.ROLE, ObjectType.SERVER):
        return None
    if any(each.privilege is Privilege.SUBJECT for each in change.writes):
        return None
    entries = dict.fromkeys(
        grant_writes.NewGrant(each.privilege, each.principal, each.reason, each.expires_at, limits_text(each.acts_for))
        for each in change.writes
    )
    if len({(each.privilege, each.principal) for each in entries}) < len(change.writes):
        return None
    keys = tuple_keys(on, place.above, change.writes)
    return await grant_writes.grant_new(
        connection, list(entries), on=on, by=by, keys=keys, warehouse_id=place.warehouse_id
    )


async def revoke(
    connection: Connection,
    on: GrantObject,
    entries: Sequence[Assignment],
    by: str,
    *,
    strict: bool,
    granted_for: str | None,
) -> None:
    """Revoke the grants of all grantors, or only those with the reason `granted_for`.

    With `strict`, raises TupleNotFound for one that does not exist.
    """
    for entry in entries:
        taken = await grants.revoke(
            connection,
            privilege=entry.privilege,
            principal=entry.principal,
            on=on.key,
            by=by,
            granted_for=granted_for,
        )
        if strict and not taken:
            raise TupleNotFound(
                f"The grant to revoke does not exist: {entry.principal.id} has no {entry.privilege} on this object."
            )
        if not taken:
            await refuse_another_column(connection, on, entry)


async def grant(
    connection: Connection, on: ObjectKey, entries: Sequence[Assignment], by: str, *, strict: bool
) -> list[Assignment]:
    """Record the grants, and return those that end sooner than before, or have narrower limits.

    With `strict`, raises TupleAlreadyExists if any grantor has already granted one of the entries on the object.
    """
    held = await grants.held_of(connection, on, [entry.key for entry in entries]) if strict else ()
    for entry in entries:
        if entry.key in held:
            raise TupleAlreadyExists(f"{entry.principal.id} already has {entry.privilege} on this object.")
    return [
        entry
        for entry in entries
        if await grants.grant(
            connection,
            privilege=entry.privilege,
            principal=entry.principal,
            on=on,
            by=by,
            reason=entry.reason,
            expires_at=entry.expires_at,
            acts_for=limits_text(entry.acts_for),
        )
        is grants.Change.SHORTENED
    ]


async def enqueue(
    connection: Connection,
    on: ObjectKey,
    place: Containers,
    writes: Sequence[Assignment],
    less: Sequence[Assignment],
) -> tuple[Sequence[Pending], Sequence[Pending]]:
    """Enqueue the tuples of the grants. `less` are the entries that take rights away, among them grants in `writes`."""
    more = tuple_keys(on, place.above, [entry for entry in writes if entry not in less])
    given = await outbox.enqueue(connection, more, takes_away=False, warehouse_id=place.warehouse_id)
    taken = tuple_keys(on, place.above, less)
    return given, await outbox.enqueue(connection, taken, takes_away=True, warehouse_id=place.warehouse_id)


def tuple_keys(on: ObjectKey, above: Sequence[ObjectKey], entries: Sequence[Assignment]) -> list[TupleKey]:
    """Return the tuples of the grants and the tuples derived from them."""
    keys: dict[TupleKey, None] = {}
    for entry in entries:
        grant = TupleKey(entry.principal, entry.privilege.value, on)
        keys.update(dict.fromkeys(following(grant, above)))
    return list(keys)
