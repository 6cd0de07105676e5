# SPDX-License-Identifier: Apache-2.0
"""Statements on tables, views and generic tables: their rows, their pointer, their locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import Integer, bindparam, delete, func, insert, select, text, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.refs import ObjectKey
from gateway.db import retired_locations
from gateway.db.desired_tuples import path_above
from gateway.db.excerpts import document_values
from gateway.db.retired_locations import REACHABLE, overlapping
from gateway.db.rows import AnyRow
from gateway.db.schema.namespaces import namespaces
from gateway.db.schema.tables import LIVE, tables
from gateway.db.schema.warehouses import warehouses
from gateway.db.tasks import ACTIVE, Queue
from gateway.db.tasks import add as add_task
from gateway.iceberg.identifiers import fold

_EXPLICIT_LOCATIONS = 0x1A4E0002


class Clash(Exception):
    """The name or the location is taken; the transaction it happened in is lost."""


@contextmanager
def clashes() -> Iterator[None]:
    """Tell a violated uniqueness as Clash."""
    try:
        yield
    except IntegrityError as error:
        raise Clash("the name or the location is taken") from error


async def name_taken(connection: AsyncConnection, namespace_id: UUID, name: str) -> str | None:
    """The kind (`table`, `view`, `generic_table`) of what has this name in the namespace, or None."""
    at = {"namespace_id": namespace_id, "name_key": fold(name)}
    kind: str | None = (await connection.execute(_NAME_TAKEN, at)).scalar_one_or_none()
    return kind


_NAME_TAKEN = select(tables.c.kind).where(
    tables.c.namespace_id == bindparam("namespace_id"), tables.c.name_key == bindparam("name_key"), LIVE
)


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    warehouse_id: UUID,
    namespace_id: UUID,
    name: str,
    table_uuid: UUID,
    location: str,
    location_key: str,
    metadata_location: str | None,
    metadata: bytes | None,
    staged_by: str | None,
    kind: str = "table",
    format: str | None = None,
) -> None:
    """Insert a table or view, or a staged one without metadata. Raises IntegrityError when name or location is
    taken.
    """
    values = {
        "id": id,
        "warehouse_id": warehouse_id,
        "namespace_id": namespace_id,
        "kind": kind,
        "name": name,
        "name_key": fold(name),
        "table_uuid": table_uuid,
        "location": location,
        "location_key": location_key,
        "staged_by": staged_by,
        "format": format,
        **await document_values(kind, metadata_location, metadata),
    }
    with clashes():
        await connection.execute(_CREATE, values)


_CREATE = insert(tables)


async def hold_explicit_locations(connection: AsyncConnection) -> None:
    """Let one explicit location be checked and taken at a time, and no default one meanwhile."""
    await connection.execute(_HOLD_EXPLICIT)


async def hold_default_locations(connection: AsyncConnection) -> None:
    """Let any number of default locations be taken at a time, and no explicit one meanwhile."""
    await connection.execute(_HOLD_DEFAULT)


_HOLD_EXPLICIT = text(f"select pg_advisory_xact_lock({_EXPLICIT_LOCATIONS})")
_HOLD_DEFAULT = text(f"select pg_advisory_xact_lock_shared({_EXPLICIT_LOCATIONS})")


async def location_taken(
    connection: AsyncConnection,
    location_key: str,
    ancestors: Sequence[str],
    *,
    other_than: UUID | None = None,
    owners: Sequence[str] = (),
) -> bool:
    """Whether any table or view of any project (staged ones too), but this one, is at, above or below this location, or
    was and keys for it may live, or was and its files are about to be deleted.

    `owners`: principals (`user:<id>`, `role:<id>`) for whom retired locations of theirs count as free, once nothing is
    about to delete there. One statement, so that a table that goes at this moment is seen as there or as gone, never as
    neither.
    """
    values = {**retired_locations.around(location_key, ancestors), "other_than": other_than, "owners": list(owners)}
    return bool((await connection.execute(_LOCATION_TAKEN, values)).scalar_one())


_LOCATION_TAKEN = text(
    f"""
    select exists (
        select 1 from tables t where {overlapping("t.location_key")}
            and t.id is distinct from cast(:other_than as uuid))
    or exists (
        select 1 from retired_locations r where {overlapping("r.location_key")} and {REACHABLE}
            and r.table_id is distinct from cast(:other_than as uuid)
            and not r.owners && cast(:owners as text[]))
    or exists (
        select 1 from tasks k where k.queue = '{Queue.TABULAR_PURGE}'
            and k.status in ({", ".join(f"'{status}'" for status in ACTIVE)})
            and {overlapping("k.payload->>'location_key'")})
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)


