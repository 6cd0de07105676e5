# SPDX-License-Identifier: Apache-2.0
"""Read creations and revocations that OpenFGA has not received yet, so that decisions are correct meanwhile.

The tuples of a creation are the edge of a new object to its parent and its creator's ownership. Tuples of moves, of
roles and of other grants are left out: for these, OpenFGA decides by the tuples that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import text

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.tuples.desired_tuples import desired_tuples
from gateway.db.tuples.outbox import STRUCTURAL

#: One more than the number of contextual tuples that OpenFGA accepts with a check, so that more of them are noticed.
_MOST = 101

# An object is left out if the outbox removes one of its tuples, because it is then being moved, deleted or revoked.
_PENDING = text(
    """
    with asked as materialized (
        select * from unnest(cast(:types as text[]), cast(:ids as text[])) as a(type, id)),
    spaces as (
        select t.namespace_id as id from asked a join tables t on t.id = cast(a.id as uuid) and t.kind = a.type
        union select cast(a.id as uuid) from asked a where a.type = 'namespace'),
    things as (
        select type, id from asked
        union select 'namespace', cast(u.id as text) from spaces s join namespaces n on n.id = s.id
            cross join lateral unnest(n.ancestors || n.id) u(id))
    select distinct o.subject_type, o.subject_id, o.relation, o.object_type, o.object_id
    from things x
    join outbox edge on edge.object_id = x.id and edge.object_type = x.type and edge.relation = 'parent'
        and not edge.takes_away
    join outbox o on o.written_in = edge.written_in and o.object_id = x.id and o.object_type = x.type
        and o.relation in ('parent', 'ownership') and not o.takes_away
    where not exists (select 1 from outbox gone where gone.object_id = x.id and gone.object_type = x.type
        and gone.relation in ('parent', 'ownership') and gone.takes_away)
    limit :most
    """
)


class PendingCreations:
    """Implements the port of pending creations (`gateway.access.ports.Creations`) on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pending(self, objects: Sequence[ObjectKey]) -> Mapping[TupleKey, datetime | None]:
        """Return the undelivered tuples of the creations of `objects` and of their containers, each with its expiry.

        They are read from the primary, after the revisions of the request. A revocation that was acknowledged earlier
        has removed its row, so its tuple is not returned. Raises DatabaseUnavailable.
        """
        values = {
            "types": [each.type.value for each in objects],
            "ids": [each.id for each in objects],
            "most": _MOST,
        }
        async with self._database.read() as connection:
            keys = []
            for row in await connection.execute(_PENDING, values):
                subject: Principal | ObjectKey = (
                    ObjectKey(ObjectType(row.subject_type), row.subject_id)
                    if row.relation in STRUCTURAL
                    else Principal(PrincipalType(row.subject_type), row.subject_id)
                )
                keys.append(TupleKey(subject, row.relation, ObjectKey(ObjectType(row.object_type), row.object_id)))
            return await desired_tuples(connection, keys)


# Each key of a role or of a container may concern the principal. Keys of dropped objects are left out, because no
# decision finds such an object.
_REVOCATIONS = DirectRead(
    text(
        """
        select exists (
            select 1 from outbox o
            where o.takes_away and (o.subject_type <> 'user' or o.subject_id in (cast(:id as text), '*'))
                and case
                    when o.object_type in ('table', 'view', 'generic_table', 'column') then exists (
                        select 1 from tables t where t.id = cast(split_part(o.object_id, '.', 1) as uuid))
                    when o.object_type = 'namespace' then exists (
                        select 1 from namespaces n where n.id = cast(o.object_id as uuid))
                    else true end) as pending
        """
    )
)


class PendingRevocations:
    """Implements the port of pending revocations (`gateway.access.ports.Revocations`) on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pending(self, actor: Actor) -> bool:
        """Return True if OpenFGA has not received a revocation that may concern the actor.

        Raises DatabaseUnavailable.
        """
        return bool((await self._database.read_one(_REVOCATIONS, {"id": actor.id})).pending)
