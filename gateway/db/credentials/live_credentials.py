# SPDX-License-Identifier: Apache-2.0
"""Statements on the register of live credentials, which are vended and not yet expired.

`audit_log.py` writes its rows, together with the audit records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, any_, case, delete, false, func, literal, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.live_credentials import LiveCredential
from gateway.db.pools.rows import fetch_all, fields_of
from gateway.db.schema.credentials import live_credentials
from gateway.db.schema.tables import LIVE, namespaces, tables
from gateway.db.schema.warehouses import warehouses
from gateway.iceberg.identifiers import TableIdentifier, fold

#: Compared with the clock of the database, which also wrote `live_until`.
_LIVE: Final = live_credentials.c.live_until > func.clock_timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of live credentials. A field that is None does not restrict it.

    `user` selects credentials that the user received, that were issued by its right as the owner of a view, and that it
    received as the engine of another user. `received_by` selects only those that the user received.
    """

    project_id: str | None = None
    warehouse_id: UUID | None = None
    table_id: UUID | None = None
    user: str | None = None
    received_by: str | None = None
    assumed_role: UUID | None = None

    def terms(self) -> list[ColumnElement[bool]]:
        """Return the conditions on the rows of `live_credentials`."""
        given: list[tuple[object, ColumnElement[bool]]] = [
            (self.project_id, live_credentials.c.project_id == self.project_id),
            (self.warehouse_id, live_credentials.c.warehouse_id == self.warehouse_id),
            (self.table_id, live_credentials.c.table_id == self.table_id),
            (self.user, concerns([self.user or ""])),
            (self.received_by, live_credentials.c.principal == self.received_by),
            (self.assumed_role, live_credentials.c.assumed_role == self.assumed_role),
        ]
        return [term for value, term in given if value is not None]


def concerns(users: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that one of the users received the credential, owns the view that it was issued below, or
    was the engine.
    """
    return or_(*(live_credentials.c[name].in_(users) for name in ("principal", "view_owner", "engine")))


async def page(
    connection: AsyncConnection, selection: Selection, *, after: UUID | None, limit: int
) -> Sequence[LiveCredential]:
    """Return live credentials, oldest first. `after` is the id of the last row of the previous page."""
    statement = select(*_columns()).where(_LIVE, *selection.terms())
    if after is not None:
        statement = statement.where(live_credentials.c.id > after)
    return await fetch_all(connection, LiveCredential, statement.order_by(live_credentials.c.id).limit(limit))


def _columns() -> list[ColumnElement[Any]]:
    generic = live_credentials.c.kind == ObjectType.GENERIC_TABLE.value
    by_kind = {
        "table_id": case((~generic, live_credentials.c.table_id)).label("table_id"),
        "generic_table_id": case((generic, live_credentials.c.table_id)).label("generic_table_id"),
    }
    return [by_kind[name] if name in by_kind else live_credentials.c[name] for name in fields_of(LiveCredential)]


async def remaining(
    connection: AsyncConnection, on: ObjectKey, *, project_id: str | None, users: Sequence[str] | None
) -> tuple[int, datetime | None]:
    """Return (number of live credentials for tables at or below an object, time at which the last of them has expired).

    `users` limits them to credentials that concern one of these users; None counts all. `project_id` is the project of
    a view or role.
    """
    statement = select(func.count(), func.max(live_credentials.c.live_until)).where(
        _LIVE, _within(on, project_id), true() if users is None else concerns(users)
    )
    count, until = (await connection.execute(statement)).one()
    return count, until


def _within(on: ObjectKey, project_id: str | None) -> ColumnElement[bool]:
    columns = live_credentials.c
    match on.type:
        case ObjectType.SERVER:
            return true()
        case ObjectType.PROJECT:
            return columns.project_id == on.id
        case ObjectType.WAREHOUSE:
            return columns.warehouse_id == UUID(on.id)
        case ObjectType.NAMESPACE:
            return columns.table_id.in_(_tables_below(UUID(on.id)))
        case ObjectType.TABLE | ObjectType.GENERIC_TABLE:
            return columns.table_id == UUID(on.id)
        case ObjectType.VIEW:
            # A definer view gives credentials for the tables below it, in any warehouse of the project.
            return (columns.project_id == project_id) & columns.view_owner.is_not(None)
        case ObjectType.ROLE | ObjectType.DATA_POLICY:
            return columns.project_id == project_id
        case _:
            return false()


def _tables_below(namespace_id: UUID) -> Select[Any]:
    """Return the ids of the tables in a namespace and in all namespaces below it, including dropped tables that can be
    restored.
    """
    below = select(namespaces.c.id).where(
        or_(namespaces.c.id == namespace_id, literal(namespace_id) == any_(namespaces.c.ancestors))
    )
    return select(tables.c.id).where(tables.c.namespace_id.in_(below))


async def warehouses_named(connection: AsyncConnection, name: str) -> Sequence[UUID]:
    """Return the ids of the warehouses with this name, of all projects."""
    return (
        (await connection.execute(select(warehouses.c.id).where(warehouses.c.name_key == fold(name)))).scalars().all()
    )


async def table_named(connection: AsyncConnection, warehouse_id: UUID, identifier: TableIdentifier) -> UUID | None:
    """Return the id of a table or generic table. Return None if no object has the name, or a view has it."""
    statement = select(tables.c.id).where(
        tables.c.namespace_id.in_(
            select(namespaces.c.id).where(
                namespaces.c.warehouse_id == warehouse_id, namespaces.c.path_key == identifier.namespace.key
            )
        ),
        tables.c.name_key == fold(identifier.name),
        tables.c.kind != ObjectType.VIEW.value,
        LIVE,
    )
    found: UUID | None = (await connection.execute(statement)).scalar_one_or_none()
    return found


async def counts(connection: AsyncConnection) -> Mapping[tuple[str, str], int]:
    """Return the number of live credentials by (provider, access level)."""
    columns = (live_credentials.c.provider, live_credentials.c.level)
    rows = (await connection.execute(select(*columns, func.count()).where(_LIVE).group_by(*columns))).all()
    return {(provider, level): count for provider, level, count in rows}


async def sweep(connection: AsyncConnection, *, older_than_minutes: int, limit: int) -> None:
    """Delete up to `limit` rows of credentials that expired more than `older_than_minutes` ago."""
    age = func.make_interval(0, 0, 0, 0, 0, older_than_minutes)
    old = (
        select(live_credentials.c.id)
        .where(live_credentials.c.live_until < func.clock_timestamp() - age)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    await connection.execute(delete(live_credentials).where(live_credentials.c.id.in_(old.scalar_subquery())))
