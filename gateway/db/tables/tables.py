# SPDX-License-Identifier: Apache-2.0
"""Statements on tables, views and generic tables: their rows, metadata pointers and locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Integer, TextClause, bindparam, delete, false, func, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.tables import LIVE, namespaces, tables
from gateway.db.schema.warehouses import warehouses
from gateway.db.tables import retired_locations
from gateway.db.tables.excerpts import document_values
from gateway.db.tables.retired_locations import REACHABLE, overlaps
from gateway.db.tasks.tasks import ACTIVE, PurgedLocation, Queue
from gateway.db.tasks.tasks import add as add_task
from gateway.db.tuples.desired_tuples import path_above
from gateway.iceberg.identifiers import fold

_EXPLICIT_LOCATIONS = 0x1A4E0002


class Clash(Exception):
    """The name or the location is taken. The transaction cannot continue."""


@contextmanager
def clashes() -> Iterator[None]:
    """Context manager. Converts the violation of a constraint into Clash."""
    try:
        yield
    except IntegrityError as error:
        raise Clash("the name or the location is taken") from error


async def name_taken(connection: AsyncConnection, namespace_id: UUID, name: str) -> str | None:
    """Return the kind (`table`, `view`, `generic_table`) of the object with this name in the namespace, or None."""
    at = {"namespace_id": namespace_id, "name_key": fold(name)}
    kind: str | None = (await connection.execute(_NAME_TAKEN, at)).scalar_one_or_none()
    return kind


_NAME_TAKEN = select(tables.c.kind).where(
    tables.c.namespace_id == bindparam("namespace_id", type_=tables.c.namespace_id.type),
    tables.c.name_key == bindparam("name_key"),
    LIVE,
)


async def read_name_taken(database: Database, namespace_id: UUID, name: str) -> str | None:
    """Return the result of `name_taken`, read on a connection of its own. Raises DatabaseUnavailable."""
    at = {"namespace_id": namespace_id, "name_key": fold(name)}
    kind: str | None = (await database.read_one(_READ_NAME_TAKEN, at)).kind
    return kind


_READ_NAME_TAKEN = DirectRead(select(_NAME_TAKEN.scalar_subquery().label("kind")))


async def hold_explicit_locations(connection: AsyncConnection) -> None:
    """Keep other transactions from checking or using any location until this one ends."""
    await connection.execute(_HOLD_EXPLICIT)


async def lock_place(connection: AsyncConnection, namespace: ResolvedNamespace, *, explicit: bool) -> bool:
    """Lock a namespace, then the use of a location, until the transaction ends. Return False if the namespace is gone.

    The namespace is locked as `namespaces.lock_shared` does; it is gone if it was dropped or moved. An `explicit`
    location is locked as `hold_explicit_locations` does. Default locations are locked against explicit ones only.
    """
    values = {"namespace": namespace.id}
    row = (await connection.execute(_LOCK_EXPLICIT if explicit else _LOCK_DEFAULT, values)).one_or_none()
    return row is not None and row.path_key == namespace.namespace.key and tuple(row.ancestors) == namespace.ancestors


_HOLD_EXPLICIT = text(f"select pg_advisory_xact_lock({_EXPLICIT_LOCATIONS})")


def _lock_place(lock: str) -> TextClause:
    return text(
        f"""
        with held as materialized (
            select path_key, ancestors from namespaces where id = cast(:namespace as uuid) for key share)
        select path_key, ancestors, {lock}({_EXPLICIT_LOCATIONS}) from held
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    )


_LOCK_EXPLICIT = _lock_place("pg_advisory_xact_lock")
_LOCK_DEFAULT = _lock_place("pg_advisory_xact_lock_shared")


async def location_taken(
    connection: AsyncConnection,
    location_key: str,
    ancestors: Sequence[str],
    *,
    other_than: UUID | None = None,
    owners: Sequence[str] = (),
) -> bool:
    """Return True if this location overlaps another one of any project: equal, above or below.

    Compared are locations of other tables and views, including staged ones, retired locations with valid credentials,
    and locations with a pending purge. `owners` are principals (`user:<id>`, `role:<id>`) whose retired locations count
    as free, unless a purge is pending. It is one statement, so that a table that is deleted concurrently counts as a
    table or as a retired location.
    """
    values = {**retired_locations.around(location_key, ancestors), "other_than": other_than, "owners": list(owners)}
    return bool((await connection.execute(_LOCATION_TAKEN, values)).scalar_one())


_NOT_OWN: Final = "t.id is distinct from cast(:other_than as uuid)"
_STILL_RESERVED: Final = f"""{REACHABLE} and r.table_id is distinct from cast(:other_than as uuid)
    and not r.owners && cast(:owners as text[])"""

