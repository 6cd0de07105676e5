# SPDX-License-Identifier: Apache-2.0
"""Statements on warehouses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import exists, func, literal, or_, select, text
from sqlalchemy import update as update_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema.namespaces import namespaces
from gateway.db.schema.pending_files import pending_files
from gateway.db.schema.tasks import tasks
from gateway.db.schema.warehouses import warehouses
from gateway.db.tasks import ACTIVE
from gateway.iceberg.identifiers import fold

#: Serialises the overlap check of storage bases; warehouses are created rarely enough for one lock.
_STORAGE_BASES = 0x1A4E0001


COLUMNS: Final = frozenset(warehouses.c.keys())
"""The names of all columns of a warehouse."""


class NameTaken(Exception):
    """Another warehouse of the project has this name, in whatever letter case; the transaction is lost."""


class ProjectGone(Exception):
    """The project was deleted since the request resolved it; the transaction is lost."""


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
    stated: Mapping[str, object],
) -> bool:
    """Insert the warehouse; False when its name is taken in the project. Raises ProjectGone.

    `key_seconds`: how long the profile's keys may live, with the tolerance of clocks; 0 when it hands out none.
    `stated` are the columns that the request fills as they are (`STATED`).
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
    """As `base_is_free`, and it stays so until the transaction ends: nobody else claims one meanwhile."""
    await connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _STORAGE_BASES})
    return await base_is_free(connection, base_key)


async def base_is_free(connection: AsyncConnection, base_key: str, *, but: UUID | None = None) -> bool:
    """Whether no warehouse of any project, `but` this one, has a base equal to, above or below this one."""
    statement = select(literal(1)).where(
        func.starts_with(warehouses.c.base_key, base_key) | func.starts_with(literal(base_key), warehouses.c.base_key)
    )
    if but is not None:
        statement = statement.where(warehouses.c.id != but)
    return (await connection.execute(statement.limit(1))).one_or_none() is None


async def name_is_free(connection: AsyncConnection, project_id: str, name: str) -> bool:
    """Whether no warehouse of the project has this name, in whatever letter case."""
    taken = select(literal(1)).where(warehouses.c.project_id == project_id, warehouses.c.name_key == fold(name))
    return (await connection.execute(taken)).one_or_none() is None


async def of_project(connection: AsyncConnection, project_id: str, *, active: Sequence[bool]) -> Sequence[AnyRow]:
    """The project's warehouses with one of the given states, by name."""
    statement = select(warehouses).where(warehouses.c.project_id == project_id, warehouses.c.active.in_(list(active)))
    return (await connection.execute(statement.order_by(warehouses.c.name_key))).all()


async def get(connection: AsyncConnection, id: UUID) -> AnyRow | None:
    """The warehouse's whole row; None when it is gone."""
    return (await connection.execute(select(warehouses).where(warehouses.c.id == id))).one_or_none()


async def locked(connection: AsyncConnection, id: UUID, *, to_delete: bool = False) -> AnyRow | None:
    """As `get`, and nobody else changes the warehouse until the transaction ends; none is put into it either, when it
    is `to_delete`: what names it waits here, and finds it gone.
    """
    statement = select(warehouses).where(warehouses.c.id == id).with_for_update(key_share=not to_delete)
    return (await connection.execute(statement)).one_or_none()


async def update(connection: AsyncConnection, id: UUID, values: Mapping[str, object]) -> AnyRow:
    """Change a warehouse that is `locked`; its row. Raises NameTaken."""
    named = {"name_key": fold(str(values["name"]))} if "name" in values else {}
    changed = update_of(warehouses).where(warehouses.c.id == id)
    changed = changed.values(**values, **named, updated_at=func.clock_timestamp())
    try:
        row: AnyRow = (await connection.execute(changed.returning(warehouses))).one()
        return row
    except IntegrityError as error:
        if "name_key" in str(error.orig):
            raise NameTaken("another warehouse of the project has this name") from error
        raise


async def unfinished(connection: AsyncConnection, id: UUID) -> bool:
    """Whether tasks of the warehouse wait or run, or metadata files are being written or wait for their removal."""
    busy = select(
        or_(
            exists().where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE)),
            exists().where(pending_files.c.warehouse_id == id),
        )
    )
    return (await connection.execute(busy)).scalar_one() is True


async def give_up_unfinished(connection: AsyncConnection, id: UUID) -> tuple[list[str], list[str]]:
    """End what `unfinished` tells of, done or not, in the transaction that deletes the warehouse: (the places whose
    files were to be deleted, the metadata files that were). A worker that has one of the tasks finds that it lost it.
    """
    busy = select(tasks.c.payload["location"].astext).where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE))
    places = (await connection.execute(busy.order_by(tasks.c.id).with_for_update())).scalars()
    left = sorted({place for place in places if place is not None})
    await connection.execute(delete_from(tasks).where(tasks.c.warehouse_id == id, tasks.c.status.in_(ACTIVE)))
    noted = delete_from(pending_files).where(pending_files.c.warehouse_id == id).returning(pending_files.c.location)
    return left, sorted((await connection.execute(noted)).scalars())


async def is_empty(connection: AsyncConnection, id: UUID) -> bool:
    """Whether no namespace is in the warehouse; everything else in it lies in one."""
    return (await connection.execute(select(exists().where(namespaces.c.warehouse_id == id)))).scalar_one() is False


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Remove a warehouse that is `locked` to delete, is empty and has nothing unfinished.

    What is kept about a warehouse and is no part of its content goes with it (`on delete cascade`). Then
    `ownership.record_gone` in the same transaction.
    """
    await connection.execute(delete_from(warehouses).where(warehouses.c.id == id))
