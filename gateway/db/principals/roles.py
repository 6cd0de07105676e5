# SPDX-License-Identifier: Apache-2.0
"""Statements on roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, or_, select
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_of
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.tuples import PrincipalType
from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.grants import grants
from gateway.db.schema.principals import roles
from gateway.iceberg.identifiers import fold


class RoleRow(NamedTuple):
    """A role."""

    id: UUID
    project_id: str
    name: str
    name_key: str
    description: str | None
    provider_id: str
    source_id: str
    created_at: datetime
    updated_at: datetime | None


class MemberRow(NamedTuple):
    """A principal in a role. Lists are ordered by its fields."""

    principal_type: str
    principal_id: str


_COLUMNS: Final = columns_for(RoleRow, roles)


class RoleClash(Exception):
    """The change conflicts with existing rows. The transaction cannot continue."""


class NameTaken(RoleClash):
    """Another role of the project has this name, irrespective of letter case."""


class SourceTaken(RoleClash):
    """Another role of the project has this provider and source id."""


class ProjectGone(RoleClash):
    """The project does not exist any more."""


@contextmanager
def _clashes() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        text = str(error.orig)
        kinds = (("name_key_key", NameTaken), ("source_id_key", SourceTaken), ("project_id_fkey", ProjectGone))
        for constraint, kind in kinds:
            if constraint in text:
                raise kind(constraint) from error
        raise


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    project_id: str,
    name: str,
    description: str | None,
    provider_id: str,
    source_id: str,
) -> RoleRow:
    """Insert a role and return its row. Raises RoleClash."""
    values = {"name": name, "name_key": fold(name), "description": description}
    statement = insert(roles).values(
        id=id, project_id=project_id, provider_id=provider_id, source_id=source_id, **values
    )
    with _clashes():
        row = await fetch_one(connection, RoleRow, statement.returning(*_COLUMNS))
    return row


async def update(connection: AsyncConnection, id: UUID, *, name: str, description: str | None) -> RoleRow | None:
    """Set the name and description of a role. Return its row, None if it does not exist. Raises RoleClash."""
    values = {"name": name, "name_key": fold(name), "description": description}
    return await _changed(connection, id, values)


async def update_source(connection: AsyncConnection, id: UUID, *, provider_id: str, source_id: str) -> RoleRow | None:
    """Set the provider of a role and its source id. Return its row, None if it does not exist. Raises RoleClash."""
    return await _changed(connection, id, {"provider_id": provider_id, "source_id": source_id})


async def _changed(connection: AsyncConnection, id: UUID, values: dict[str, str | None]) -> RoleRow | None:
    change = update_of(roles).where(roles.c.id == id).values(**values, updated_at=func.clock_timestamp())
    with _clashes():
        row = await fetch_optional(connection, RoleRow, change.returning(*_COLUMNS))
    return row


async def get(connection: AsyncConnection, id: UUID) -> RoleRow | None:
    """Return the role's row, or None."""
    return await fetch_optional(connection, RoleRow, select(*_COLUMNS).where(roles.c.id == id))


async def provider_of(connection: AsyncConnection, id: str) -> str | None:
    """Return the role's provider and lock it until the transaction ends. Return None if the role does not exist."""
    held = select(roles.c.provider_id).where(roles.c.id == UUID(id)).with_for_update(read=True)
    provider: str | None = (await connection.execute(held)).scalar_one_or_none()
    return provider


async def page(
    connection: AsyncConnection,
    project_id: str,
    *,
    ids: Sequence[UUID],
    source_ids: Sequence[str],
    provider_ids: Sequence[str],
    after: UUID | None,
    limit: int,
) -> Sequence[RoleRow]:
    """Return the project's roles that pass the filters, ordered by id. The page starts after `after`.

    An empty filter matches all roles.
    """
    statement = select(*_COLUMNS).where(roles.c.project_id == project_id).order_by(roles.c.id).limit(limit)
    if after is not None:
        statement = statement.where(roles.c.id > after)
    if ids:
        statement = statement.where(roles.c.id.in_(ids))
    if source_ids:
        statement = statement.where(roles.c.source_id.in_(source_ids))
    if provider_ids:
        statement = statement.where(roles.c.provider_id.in_(provider_ids))
    return await fetch_all(connection, RoleRow, statement)


async def members(
    connection: AsyncConnection,
    id: UUID,
    *,
    type: PrincipalType | None,
    after: tuple[str, str] | None,
    limit: int,
) -> Sequence[MemberRow]:
    """Return the principals with a live `assignee` grant on a role, each once. The page starts after `after`."""
    of = (grants.c.principal_type, grants.c.principal_id)
    statement = select(*of).distinct().where(*_memberships(), grants.c.object_id == str(id))
    if type is not None:
        statement = statement.where(grants.c.principal_type == type.value)
    if after is not None:
        kind, principal = after
        later = (grants.c.principal_type == kind) & (grants.c.principal_id > principal)
        statement = statement.where(or_(grants.c.principal_type > kind, later))
    return await fetch_all(connection, MemberRow, statement.order_by(*of).limit(limit))


async def member_of(
    connection: AsyncConnection,
    type: PrincipalType,
    id: str,
    *,
    project_id: str | None = None,
    by_group: Sequence[str] = (),
) -> Sequence[RoleRow]:
    """Return the roles of which a principal is `assignee` by a live grant, and the roles in `by_group`, ordered by
    name.

    `project_id` limits the result to one project.
    """
    held = select(grants.c.object_id).where(
        *_memberships(), grants.c.principal_type == type.value, grants.c.principal_id == id
    )
    ids = [*(await connection.execute(held.distinct())).scalars(), *by_group]
    return await named(connection, ids, project_id=project_id)


async def named(connection: AsyncConnection, ids: Sequence[str], *, project_id: str | None) -> Sequence[RoleRow]:
    """Return the roles with these ids, ordered by name. `project_id` limits the result to one project."""
    if not ids:
        return ()
    is_requested = roles.c.id.in_({UUID(each) for each in ids})
    statement = select(*_COLUMNS).where(is_requested).order_by(roles.c.name_key, roles.c.id)
    if project_id is not None:
        statement = statement.where(roles.c.project_id == project_id)
    return await fetch_all(connection, RoleRow, statement)


def _memberships() -> tuple[ColumnElement[bool], ...]:
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
    return grants.c.object_type == ObjectType.ROLE.value, grants.c.privilege == Privilege.ASSIGNEE.value, live


async def exist(connection: AsyncConnection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that belong to roles, and lock the roles against deletion until the transaction ends."""
    if not ids:
        return set()
    held = select(roles.c.id).where(roles.c.id.in_([UUID(id) for id in ids])).order_by(roles.c.id)
    found = await connection.execute(held.with_for_update(read=True, key_share=True))
    return {str(id) for id in found.scalars()}


async def delete(connection: AsyncConnection, id: UUID) -> str | None:
    """Delete a role. Return the project that contained it, None if it does not exist.

    Call `ownership.record_deleted` and `ownership.record_principal_deleted` in the same transaction afterwards.
    """
    gone = delete_from(roles).where(roles.c.id == id).returning(roles.c.project_id)
    return (await connection.execute(gone)).scalar_one_or_none()