async def location_in_use(connection: AsyncConnection, location_key: str, ancestors: Sequence[str]) -> bool:
    """Whether any table or view of any project (staged ones too) is at, above or below this location now."""
    found = await connection.execute(_LOCATION_IN_USE, retired_locations.around(location_key, ancestors))
    return bool(found.scalar_one())


_LOCATION_IN_USE = text(
    f"select exists (select 1 from tables t where {overlapping('t.location_key')})"  # noqa: S608 - as above
)


async def schedule_purge(
    connection: AsyncConnection,
    id: UUID,
    *,
    warehouse_id: UUID,
    location: str,
    location_key: str,
    kind: str = "table",
    parent: UUID | None = None,
) -> None:
    """Have the files below a place deleted, in the transaction that deletes its row. `parent` is the task that has it
    done.
    """
    await add_task(
        connection,
        Queue.TABULAR_PURGE,
        warehouse_id=warehouse_id,
        entity_id=id,
        entity_type=kind,
        payload={"location": location, "location_key": location_key},
        parent=parent,
    )


async def drop_staged(
    connection: AsyncConnection, id: UUID | None = None, *, namespace_id: UUID | None = None
) -> Sequence[AnyRow]:
    """Delete one staged table or all of a namespace, and schedule the purge of their places; the rows that were."""
    statement = delete(tables).where(
        tables.c.staged_by.is_not(None),
        tables.c.id == id if namespace_id is None else tables.c.namespace_id == namespace_id,
    )
    columns = (tables.c.id, tables.c.warehouse_id, tables.c.location, tables.c.location_key)
    gone = (await connection.execute(statement.returning(*columns))).all()
    for row in gone:
        await schedule_purge(
            connection, row.id, warehouse_id=row.warehouse_id, location=row.location, location_key=row.location_key
        )
    return gone


async def staged(
    connection: AsyncConnection, *, namespace_id: UUID, name: str, location: str, staged_by: str
) -> AnyRow | None:
    """Return the caller's staged table of this name at the exact `location`, locked, or None.

    One at a twin by letter case is another: its location was found empty, and its keys handed out, for that one alone.
    """
    statement = (
        select(tables.c.id, tables.c.table_uuid, tables.c.location)
        .where(
            tables.c.namespace_id == namespace_id,
            tables.c.name_key == fold(name),
            tables.c.location == location,
            tables.c.staged_by == staged_by,
        )
        .with_for_update()
    )
    return (await connection.execute(statement)).one_or_none()


async def find_staged(connection: AsyncConnection, id: UUID, *, location_key: str) -> AnyRow | None:
    """A staged table by its id and place; None when it was made or is gone."""
    statement = select(tables.c.id).where(
        tables.c.id == id, tables.c.location_key == location_key, tables.c.staged_by.is_not(None)
    )
    return (await connection.execute(statement)).one_or_none()


async def finish_staged(
    connection: AsyncConnection, id: UUID, *, name: str, table_uuid: UUID, metadata_location: str, metadata: bytes
) -> None:
    """Make a staged table exist. Raises Clash when its name was taken meanwhile."""
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


async def swap(
    connection: AsyncConnection, id: UUID, *, from_version: int, metadata_location: str, metadata: bytes
) -> bool:
    """Move the pointer if nobody else did since `from_version`."""
    document = await document_values("table", metadata_location, metadata)
    values = {"of": id, "from_version": from_version, **{f"new_{name}": value for name, value in document.items()}}
    return (await connection.execute(_SWAP, values)).rowcount == 1


_SWAP = (
    update(tables)
    .where(
        tables.c.id == bindparam("of"),
        tables.c.version == bindparam("from_version"),
        tables.c.deleted_at.is_(None),
    )
    .values(
        metadata_location=bindparam("new_metadata_location"),
        metadata=bindparam("new_metadata"),
        metadata_excerpt=bindparam("new_metadata_excerpt"),
        metadata_excerpt_of=bindparam("new_metadata_excerpt_of"),
        version=tables.c.version + 1,
        updated_at=func.clock_timestamp(),
    )
)


