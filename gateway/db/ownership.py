# SPDX-License-Identifier: Apache-2.0
"""What comes into being with an object: the edge to its parent, its creator's ownership, and the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.privileges import Privilege
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