LOCATION_TAKEN: Final = f"""
    select {overlaps("tables", "t", _NOT_OWN)} or {overlaps("retired_locations", "r", _STILL_RESERVED)}
    or exists (
        select 1 from tasks k where k.queue = '{Queue.TABULAR_PURGE}'
            and k.status in ({", ".join(f"'{status}'" for status in ACTIVE)})
            and (k.payload->>'location_key' = any(:at) or starts_with(k.payload->>'location_key', :key)))
"""  # noqa: S608 - composed of constants; every value is a bound parameter
"""The query of `location_taken`, with its parameters."""

_LOCATION_TAKEN = text(LOCATION_TAKEN)


async def location_in_use(connection: AsyncConnection, location_key: str, ancestors: Sequence[str]) -> bool:
    """Return True if this location overlaps the current location of any table or view, including staged ones."""
    found = await connection.execute(_LOCATION_IN_USE, retired_locations.around(location_key, ancestors))
    return bool(found.scalar_one())


_LOCATION_IN_USE = text(f"select {overlaps('tables', 't')}")


async def schedule_purge(
    connection: AsyncConnection,
    id: UUID,
    *,
    warehouse_id: UUID,
    location: str,
    location_key: str,
    kind: str = "table",
    parent: UUID | None = None,
    in_seconds: float = 0.0,
) -> None:
    """Schedule the deletion of the files below a location, in the transaction that deletes its row.

    It is due after `in_seconds`. `parent` is the task that deletes the row.
    """
    await add_task(
        connection,
        Queue.TABULAR_PURGE,
        warehouse_id=warehouse_id,
        entity_id=id,
        entity_type=kind,
        payload=PurgedLocation(location, location_key),
        parent=parent,
        in_seconds=in_seconds,
    )


class DroppedStaged(NamedTuple):
    """A staged table that was deleted."""

    id: UUID
    warehouse_id: UUID
    location: str
    location_key: str


class StagedRow(NamedTuple):
    """A staged table."""

    id: UUID
    table_uuid: UUID
    location: str


class DroppingRow(NamedTuple):
    """A table or view that is to be dropped.

    `keep_seconds` is the time for which its warehouse keeps dropped objects, None if it does not. `keeps_files` is true
    if the warehouse keeps the files of a drop without `purgeRequested`.
    """

    namespace_id: UUID
    location: str
    location_key: str
    metadata_location: str | None
    protected: bool
    keep_seconds: int | None
    keeps_files: bool


class Pointer(NamedTuple):
    """The current document of a table or view."""

    metadata_location: str | None
    metadata: bytes | None
    version: int


class LockedRow(NamedTuple):
    """The location of a locked table or view, its protection and version."""

    namespace_id: UUID
    name_key: str
    protected: bool
    version: int


async def drop_staged(
    connection: AsyncConnection, id: UUID | None = None, *, namespace_id: UUID | None = None
) -> Sequence[DroppedStaged]:
    """Delete one staged table, or all in a namespace, and schedule the purge of their locations. Return the rows."""
    statement = delete(tables).where(
        tables.c.staged_by.is_not(None),
        tables.c.id == id if namespace_id is None else tables.c.namespace_id == namespace_id,
    )
    gone = await fetch_all(connection, DroppedStaged, statement.returning(*columns_for(DroppedStaged, tables)))
    for row in gone:
        await schedule_purge(
            connection, row.id, warehouse_id=row.warehouse_id, location=row.location, location_key=row.location_key
        )
    return gone


async def staged(
    connection: AsyncConnection, *, namespace_id: UUID, name: str, location: str, staged_by: str
) -> StagedRow | None:
    """Return and lock the caller's staged table with this name and the exact `location`; None if it does not exist.

    A location that differs in letter case belongs to another staged table: it was checked, and credentials were vended,
    for that table only.
    """
    statement = (
        select(*columns_for(StagedRow, tables))
        .where(
            tables.c.namespace_id == namespace_id,
            tables.c.name_key == fold(name),
            tables.c.location == location,
            tables.c.staged_by == staged_by,
        )
        .with_for_update()
    )
    return await fetch_optional(connection, StagedRow, statement)


async def is_staged(connection: AsyncConnection, id: UUID, *, location_key: str) -> bool:
    """Return True if a staged table has this id and location. It is False after the table was created or deleted."""
    statement = select(tables.c.id).where(
        tables.c.id == id, tables.c.location_key == location_key, tables.c.staged_by.is_not(None)
    )
    return (await connection.execute(statement)).one_or_none() is not None


async def staged_location(
    connection: AsyncConnection, id: UUID, *, namespace_id: UUID, name: str, staged_by: str
) -> str | None:
    """Return the location of a user's staged table with this name. Return None if it was created or deleted."""
    statement = select(tables.c.location).where(
        tables.c.id == id,
        tables.c.namespace_id == namespace_id,
        tables.c.name_key == fold(name),
        tables.c.staged_by == staged_by,
    )
    found: str | None = (await connection.execute(statement)).scalar_one_or_none()
    return found


