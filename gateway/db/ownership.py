# SPDX-License-Identifier: Apache-2.0
"""What comes, goes and moves with an object: the edge to its parent, its creator's ownership, and the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.privileges import TRAVERSE_REASONS, Privilege
from gateway.access.refs import ObjectKey
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db import grants, outbox
from gateway.db.outbox import Pending
from gateway.db.wanted import TRAVERSE


def owner_of_new(actor: Actor) -> Principal:
    """Who owns what this caller creates: the assumed role if there is one, else the caller."""
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
) -> list[Pending]:
    """Record the creator's ownership and enqueue the tuples: edge, ownership, and `traverse` on every
    container above.
    """
    owner = owner_of_new(actor)
    await grants.give(connection, privilege=Privilege.OWNERSHIP, principal=owner, on=created, by=actor.id)
    keys = [
        TupleKey(parent, "parent", created),
        TupleKey(owner, Privilege.OWNERSHIP.value, created),
        *(TupleKey(owner, TRAVERSE, container) for container in above),
    ]
    return await outbox.enqueue(connection, keys, takes_away=False, warehouse_id=warehouse_id)


async def record_gone(
    connection: AsyncConnection,
    gone: ObjectKey,
    parent: ObjectKey,
    *,
    above: Sequence[ObjectKey],
    warehouse_id: UUID,
) -> list[Pending]:
    """Sweep the grants of an object that goes and enqueue what its tuples are to become: nothing."""
    keys = [TupleKey(parent, "parent", gone)]
    for row in await grants.sweep(connection, [gone]):
        principal = Principal(PrincipalType(row.principal_type), row.principal_id)
        keys.append(TupleKey(principal, row.privilege, gone))
        keys.append(TupleKey(principal, TRAVERSE, gone))
        keys.extend(TupleKey(principal, TRAVERSE, container) for container in above)
    return await outbox.enqueue(connection, list(dict.fromkeys(keys)), takes_away=True, warehouse_id=warehouse_id)


Steps = Sequence[Sequence[Pending]]
"""Keys to be made so, one step after the other; each can be delivered again and again."""


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
    """Enqueue what a move means for the tuples: the way to the new place, the parent's edge, the way to the old one.

    Section 5 of the design, "Traverse". Call it with the object's row locked, after it names its new parent: then the
    grants read here are all there are. The containers are given from the project down.
    """
    reasons = {privilege.value for privilege in TRAVERSE_REASONS}
    principals = dict.fromkeys(
        Principal(PrincipalType(row.principal_type), row.principal_id)
        for row in await grants.on_object(connection, moved)
        if row.privilege in reasons
    )
    arriving = [TupleKey(p, TRAVERSE, c) for c in above_after if c not in above_before for p in principals]
    leaving = [TupleKey(p, TRAVERSE, c) for c in reversed(above_before) if c not in above_after for p in principals]
    edges = [TupleKey(after, "parent", moved), TupleKey(before, "parent", moved)]
    return (
        await outbox.enqueue(connection, arriving, takes_away=False, warehouse_id=warehouse_id),
        await outbox.enqueue(connection, edges, takes_away=True, warehouse_id=warehouse_id),
        await outbox.enqueue(connection, leaving, takes_away=True, warehouse_id=warehouse_id),
    )