async def hold_for_drop(connection: AsyncConnection, id: UUID) -> AnyRow | None:
    """The table or view that is to be dropped, locked: namespace_id, location, location_key, metadata_location,
    whether it is `protected`, and `keep_seconds`, for how long its warehouse keeps what is dropped (None: not at all).
    None when it is already gone.
    """
    keep = warehouses.c.delete_profile["expiration-seconds"].astext.cast(Integer)
    statement = (
        select(
            tables.c.namespace_id,
            tables.c.location,
            tables.c.location_key,
            tables.c.metadata_location,
            tables.c.protected,
            keep.label("keep_seconds"),
        )
        .join_from(tables, warehouses, warehouses.c.id == tables.c.warehouse_id)
        .where(tables.c.id == id, LIVE)
        .with_for_update(of=tables)
    )
    return (await connection.execute(statement)).one_or_none()


async def drop(connection: AsyncConnection, id: UUID, *, by: str) -> AnyRow | None:
    """Delete the table or view; its namespace and places, or None when it is already gone. `by` gives its place up."""
    statement = (
        delete(tables)
        .where(tables.c.id == id)
        .returning(tables.c.namespace_id, tables.c.location, tables.c.location_key, tables.c.metadata_location)
    )
    gone = (await connection.execute(statement)).one_or_none()
    await retired_locations.retired_by(connection, id, by)
    return gone


async def in_namespace(
    connection: AsyncConnection, *, namespace_id: UUID, kind: str, after: tuple[str, UUID] | None, limit: int
) -> Sequence[AnyRow]:
    """Tables or views (id, name, name_key, protected) in the order of their folded names."""
    statement = select(tables.c.id, tables.c.name, tables.c.name_key, tables.c.protected).where(
        tables.c.namespace_id == namespace_id, tables.c.kind == kind, LIVE
    )
    if after is not None:
        statement = statement.where(tuple_(tables.c.name_key, tables.c.id) > tuple_(*after))
    return (await connection.execute(statement.order_by(tables.c.name_key, tables.c.id).limit(limit))).all()


async def formats(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, str]:
    """The formats of these generic tables, of those that are there."""
    found = await connection.execute(select(tables.c.id, tables.c.format).where(tables.c.id.in_(list(ids))))
    return {row.id: row.format for row in found}


async def wait_for_writers(connection: AsyncConnection, id: UUID) -> None:
    """Return once no transaction is about to change the table: what is read afterwards in this one is settled."""
    await connection.execute(select(tables.c.id).where(tables.c.id == id).with_for_update())


async def hold_version(connection: AsyncConnection, id: UUID, version: int) -> bool:
    """Keep the table from changing until this transaction ends; False when it is not at this version any more."""
    statement = select(tables.c.id).where(tables.c.id == id, tables.c.version == version, LIVE)
    return (await connection.execute(statement.with_for_update(read=True))).one_or_none() is not None


async def pointer(connection: AsyncConnection, id: UUID) -> AnyRow | None:
    """Where the table or view is now (metadata_location, metadata, version), None when it is gone."""
    statement = select(tables.c.metadata_location, tables.c.metadata, tables.c.version).where(tables.c.id == id)
    return (await connection.execute(statement)).one_or_none()


async def lock(connection: AsyncConnection, id: UUID) -> AnyRow | None:
    """What the table or view is called and where (namespace_id, name_key), whether it is `protected`, and which
    `version` of it this is, locked against everybody; None when gone.

    Grants in flight hold the row too (`grants.hold_object`), so afterwards the grants on it are settled.
    """
    columns = (tables.c.namespace_id, tables.c.name_key, tables.c.protected, tables.c.version)
    statement = select(*columns).where(tables.c.id == id, LIVE).with_for_update()
    return (await connection.execute(statement)).one_or_none()


async def containers(connection: AsyncConnection, id: UUID) -> list[ObjectKey]:
    """What the table or view lies in now, from the project down, and stays in until this transaction ends; hold or
    lock its row first.
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
    """Give another name, in another namespace too. Counts as a change, so that a commit under the old name loses.

    Raises Clash when the name is taken.
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
