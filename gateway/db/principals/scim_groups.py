# SPDX-License-Identifier: Apache-2.0
"""Statements on roles that identity providers maintain as groups, by SCIM.

Each statement concerns one provider in one project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Text, cast, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.tuples import PrincipalType
from gateway.db.pools.rows import count_and_some, fetch_all, fetch_optional
from gateway.db.schema.grants import grants
from gateway.db.schema.principals import roles, scim_groups, scim_users
from gateway.iceberg.identifiers import fold


class GroupRow(NamedTuple):
    """A role that a provider maintains as a group. Its times are the creation and the last change of the group."""

    id: UUID
    project_id: str
    name: str
    description: str | None
    source_id: str
    provider_id: str
    external_id: str | None
    version: int
    created_at: datetime
    updated_at: datetime


class GroupMember(NamedTuple):
    """A user of a provider who is in a group. It has the group's id as text, and the user's SCIM id, id and name."""

    object_id: str
    id: UUID
    user_id: str
    user_name: str


_GROUPS = (
    select(*(roles.c[name] for name in GroupRow._fields[:5]), *(scim_groups.c[name] for name in GroupRow._fields[5:]))
    .select_from(roles.join(scim_groups, scim_groups.c.role_id == roles.c.id))
    .where(roles.c.provider_id == scim_groups.c.provider_id)
)


async def create(connection: AsyncConnection, *, role_id: UUID, provider_id: str, external_id: str | None) -> None:
    """Make an existing role a group of the provider."""
    await connection.execute(
        insert(scim_groups).values(role_id=role_id, provider_id=provider_id, external_id=external_id)
    )


async def is_provisioned(connection: AsyncConnection, role_id: UUID) -> bool:
    """Return True if a provider maintains the role as a group."""
    found = select(scim_groups.c.role_id).where(scim_groups.c.role_id == role_id)
    return (await connection.execute(found)).one_or_none() is not None


async def get(connection: AsyncConnection, provider_id: str, project_id: str, id: UUID) -> GroupRow | None:
    """Return the provider's group with this id in the project, or None."""
    return await fetch_optional(connection, GroupRow, _one(provider_id, project_id, id))


async def hold(connection: AsyncConnection, provider_id: str, project_id: str, id: UUID) -> GroupRow | None:
    """Return the group as `get` does, and lock it until this transaction ends."""
    held = _one(provider_id, project_id, id).with_for_update(of=scim_groups)
    return await fetch_optional(connection, GroupRow, held)


def _one(provider_id: str, project_id: str, id: UUID) -> Select[Any]:
    return _GROUPS.where(roles.c.id == id, roles.c.project_id == project_id, scim_groups.c.provider_id == provider_id)


async def changed(connection: AsyncConnection, id: UUID, *, external_id: str | None) -> None:
    """Set the external id of a locked group, and increase the version of the group."""
    await connection.execute(
        update(scim_groups)
        .where(scim_groups.c.role_id == id)
        .values(external_id=external_id, version=scim_groups.c.version + 1, updated_at=func.clock_timestamp())
    )


async def page(
    connection: AsyncConnection,
    *,
    provider_id: str,
    project_id: str,
    conditions: Mapping[str, Any],
    offset: int,
    limit: int,
) -> tuple[int, Sequence[GroupRow]]:
    """Return (the number of matching groups, one page of them in order of creation).

    They are the provider's groups in the project that meet the conditions. The keys of `conditions` are attributes in
    lower case.
    """
    statement = _GROUPS.where(
        scim_groups.c.provider_id == provider_id,
        roles.c.project_id == project_id,
        *(_condition(*each) for each in conditions.items()),
    )
    return await count_and_some(connection, GroupRow, statement.order_by(roles.c.id), offset=offset, limit=limit)


def _condition(attribute: str, value: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool]
    match attribute:
        case "id":
            condition = roles.c.id == value
        case "displayname":
            condition = roles.c.name_key == fold(value)
        case "externalid":
            condition = scim_groups.c.external_id == value
        case "members":
            in_it = (
                select(grants.c.id)
                .join(scim_users, scim_users.c.user_id == grants.c.principal_id)
                .where(*_membership(), grants.c.object_id == cast(roles.c.id, Text), scim_users.c.id == value)
            )
            condition = in_it.correlate(roles).exists()
        case _:
            raise LookupError(attribute)
    return condition


def _membership() -> tuple[ColumnElement[bool], ...]:
    live = grants.c.expires_at.is_(None) | (grants.c.expires_at > func.clock_timestamp())
    return (
        grants.c.object_type == ObjectType.ROLE.value,
        grants.c.privilege == Privilege.ASSIGNEE.value,
        grants.c.principal_type == PrincipalType.USER.value,
        live,
    )


async def members(
    connection: AsyncConnection, role_ids: Sequence[UUID], *, limit: int | None = None
) -> dict[UUID, list[GroupMember]] | None:
    """Return the provider's users in each of these groups.

    Return None if there are more than `limit` in all groups together.
    """
    found: dict[UUID, list[GroupMember]] = {id: [] for id in role_ids}
    if not role_ids:
        return found
    rows = (
        select(grants.c.object_id, scim_users.c.id, scim_users.c.user_id, scim_users.c.user_name)
        .distinct()
        .join(scim_users, scim_users.c.user_id == grants.c.principal_id)
        .where(*_membership(), grants.c.object_id.in_([str(id) for id in role_ids]))
        .order_by(grants.c.object_id, scim_users.c.id)
        .limit(None if limit is None else limit + 1)
    )
    held = await fetch_all(connection, GroupMember, rows)
    if limit is not None and len(held) > limit:
        return None
    for row in held:
        found[UUID(row.object_id)].append(row)
    return found


async def member_ids(connection: AsyncConnection, role_id: UUID) -> list[str]:
    """Return the gateway's ids of all users that are members, including members that the provider did not add."""
    held = select(grants.c.principal_id).distinct().where(*_membership(), grants.c.object_id == str(role_id))
    return list((await connection.execute(held.order_by(grants.c.principal_id))).scalars())
