# SPDX-License-Identifier: Apache-2.0
"""Enqueue the tuples of objects that are created, moved or deleted: the edge to the parent, ownership, and `traverse`.

One statement records the ownership of a new object and enqueues its tuples, in the transaction that inserts the object.

The owner needs `traverse` on every container above, which makes the container visible. These tuples exist already if
the owner has a permanent grant on another object in the same namespace and no delivery of them is pending. In this case
they are not enqueued. The statement locks the namespace, that grant and that object until the commit. So a concurrent
transaction that ends that grant finds the new one, which still requires `traverse`, and no delivery in the meantime
removes the tuples.

Only the edge to the parent and the ownership are enqueued then. Their keys contain the id of the new object. No other
transaction knows this id before the commit, so no earlier write of these tuples can exist, and the rows require both
without an expiry. So the outbox rows are inserted with the record of a write (`sent_at`). The request writes the tuples
right after the commit, without an advisory lock and without a read of the desired tuples (`new_tuple_delivery`). A
later transaction that ends such a grant enqueues the same key. Its delivery finds the record, and is not confirmed
before that write has its outcome: the rule for every write in flight (`delivery`).

Otherwise all keys are enqueued and delivered like those of any change.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.events.unrequested_events import ExpiredGrant
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.privileges import TRAVERSE_REASONS, Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.grants import grant_ends, grants
from gateway.db.grants.grant_ends import GrantRow, LiveOrExpired
from gateway.db.policies import mapping_tables
from gateway.db.tuples import managed_access, outbox
from gateway.db.tuples.desired_tuples import TRAVERSE, containers_of, following, principals_below
from gateway.db.tuples.outbox import FIRST_BACKGROUND_TRY_SECONDS, Pending, key_arrays


def owner_of_new(actor: Actor) -> Principal:
    """Return the owner of the objects that this caller creates: the assumed role, or else the caller."""
    if actor.assumed_role is not None:
        return Principal(PrincipalType.ROLE, str(actor.assumed_role))
    return Principal(PrincipalType.USER, actor.id)


async def record_new(
    connection: AsyncConnection,
    actor: Actor,
    created: ObjectKey,
    parent: ObjectKey,
    *,
    above: Sequence[ObjectKey],
    warehouse_id: UUID,
    owner: Principal | None = None,
    alone: bool = True,
) -> list[Pending]:
    """Record the ownership of `owner`, by default the creator, and enqueue the tuples of a new object.

    They are the edge, the ownership, and `traverse` on every container above where it may be missing. `alone` is False
    if the transaction changes other rows of tables afterwards.
    """
    return await record_owned(
        connection,
        created,
        parent,
        owner=owner or owner_of_new(actor),
        by=actor.id,
        above=above,
        warehouse_id=warehouse_id,
        alone=alone,
    )


async def record_new_in_project(
    connection: AsyncConnection, actor: Actor, created: ObjectKey, project: ObjectKey
) -> list[Pending]:
    """Record that the creator owns a new role, tag or data policy. Enqueue the tuples of its edge and ownership.

    These types have no `traverse` on their project.
    """
    owner = owner_of_new(actor)
    await grants.grant(connection, privilege=Privilege.OWNERSHIP, principal=owner, on=created, by=actor.id)
    keys = [
        TupleKey(project, CARDS[created.type].edge, created),
        TupleKey(owner, Privilege.OWNERSHIP.value, created),
    ]
    return await outbox.enqueue(connection, keys, takes_away=False)


async def record_deleted(
    connection: AsyncConnection,
    gone: ObjectKey,
    parent: ObjectKey,
    *,
    above: Sequence[ObjectKey],
    warehouse_id: UUID | None,
    by: str | None = None,
) -> list[Pending]:
    """End the grants on a deleted object and enqueue its tuples for deletion.

    `by` is the principal that deleted it, for the history. The grants that a deleted role holds are ended by
    `record_principal_deleted`.
    """
    keys = [TupleKey(parent, CARDS[gone.type].edge, gone)]
    if gone.type in managed_access.FLAGGED:
        keys.extend(managed_access.keys(gone))
    for row in await grant_ends.sweep(connection, [gone], by=by):
        keys.extend(following(grants.tuple_of(row), (gone, *above)))
    return await outbox.enqueue(connection, keys, takes_away=True, warehouse_id=warehouse_id)


async def record_principal_deleted(connection: AsyncConnection, principal: Principal, *, by: str) -> list[Pending]:
    """End all grants of a deleted user or role and enqueue their tuples for deletion. Delete its mapping entries.

    Call it after the row of the user or role is deleted, because then no new grant and no new entry can be made.
    """
    await mapping_tables.delete_entries_of(connection, principal)
    keys = await _required_by(connection, await grant_ends.sweep_principal(connection, principal, by=by))
    return await outbox.enqueue_each(connection, keys, takes_away=True)


async def record_created_grants_ended(
    connection: AsyncConnection, user: Principal, *, until: datetime, by: str
) -> list[Pending]:
    """End the grants that the user got by creating objects up to the time `until`, as `record_principal_deleted`
    does.
    """
    keys = await _required_by(connection, await grant_ends.sweep_own(connection, user, until=until, by=by))
    return await outbox.enqueue_each(connection, keys, takes_away=True)


async def record_suspended(
    connection: AsyncConnection, user_id: str, *, inactive: bool, own: bool = False
) -> list[Pending]:
    """Enqueue the tuples of all grants of a user. While the user is `inactive`, no tuple of them is required.

    The grants stay. Call it with the user's row locked and its new state written. `own` limits it to grants that the
    user got by creating objects, which the lock does not prevent.
    """
    keys = await _required_by(connection, await grants.of_user(connection, user_id, own=own))
    return await outbox.enqueue_each(connection, keys, takes_away=inactive)


async def record_expired(connection: AsyncConnection, *, limit: int) -> tuple[list[Pending], Sequence[LiveOrExpired]]:
    """End some expired grants and enqueue their tuples. Return (the tuples to deliver, the rows of the grants).

    Nothing is revoked: the rights and cached decisions ended with the expiry.
    """
    rows = await grant_ends.sweep_expired(connection, limit=limit)
    return await outbox.enqueue_each(connection, await _required_by(connection, rows), takes_away=False), rows


async def describe_expired(connection: AsyncConnection, rows: Sequence[LiveOrExpired]) -> list[ExpiredGrant]:
    """Return the expired grants of `rows` with the project and warehouse of their objects, for events."""
    objects = {row.id: grants.tuple_of(row).object for row in rows}
    places = await containers_of(connection, list(objects.values()))
    still_granted = await grant_ends.still_granted(connection, rows)
    return [
        ExpiredGrant(
            id=row.id,
            privilege=row.privilege,
            principal=Principal(PrincipalType(row.principal_type), row.principal_id),
            on=(on := objects[row.id]),
            project_id=project_above(on, places[on].above),
            warehouse_id=places[on].warehouse_id,
            expired_at=row.expires_at,
            still_granted=row.id in still_granted,
        )
        for row in rows
        if row.expires_at is not None
    ]


def project_above(on: ObjectKey, above: Sequence[ObjectKey]) -> str:
    """Return the id of the project that an object is in, or that it is.

    Return an empty text for an object outside of projects.
    """
    return next((each.id for each in (on, *above) if each.type is ObjectType.PROJECT), "")


async def _required_by(
    connection: AsyncConnection, rows: Sequence[GrantRow | LiveOrExpired]
) -> list[tuple[TupleKey, UUID | None]]:
    """Return the keys of all tuples that these rows of `grants` require, or required before they ended, each with its
    warehouse.
    """
    own = [grants.tuple_of(row) for row in rows]
    containers_by_object = await containers_of(connection, [key.object for key in own])
    keys: list[tuple[TupleKey, UUID | None]] = []
    for key in own:
        containers = containers_by_object[key.object]
        keys.extend((each, containers.warehouse_id) for each in following(key, containers.above))
    return keys


Steps = Sequence[Sequence[Pending]]
"""Keys to deliver, step by step. A step can be delivered repeatedly."""


async def record_moved(
    connection: AsyncConnection,
    moved: ObjectKey,
    before: ObjectKey,
    after: ObjectKey,
    *,
    above_before: Sequence[ObjectKey],
    above_after: Sequence[ObjectKey],
    warehouse_id: UUID,
) -> Steps:
    """Enqueue the tuples of a move: `traverse` above the new place, the edges, then `traverse` above the old place.

    Call it with the object's row locked and updated: then the grants that are read here are complete. The containers
    are given from the project down. Each step is delivered after the one before, even by another process. Every step
    may revoke rights, so the response to the move is sent after all of them.
    """
    principals = await principals_below(connection, moved)
    arriving = [TupleKey(p, TRAVERSE, c) for c in above_after if c not in above_before for p in principals]
    leaving = [TupleKey(p, TRAVERSE, c) for c in reversed(above_before) if c not in above_after for p in principals]
    edges = [TupleKey(after, "parent", moved), TupleKey(before, "parent", moved)]
    return [
        await outbox.enqueue(connection, keys, takes_away=True, warehouse_id=warehouse_id, step=step)
        for step, keys in enumerate((arriving, edges, leaving))
    ]


async def record_owned(
    connection: AsyncConnection,
    created: ObjectKey,
    parent: ObjectKey,
    *,
    owner: Principal,
    by: str,
    above: Sequence[ObjectKey],
    warehouse_id: UUID,
    alone: bool = True,
) -> list[Pending]:
    """Record that `by` gives `owner` the ownership of a new object, enqueue the tuples, and return them.

    This transaction has inserted the object with a new id. Call it with the namespace of the object locked against
    moves (`namespaces.lock_shared`). With `alone`, the transaction locks no further row of `tables`: the lock on
    another object could otherwise cause a deadlock.
    """
    own = [TupleKey(parent, "parent", created), TupleKey(owner, Privilege.OWNERSHIP.value, created)]
    paths = [TupleKey(owner, TRAVERSE, container) for container in above]
    inside = parent if alone and parent.type is ObjectType.NAMESPACE else None
    values = {
        **key_arrays([*own, *paths]),
        "own": len(own),
        "warehouse_id": warehouse_id,
        "later": FIRST_BACKGROUND_TRY_SECONDS,
        "grant_id": uuid7(),
        "privilege": Privilege.OWNERSHIP.value,
        "principal_type": owner.type.value,
        "principal_id": owner.id,
        "object_type": created.type.value,
        "object_id": created.id,
        "granted_by": by,
        "namespace": None if inside is None else UUID(inside.id),
        "looked_at": _LATEST_GRANTS,
    }
    noted = time.monotonic()
    rows = (await connection.execute(_RECORD, values)).all()
    # The ids of the rows ascend in the order of the keys. The edge and the ownership come first, and are always
    # enqueued.
    ordered = sorted(rows, key=lambda row: int(row.id))
    keys = [*own, *(paths if len(rows) > len(own) else ())]
    pending = [Pending(row.id, key, False, warehouse_id) for row, key in zip(ordered, keys, strict=True)]
    return [
        each if row.sent_at is None else replace(each, sent_at=row.sent_at, noted=noted)
        for each, row in zip(pending, ordered, strict=True)
    ]


_LATEST_GRANTS: Final = 16
"""The number of the owner's latest grants among which a reason for `traverse` is searched."""