async def finish_staged(
    connection: AsyncConnection, id: UUID, *, name: str, table_uuid: UUID, metadata_location: str, metadata: bytes
) -> None:
    """Turn the staged row into a table. Raises Clash if the name was taken meanwhile."""
    statement = (
        update(tables)
        .where(tables.c.id == id)
        .values(
            name=name,
            table_uuid=table_uuid,
            staged_by=None,
            updated_at=func.clock_timestamp(),
            **await document_values("table", metadata_location, metadata),
        )
    )
    with clashes():
        await connection.execute(statement)


#: True if the warehouse keeps the files of a drop without `purgeRequested` (`access/operations/warehouse_bodies.py`).
KEEPS_FILES = func.coalesce(warehouses.c.delete_profile["absent-purge-requested"].astext == "keep", false())


async def keeps_files(connection: AsyncConnection, warehouse_id: UUID) -> bool:
    """Return True if the warehouse keeps the files of a drop without `purgeRequested`."""
    found = await connection.execute(select(KEEPS_FILES).where(warehouses.c.id == warehouse_id))
    return found.scalar_one_or_none() is True


async def hold_for_drop(connection: AsyncConnection, id: UUID) -> DroppingRow | None:
    """Lock the row of a table or view that is to be dropped, and return it. Return None if it does not exist."""
    own = [tables.c[name] for name in DroppingRow._fields[:-2]]
    keep = warehouses.c.delete_profile["expiration-seconds"].astext.cast(Integer)
    statement = (
        select(*own, keep.label("keep_seconds"), KEEPS_FILES.label("keeps_files"))
        .join_from(tables, warehouses, warehouses.c.id == tables.c.warehouse_id)
        .where(tables.c.id == id, LIVE)
        .with_for_update(of=tables)
    )
    return await fetch_optional(connection, DroppingRow, statement)


async def drop(connection: AsyncConnection, id: UUID, *, by: str) -> None:
    """Delete the row of a table or view. `by` is the principal that is recorded with the retired location."""
    await connection.execute(delete(tables).where(tables.c.id == id))
    await retired_locations.retired_by(connection, id, by)


async def formats(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the formats of these generic tables by id. Missing tables are left out."""
    found = await connection.execute(select(tables.c.id, tables.c.format).where(tables.c.id.in_(list(ids))))
    return {row.id: row.format for row in found}


async def wait_for_writers(connection: AsyncConnection, id: UUID) -> None:
    """Wait for transactions that change the table, and lock it. Reads after this call return stable results."""
    await connection.execute(select(tables.c.id).where(tables.c.id == id).with_for_update())


async def hold_version(connection: AsyncConnection, id: UUID, version: int) -> bool:
    """Lock the table against changes until this transaction ends. Return False if `version` is outdated."""
    statement = select(tables.c.id).where(tables.c.id == id, tables.c.version == version, LIVE)
    return (await connection.execute(statement.with_for_update(read=True))).one_or_none() is not None


async def pointer(connection: AsyncConnection, id: UUID) -> Pointer | None:
    """Return the pointer to the current document of a table or view. Return None if the object does not exist."""
    statement = select(*columns_for(Pointer, tables)).where(tables.c.id == id)
    return await fetch_optional(connection, Pointer, statement)


async def lock(connection: AsyncConnection, id: UUID) -> LockedRow | None:
    """Lock the table or view exclusively, and return its row. Return None if it does not exist.

    Transactions that grant privileges on it lock the row too (`grants.lock_object_shared`), so its grants are stable.
    """
    statement = select(*columns_for(LockedRow, tables)).where(tables.c.id == id, LIVE).with_for_update()
    return await fetch_optional(connection, LockedRow, statement)


async def containers(connection: AsyncConnection, id: UUID) -> list[ObjectKey]:
    """Return the containers of the table or view, starting with the project. Lock its row first.

    Its namespace is locked against moves until this transaction ends.
    """
    row = (await connection.execute(_CONTAINERS, {"table": id})).one()
    return path_above(row.project_id, str(row.id), [str(each) for each in (*row.ancestors, row.parent)])


_CONTAINERS = (
    select(warehouses.c.project_id, warehouses.c.id, namespaces.c.ancestors, namespaces.c.id.label("parent"))
    .join_from(tables, namespaces, namespaces.c.id == tables.c.namespace_id)
    .join(warehouses, warehouses.c.id == tables.c.warehouse_id)
    .where(tables.c.id == bindparam("table"))
    .with_for_update(read=True, key_share=True, of=namespaces)
)


async def move(connection: AsyncConnection, id: UUID, *, namespace_id: UUID, name: str) -> None:
    """Rename a table or view, or move it to another namespace. The version increases, so a concurrent commit fails.

    Raises Clash if the name is taken.
    """
    statement = (
        update(tables)
        .where(tables.c.id == id)
        .values(
            namespace_id=namespace_id,
            name=name,
            name_key=fold(name),
            version=tables.c.version + 1,
            updated_at=func.clock_timestamp(),
        )
    )
    with clashes():
        await connection.execute(statement)
