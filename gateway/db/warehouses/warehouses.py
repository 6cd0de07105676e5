# SPDX-License-Identifier: Apache-2.0
"""Statements on warehouses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import CursorResult, exists, func, literal, or_, select
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.operations.warehouse_bodies import PolicyLoss
from gateway.db.schema.tables import namespaces, pending_files
from gateway.db.schema.tasks import tasks
from gateway.db.schema.warehouses import warehouses
from gateway.db.tasks.tasks import ACTIVE
from gateway.iceberg.identifiers import fold

#: Serialises the overlap checks of storage bases. Warehouses are created rarely enough for a single lock.
_STORAGE_BASES = 0x1A4E0001


COLUMNS: Final = frozenset(warehouses.c.keys())
"""The names of all columns of a warehouse."""


class WarehouseRow(NamedTuple):
    """A warehouse. `columns` are all columns by name: the API copies those that requests state by their names."""

    id: UUID
    project_id: str
    name: str
    active: bool
    protected: bool
    profile: bytes
    profile_version: int
    secret_id: UUID | None
    credential_kind: str | None
    managed_by: str
    policy_loss: PolicyLoss
    updated_at: datetime | None
    columns: Mapping[str, Any]


def _rows(result: CursorResult[Any]) -> list[WarehouseRow]:
    return [WarehouseRow._make([*(row[name] for name in WarehouseRow._fields[:-1]), row]) for row in result.mappings()]


class NameTaken(Exception):
    """Another warehouse of the project has this name, irrespective of letter case. The transaction cannot continue."""


class ProjectGone(Exception):
    """The project was deleted after the request resolved it. The transaction cannot continue."""


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    project_id: str,
    name: str,
    profile: bytes,
    key_seconds: int,
    base_key: str,
    secret_id: UUID | None,
    credential_kind: str | None,
    stated: Mapping[str, object],
) -> bool:
    """Insert the warehouse. Return False if its name is taken in the project. Raises ProjectGone.

    `key_seconds` is the lifetime of the profile's credentials, with a tolerance for clocks; 0 if it vends none.
    `stated` are the columns that the request sets directly (`STATED`).
    """
    statement = (
        insert(warehouses)
        .values(
            id=id,
            project_id=project_id,
            name=name,
            name_key=fold(name),
            profile=profile,
            key_seconds=key_seconds,
            base_key=base_key,
            secret_id=secret_id,
            credential_kind=credential_kind,
            revision=uuid7(),
            **stated,
        )
        .on_conflict_do_nothing(index_elements=["project_id", "name_key"])
    )
    try:
        return (await connection.execute(statement)).rowcount == 1
    except IntegrityError as error:
        if "project_id_fkey" in str(error.orig):
            raise ProjectGone(project_id) from error
        raise


async def claim_base(connection: AsyncConnection, base_key: str) -> bool:
    """Lock all storage bases against other claims until the transaction ends. Return `base_is_free` for this one."""
    await connection.execute(select(func.pg_advisory_xact_lock(_STORAGE_BASES)))
    return await base_is_free(connection, base_key)


async def base_is_free(connection: AsyncConnection, base_key: str, *, except_id: UUID | None = None) -> bool:
    """Return True if the base does not equal, contain or lie inside of that of any other warehouse of any project.

    The warehouse `except_id` is not considered.
    """
    statement = select(literal(1)).where(
        func.starts_with(warehouses.c.base_key, base_key) | func.starts_with(literal(base_key), warehouses.c.base_key)
    )
    if except_id is not None:
        statement = statement.where(warehouses.c.id != except_id)
    return (await connection.execute(statement.limit(1))).one_or_none() is None


async def name_is_free(connection: AsyncConnection, project_id: str, name: str) -> bool:
    """Return True if no warehouse of the project has this name, ignoring letter case."""
    taken = select(literal(1)).where(warehouses.c.project_id == project_id, warehouses.c.name_key == fold(name))
    return (await connection.execute(taken)).one_or_none() is None


async def of_project(connection: AsyncConnection, project_id: str, *, active: Sequence[bool]) -> list[WarehouseRow]:
    """Return the project's warehouses whose state is among `active`, ordered by name."""
    statement = select(warehouses).where(warehouses.c.project_id == project_id, warehouses.c.active.in_(list(active)))
    return _rows(await connection.execute(statement.order_by(warehouses.c.name_key)))


async def get(connection: AsyncConnection, id: UUID) -> WarehouseRow | None:
    """Return the warehouse's row. Return None if it does not exist."""
    return next(iter(_rows(await connection.execute(select(warehouses).where(warehouses.c.id == id)))), None)


async def locked(connection: AsyncConnection, id: UUID, *, to_delete: bool = False) -> WarehouseRow | None:
    """Return the row as `get` does, and lock the warehouse against changes until the transaction ends.

    With `to_delete`, no row that refers to the warehouse can be inserted either: such a transaction waits, and then
    finds the warehouse deleted.
    """
    statement = select(warehouses).where(warehouses.c.id == id).with_for_update(key_share=not to_delete)
    return next(iter(_rows(await connection.execute(statement))), None)


async def update(connection: AsyncConnection, id: UUID, values: Mapping[str, object]) -> WarehouseRow:
    """Change a warehouse that `locked` has locked, and return its row. Raises NameTaken."""
    named = {"name_key": fold(str(values["name"]))} if "name" in values else {}
    changed = update_of(warehouses).where(warehouses.c.id == id)
    changed = changed.values(**values, **named, updated_at=func.clock_timestamp())
    try:
        (row,) = _rows(await connection.execute(changed.returning(warehouses)))
        return row
    except IntegrityError as error:
        if "name_key" in str(error.orig):
            raise NameTaken("another warehouse of the project has this name") from error
        raise


async def unfinished(connection: AsyncConnection, id: UUID) -> bool:
    """Return True if the warehouse has active tasks or pending metadata files."""
    busy = select(
        or_(
            exists().where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE)),
            exists().where(pending_files.c.warehouse_id == id),
        )
    )
    return (await connection.execute(busy)).scalar_one() is True


async def give_up_unfinished(connection: AsyncConnection, id: UUID) -> tuple[list[str], list[str]]:
    """Delete active tasks and pending metadata files, in the transaction that deletes the warehouse.

    Return (the locations whose files were to be deleted, the pending metadata files). A worker that runs one of the
    tasks gets TaskLost.
    """
    busy = select(tasks.c.payload["location"].astext).where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE))
    locations = (await connection.execute(busy.order_by(tasks.c.id).with_for_update())).scalars()
    left = sorted({location for location in locations if location is not None})
    await connection.execute(delete_from(tasks).where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE)))
    noted = delete_from(pending_files).where(pending_files.c.warehouse_id == id).returning(pending_files.c.location)
    return left, sorted((await connection.execute(noted)).scalars())


async def is_empty(connection: AsyncConnection, id: UUID) -> bool:
    """Return True if the warehouse contains no namespace. All other contents are in namespaces."""
    return (await connection.execute(select(exists().where(namespaces.c.warehouse_id == id)))).scalar_one() is False


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Delete an empty warehouse that `locked` has locked with `to_delete`, and that has nothing unfinished.

    Rows about the warehouse that are not content are deleted with it (`on delete cascade`). Call
    `ownership.record_deleted` in the same transaction afterwards.
    """
    await connection.execute(delete_from(warehouses).where(warehouses.c.id == id))
