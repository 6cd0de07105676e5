# SPDX-License-Identifier: Apache-2.0
"""What is new in a namespace, of whatever kind: its name, its place, and the transaction in which it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.operations.generic_tables import AdoptGenericTable, CreateGenericTable
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView
from gateway.access.operations.tables import CreateTable
from gateway.access.operations.views import CreateView
from gateway.access.permit import Permit
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.resolved import ResolvedNamespace
from gateway.access.tuples import Principal
from gateway.catalog.containers import above_table
from gateway.db import namespaces, retired_locations, tables
from gateway.db.engine import Connection, Database
from gateway.db.outbox import Pending
from gateway.db.ownership import record_new
from gateway.iceberg.errors import (
    AlreadyExistsException,
    CatalogError,
    InvalidLocation,
    LocationAlreadyTaken,
    NoSuchNamespaceException,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.scope.layout import FullHierarchyLayout, default_location
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile

Told: TypeAlias = Callable[[str, TableIdentifier], CatalogError]
"""What is said to who wants a name that something of this kind has."""

Making: TypeAlias = (
    Permit[CreateTable | RegisterTable | AdoptTable]
    | Permit[CreateView | RegisterView | AdoptView]
    | Permit[CreateGenericTable | AdoptGenericTable]
)


def spoken(kind: str) -> str:
    """The kind of a row as people say it: `generic table`."""
    return kind.replace("_", " ")


def taken(kind: str, identifier: TableIdentifier) -> AlreadyExistsException:
    """The protocol's text for a name that a table was to have (REST compatibility kit)."""
    if kind != "table":
        return AlreadyExistsException(f"{spoken(kind).capitalize()} with same name already exists: {identifier.dotted}")
    return AlreadyExistsException(f"Table already exists: {identifier.dotted}")


async def refuse_taken_name(
    connection: Connection, namespace: ResolvedNamespace, identifier: TableIdentifier, told: Told = taken
) -> None:
    """Raise what is `told` of a name that something has. The insert finds out for good."""
    kind = await tables.name_taken(connection, namespace.id, identifier.name)
    if kind is not None:
        raise told(kind, identifier)


@asynccontextmanager
async def creation_transaction(
    permit: Making,
    database: Database,
    namespace: ResolvedNamespace,
    identifier: TableIdentifier,
    location: Location,
    told: Told = taken,
) -> AsyncIterator[Connection]:
    """`Database.change`, with the namespace held: what is inserted has somewhere to be.

    Raises NoSuchNamespaceException when it went meanwhile, and for what an insert ran into what is `told` of the name,
    or else LocationAlreadyTaken.
    """
    try:
        async with database.change(permit) as connection:
            await namespaces.hold(connection, namespace)
            yield connection
    except namespaces.NamespaceGone as gone:
        raise NoSuchNamespaceException.of(identifier.namespace) from gone
    except tables.Clash as clash:
        async with database.read() as connection:
            await refuse_taken_name(connection, namespace, identifier, told)
        raise LocationAlreadyTaken(f"Location is taken: {location.text}") from clash


async def owned(
    connection: Connection,
    actor: Actor,
    type: ObjectType,
    id: UUID,
    namespace: ResolvedNamespace,
    *,
    owner: Principal | None = None,
) -> list[Pending]:
    """Record that what was inserted lies in the namespace and belongs to `owner`, else to its maker: the tuple keys
    that follow.
    """
    return await record_new(
        connection,
        actor,
        ObjectKey(type, str(id)),
        namespace.key,
        above=above_table(namespace),
        warehouse_id=namespace.warehouse.id,
        owner=owner,
    )


def place(
    profile: StorageProfile, namespace: ResolvedNamespace, name: str, id: UUID, requested: str | None
) -> Location:
    """Where a new table lies: where its creator wants it below the base, or the default, which contains its UUID."""
    if requested is not None:
        return profile.parse_location(requested)
    ids = (*namespace.ancestors, namespace.id)
    path = tuple(zip(namespace.namespace.levels, ids, strict=True))
    return default_location(profile.base_location(), profile.storage_layout, path, name, id)


def refuse_chosen_location(profile: StorageProfile, location: Location) -> None:
    """Raise InvalidLocation where namespaces are folders: whoever took the folder of one would keep everybody from
    creating in it, and whoever had keys for a place in it would have them for what others create there later (K8).
    """
    if isinstance(profile.storage_layout, FullHierarchyLayout):
        raise InvalidLocation(
            f"Location {location.text!r} cannot be chosen: this warehouse lays tables and views out by their "
            "namespaces (storage layout full-hierarchy). Leave the location out, or register existing files."
        )


async def claim_location(connection: Connection, location: Location, *, explicit: bool) -> None:
    """Make sure, until the transaction ends, that no table lies at, above or below. Raises LocationAlreadyTaken.

    A default location ends in a fresh UUID, so nothing can be at or below it; but where the layout puts namespaces into
    the path, somebody may have asked for a table at a folder above it, and its credentials would reach this one (K8).
    """
    if explicit:
        await tables.hold_explicit_locations(connection)
    else:
        await tables.hold_default_locations(connection)
    await refuse_taken_location(connection, location)
    if explicit:
        # The caller has found the place empty, or adopts what lies there: earlier owners have no claim any more.
        await retired_locations.taken_in(connection, location.text, location.overlap_key)


async def refuse_taken_location(
    connection: Connection, location: Location, *, other_than: UUID | None = None, owners: Sequence[str] = ()
) -> None:
    """Raise LocationAlreadyTaken when a table or view, of whatever project, but this one lies at, above or below, or
    lay there and keys for it may live. `owners` may come back to a retired location of theirs.
    """
    ancestors = [above.overlap_key for above in location.ancestors()]
    key = location.overlap_key
    if await tables.location_taken(connection, key, ancestors, other_than=other_than, owners=owners):
        raise LocationAlreadyTaken(f"Location is taken: {location.text}")