_REASONS: Final = ", ".join(f"'{privilege.value}'" for privilege in sorted(TRAVERSE_REASONS))

# The search for a reason for `traverse` skips rows that another transaction has locked: their grant may be about to end
# or to move. `for share` suffices for the object, because a rename or move updates its row without changing a key of
# the table.
_RECORD: Final = text(
    f"""
    with granted as (
        insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by)
        values (cast(:grant_id as uuid), :privilege, :principal_type, :principal_id, :object_type, :object_id,
            :granted_by)),
    asked as materialized (
        select * from unnest(cast(:subject_types as text[]), cast(:subject_ids as text[]), cast(:relations as text[]),
                cast(:object_types as text[]), cast(:object_ids as text[]))
            with ordinality as a(subject_type, subject_id, relation, object_type, object_id, ord)),
    latest as materialized (
        select g.id, g.object_type, g.object_id from grants g
        where g.principal_type = :principal_type and g.principal_id = :principal_id
            and cast(:namespace as uuid) is not null
        order by g.id desc limit :looked_at),
    reason as materialized (
        select g.id from latest l join grants g on g.id = l.id
        join tables t on t.kind = l.object_type
            and t.id = case when l.object_type in ('table', 'view', 'generic_table') then l.object_id::uuid end
        where t.namespace_id = cast(:namespace as uuid) and g.privilege in ({_REASONS}) and g.expires_at is null
        limit 1 for share of t skip locked for key share of g skip locked),
    known as materialized (
        select exists (select 1 from reason) and not exists (
            select 1 from scim_users u where :principal_type = 'user' and u.user_id = :principal_id and not u.active)
        and not exists (
            select 1 from asked a join outbox o on o.object_id = a.object_id and o.subject_id = a.subject_id
                and o.relation = a.relation and o.object_type = a.object_type and o.subject_type = a.subject_type
            where a.ord > :own) as it)
    insert into outbox (subject_type, subject_id, relation, object_type, object_id, warehouse_id, takes_away, step,
        not_before, sent_at)
    select a.subject_type, a.subject_id, a.relation, a.object_type, a.object_id, cast(:warehouse_id as uuid), false, 0,
        clock_timestamp() + make_interval(secs => :later),
        case when known.it then clock_timestamp() end
    from asked a, known where a.ord <= :own or not known.it
    order by a.ord returning id, sent_at
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)
