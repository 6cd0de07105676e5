# SPDX-License-Identifier: Apache-2.0
"""Statements that list special grants: of privileges that restrict owners, of `delegate`, and on columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Text, func, literal_column, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.delegate_grants import DelegateGrant, limits_of
from gateway.access.door.list_visibility import Holders
from gateway.access.nouns.privileges import BINDING, Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.grants.grants import held_by
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.changes import model_switches, relationship_models
from gateway.db.schema.grants import grants

#: Since this version of the relationship model, owners and grant managers cannot give these privileges.
_SINCE: Final = (1, 10)


class BindingGrant(NamedTuple):
    """A grant, with the project and the name of its warehouse, and the current time."""

    privilege: str
    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    granted_by: str
    granted_at: datetime
    project_id: str
    warehouse_name: str
    now: datetime


_GRANTS: Final = text(
    """
    select g.privilege, g.principal_type, g.principal_id, g.object_type, g.object_id, g.granted_by, g.granted_at,
        w.project_id, w.name as warehouse_name, clock_timestamp() as now
    from grants g
    left join namespaces n on n.id = case g.object_type when 'namespace' then cast(g.object_id as uuid) end
    left join tables t on t.id = case when g.object_type in ('table', 'view', 'generic_table')
        then cast(g.object_id as uuid) end
    join warehouses w on w.id = case g.object_type when 'warehouse' then cast(g.object_id as uuid)
        else coalesce(n.warehouse_id, t.warehouse_id) end
    where g.privilege = any(cast(:privileges as text[]))
        and g.object_type in ('warehouse', 'namespace', 'table', 'view', 'generic_table')
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    order by w.project_id, g.granted_by, g.id
    """
)


async def binding_grants(connection: AsyncConnection) -> Sequence[BindingGrant]:
    """Return the live grants of the privileges in BINDING, on warehouses and below, ordered by project and grantor."""
    return await fetch_all(connection, BindingGrant, _GRANTS, {"privileges": [each.value for each in BINDING]})


async def warned_until(connection: AsyncConnection, days: float) -> datetime | None:
    """Return the time `days` after the first switch to a model in which owners cannot give the BINDING privileges.

    Return None if no such switch has happened.
    """
    switches = select(relationship_models.c.version, model_switches.c.switched_at)
    switches = switches.join(model_switches, model_switches.c.model_id == relationship_models.c.model_id)
    rows = (await connection.execute(switches.order_by(model_switches.c.id))).all()
    times = [row.switched_at for row in rows if _numbers(row.version) >= _SINCE]
    return times[0] + timedelta(days=days) if times else None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in a recorded version, such as `1.10` or `1.10+own`."""
    return tuple(int(each) for each in version.partition("+")[0].split("."))


class DelegateRow(NamedTuple):
    """A grant of `delegate`, with the project of its object."""

    object_type: str
    object_id: str
    principal_type: str
    expires_at: datetime | None
    acts_for: str | None
    project_id: str


class NamedDelegateRow(NamedTuple):
    """A grant of `delegate`, with the project of its object, and the names of its object and of its holder."""

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
    """Return the live grants of `delegate` to the engine or to one of its roles.

    Grants on projects precede those on warehouses.
    """
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
    """Return the live grants of `delegate` to all principals, oldest first, with the names of object and holder.

    `project_id` limits them to one project.
    """
    values = {"delegate": Privilege.DELEGATE.value, "project_id": project_id, "after": after, "limit": limit}
    return await fetch_all(connection, NamedDelegateRow, _ALL, values)


def grant_of(row: DelegateRow | NamedDelegateRow) -> DelegateGrant:
    """Return the grant in a row of `grants_of_engine` or `all_grants`."""
    return DelegateGrant(
        on=ObjectKey(ObjectType(row.object_type), row.object_id),
        limits=limits_of(row.acts_for),
        expires_at=row.expires_at,
        direct=row.principal_type == PrincipalType.USER,
    )


_table: ColumnElement[str] = func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1"))
#: True for a grant on a column. The type is a literal, because the planner cannot use the partial index with a
#: parameter.
ON_A_COLUMN = grants.c.object_type == literal_column("'column'", Text)


async def granted_on(
    connection: AsyncConnection, table_id: UUID, *, of: Principal | None = None, after: UUID | None, limit: int
) -> Sequence[GrantRow]:
    """Return the live grants on all columns of a table, oldest first. The page starts after the id `after`.

    With `of`, return only grants to this principal.
    """
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
    statement = (
        select(*columns_for(GrantRow, grants))
        .where(ON_A_COLUMN, _table == str(table_id), live, *held_by(of))
        .order_by(grants.c.id)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(grants.c.id > after)
    return await fetch_all(connection, GrantRow, statement)
