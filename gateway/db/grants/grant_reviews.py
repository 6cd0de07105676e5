# SPDX-License-Identifier: Apache-2.0
"""Statements on reviews: the grants on an object and below it, and the decisions about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal
from gateway.db.engine.object_locations import joined_locations, project_of
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.grant_reviews import grant_reviews


class ReviewedGrant(NamedTuple):
    """A live grant to decide about, by all its grantors together, and the warehouse of its object."""

    object_type: str
    object_id: str
    privilege: str
    principal_type: str
    principal_id: str
    warehouse_id: UUID | None

    @property
    def on(self) -> ObjectKey:
        """Return the object of the grant."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def place(self) -> Place:
        """Return the place of the grant in pages."""
        return self[:5]


Place = tuple[str, str, str, str, str]
"""(object type, object id, privilege, principal type, principal id) of a grant."""


class ReviewRow(NamedTuple):
    """A decision about a grant."""

    id: int
    privilege: str
    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    decision: str
    reason: str
    decided_by: str
    decided_at: datetime


_BELOW: Final = text(
    f"""
    select g.object_type, g.object_id, g.privilege, g.principal_type, g.principal_id, w.id as warehouse_id
    from grants g {joined_locations("g.object_type", "g.object_id")}
    left join namespaces tn on tn.id = t.namespace_id
    where g.object_type not in ('server', 'column') and (g.expires_at is null or g.expires_at > clock_timestamp())
        and (cast(:principal_type as text) is null
            or (g.principal_type = :principal_type and g.principal_id = cast(:principal_id as text)))
        and (cast(:privilege as text) is null or g.privilege = :privilege)
        and (cast(:after as text[]) is null or array[g.object_type, g.object_id, g.privilege, g.principal_type,
            g.principal_id] > cast(:after as text[]))
        and case cast(:root_type as text)
            when 'project' then {project_of("g.object_type", "g.object_id")} = :root_id
            when 'warehouse' then w.id::text = :root_id
            when 'namespace' then coalesce(n.id, tn.id)::text = :root_id
                or cast(:root_id as text) = any(cast(coalesce(n.ancestors, tn.ancestors) as text[]))
            else g.object_type = :root_type and g.object_id = :root_id end
    group by g.object_type, g.object_id, g.privilege, g.principal_type, g.principal_id, w.id
    having cast(:before as timestamptz) is null or max(g.granted_at) < cast(:before as timestamptz)
    order by array[g.object_type, g.object_id, g.privilege, g.principal_type, g.principal_id] limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)


async def below(
    connection: AsyncConnection,
    root: ObjectKey,
    *,
    principal: Principal | None,
    privilege: Privilege | None,
    before: datetime | None,
    after: Place | None,
    limit: int,
) -> Sequence[ReviewedGrant]:
    """Return live grants on an object and the objects below it, in the order of their places.

    Grants on columns and on the server are left out. `before` selects those whose newest grant is older. The page
    starts after the place `after`.
    """
    values = {
        "root_type": root.type.value,
        "root_id": root.id,
        "principal_type": None if principal is None else principal.type.value,
        "principal_id": None if principal is None else principal.id,
        "privilege": None if privilege is None else privilege.value,
        "before": before,
        "after": None if after is None else list(after),
        "limit": limit,
    }
    return await fetch_all(connection, ReviewedGrant, _BELOW, values)


async def record(
    connection: AsyncConnection,
    on: ObjectKey,
    entries: Sequence[tuple[Privilege, Principal]],
    *,
    decision: str,
    reason: str,
    by: str,
) -> None:
    """Record the decision about grants on one object."""
    if not entries:
        return
    await connection.execute(
        insert(grant_reviews),
        [
            {
                "privilege": privilege.value,
                "principal_type": principal.type.value,
                "principal_id": principal.id,
                "object_type": on.type.value,
                "object_id": on.id,
                "decision": decision,
                "reason": reason,
                "decided_by": by,
            }
            for privilege, principal in entries
        ],
    )


async def on_object(
    connection: AsyncConnection, on: ObjectKey, *, after: int | None, limit: int
) -> Sequence[ReviewRow]:
    """Return the decisions about grants on an object, latest first. The page starts after the id `after`."""
    statement = (
        select(*columns_for(ReviewRow, grant_reviews))
        .where(grant_reviews.c.object_type == on.type.value, grant_reviews.c.object_id == on.id)
        .order_by(grant_reviews.c.id.desc())
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(grant_reviews.c.id < after)
    return await fetch_all(connection, ReviewRow, statement)
