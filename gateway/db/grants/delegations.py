# SPDX-License-Identifier: Apache-2.0
"""List the recorded grants of `delegate`: those of an engine, or all. OpenFGA then confirms each of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.delegate_grants import DelegateGrant, limits_of
from gateway.access.door.list_visibility import Holders
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import PrincipalType
from gateway.db.pools.rows import fetch_all


class DelegateRow(NamedTuple):
    """A grant of `delegate`, with the project of its object."""

    object_type: str
    object_id: str
    principal_type: str
    expires_at: datetime | None
    acts_for: str | None
    project_id: str


class NamedDelegateRow(NamedTuple):
    """A grant of `delegate`, with the project of its object, and the names of object and holder."""

    id: UUID
    object_type: str
    object_id: str
    principal_type: str
    principal_id: str
    granted_at: datetime
    expires_at: datetime | None
    acts_for: str | None
    project_id: str
    object_name: str
    holder_name: str | None


_PLACES = text(
    """
    select g.object_type, g.object_id, g.principal_type, g.expires_at, g.acts_for,
        coalesce(w.project_id, g.object_id) as project_id
    from grants g left join warehouses w on w.id = case g.object_type when 'warehouse' then g.object_id::uuid end
    where (g.principal_type = 'user' and g.principal_id = cast(:user as text)
           or g.principal_type = 'role' and g.principal_id = any(cast(:roles as text[])))
        and g.privilege = :delegate and (g.expires_at is null or g.expires_at > clock_timestamp())
    order by g.object_type, g.object_id, g.id limit :limit
    """
)


async def grants_of_engine(connection: AsyncConnection, engine: Holders, *, limit: int) -> Sequence[DelegateRow]:
    """Return the live grants of `delegate` to the engine or to one of its roles: on projects, then on warehouses."""
    values = {"user": engine.user, "roles": list(engine.roles), "delegate": Privilege.DELEGATE.value, "limit": limit}
    return await fetch_all(connection, DelegateRow, _PLACES, values)


_ALL = text(
    """
    select g.id, g.object_type, g.object_id, g.principal_type, g.principal_id, g.granted_at, g.expires_at, g.acts_for,
        p.id as project_id, coalesce(w.name, p.name) as object_name, coalesce(u.name, r.name) as holder_name
    from grants g
    left join warehouses w on w.id = case g.object_type when 'warehouse' then g.object_id::uuid end
    join projects p on p.id = coalesce(w.project_id, case g.object_type when 'project' then g.object_id end)
    left join users u on g.principal_type = 'user' and u.id = g.principal_id
    left join roles r on r.id = case g.principal_type when 'role' then g.principal_id::uuid end
    where g.object_type in ('project', 'warehouse') and g.privilege = :delegate
        and (g.expires_at is null or g.expires_at > clock_timestamp())
        and (cast(:project_id as text) is null or p.id = cast(:project_id as text))
        and (cast(:after as uuid) is null or g.id > cast(:after as uuid))
    order by g.id limit :limit
    """
)


async def all_grants(
    connection: AsyncConnection, *, project_id: str | None, after: UUID | None, limit: int
) -> Sequence[NamedDelegateRow]:
    """Return the live grants of `delegate` of all principals, oldest first, with the names of object and holder.

    `project_id` limits them to one project.
    """
    values = {"delegate": Privilege.DELEGATE.value, "project_id": project_id, "after": after, "limit": limit}
    return await fetch_all(connection, NamedDelegateRow, _ALL, values)


def grant_of(row: DelegateRow | NamedDelegateRow) -> DelegateGrant:
    """Return the grant behind a row of `grants_of_engine` or `all_grants`."""
    return DelegateGrant(
        on=ObjectKey(ObjectType(row.object_type), row.object_id),
        limits=limits_of(row.acts_for),
        expires_at=row.expires_at,
        direct=row.principal_type == PrincipalType.USER,
    )
