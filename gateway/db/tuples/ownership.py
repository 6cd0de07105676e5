# SPDX-License-Identifier: Apache-2.0
"""Tuples of the life of an object: the edge to its parent, its creator's ownership, and `traverse` on its
containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.events.unrequested_events import ExpiredGrant
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.grants import grant_ends, grants
from gateway.db.grants.grant_ends import GrantRow, LiveOrExpired
from gateway.db.policies import mapping_tables
from gateway.db.tuples import managed_access, outbox
from gateway.db.tuples.desired_tuples import TRAVERSE, containers_of, following, principals_below
from gateway.db.tuples.new_objects import record_owned
from gateway.db.tuples.outbox import Pending


def owner_of_new(actor: Actor) -> Principal:
    """Return the owner of what this caller creates: the assumed role, else the caller."""
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
    """Record the ownership of `owner`, by default the creator, and enqueue the tuples.

    They are the edge, the ownership, and `traverse` on every container above where it may be missing (`new_objects`).
    `alone` is False if the transaction changes other rows of tables afterwards.
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
    """Record the ownership of the creator of a role, tag or data policy, and enqueue the tuples of edge and ownership.

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

    Call it after the row of the user or role is deleted: then no new grant and no new entry can be made.
    """
    await mapping_tables.delete_entries_of(connection, principal)
    keys = await _required_by(connection, await grant_ends.sweep_principal(connection, principal, by=by))
    return await outbox.enqueue_each(connection, keys, takes_away=True)


async def record_created_grants_ended(
    connection: AsyncConnection, user: Principal, *, until: datetime, by: str
) -> list[Pending]:
    """As `record_principal_deleted`, for the grants that the user got by creating objects up to the time `until`."""
    keys = await _required_by(connection, await grant_ends.sweep_own(connection, user, until=until, by=by))
    return await outbox.enqueue_each(connection, keys, takes_away=True)


async def record_suspended(
    connection: AsyncConnection, user_id: str, *, inactive: bool, own: bool = False
) -> list[Pending]:
    """Enqueue the tuples of all grants of a user: absent while the user is `inactive`, else as the grants require.

    The grants stay. Call it with the user's row locked and its new state written. `own` limits it to grants that the
    user got by creating objects, which the lock does not prevent.
    """
    keys = await _required_by(connection, await grants.of_user(connection, user_id, own=own))
    return await outbox.enqueue_each(connection, keys, takes_away=inactive)


async def record_expired(connection: AsyncConnection, *, limit: int) -> tuple[list[Pending], Sequence[LiveOrExpired]]:
    """End some expired grants and enqueue their tuples. Return (the tuples to deliver, the rows of the grants).

    It revokes nothing: the rights and cached decisions ended with the expiry.
    """
    rows = await grant_ends.sweep_expired(connection, limit=limit)
    return await outbox.enqueue_each(connection, await _required_by(connection, rows), takes_away=False), rows


async def describe_expired(connection: AsyncConnection, rows: Sequence[LiveOrExpired]) -> list[ExpiredGrant]:
    """Return the expired grants of `rows` with the places of their objects, for events."""
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
    """Return the id of the project that an object is or is in; an empty text for one outside of projects."""
    return next((each.id for each in (on, *above) if each.type is ObjectType.PROJECT), "")


async def _required_by(
    connection: AsyncConnection, rows: Sequence[GrantRow | LiveOrExpired]
) -> list[tuple[TupleKey, UUID | None]]:
    """Return the keys of all tuples that these rows of `grants` require or required, each with its warehouse."""
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
    are given from the project down. Each step is delivered after the one before, also by another process. Every step
    may revoke rights, so the move is answered after all of them.
    """
    principals = await principals_below(connection, moved)
    arriving = [TupleKey(p, TRAVERSE, c) for c in above_after if c not in above_before for p in principals]
    leaving = [TupleKey(p, TRAVERSE, c) for c in reversed(above_before) if c not in above_after for p in principals]
    edges = [TupleKey(after, "parent", moved), TupleKey(before, "parent", moved)]
    return [
        await outbox.enqueue(connection, keys, takes_away=True, warehouse_id=warehouse_id, step=step)
        for step, keys in enumerate((arriving, edges, leaving))
    ]
