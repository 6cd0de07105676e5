# SPDX-License-Identifier: Apache-2.0
"""Common part of the creation of tables, views and generic tables: checks of name and location, and the transaction.

`TableCollection` is the base class of the use cases of tables and of generic tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operations.generic_tables import AdoptGenericTable, CreateGenericTable
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView
from gateway.access.operations.tables import CreateTable
from gateway.access.operations.views import CreateView
from gateway.access.tuples import Principal
from gateway.db.engine.database import Connection, Database
from gateway.db.tables import retired_locations, tables, tabular_writes
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_new
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.contents.containers import above_table
from gateway.features.contents.lists import Lists
from gateway.features.credentials.credentials import Credentials
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.tables.chosen_locations import ChosenLocations
from gateway.iceberg.errors import (
    AlreadyExistsException,
    CatalogError,
    LocationAlreadyTaken,
    NoSuchNamespaceException,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.scope.location import Location, default_location
from gateway.scope.profile import StorageProfile


class TableCollection(UseCases):
    """Base of the use cases of tables and of generic tables."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._approval = ChangeApproval(kit)
        self._chosen = ChosenLocations(kit)
        self._files = MetadataFiles(kit)
        self._credentials = Credentials(kit)
        self._lists = Lists(kit)
        self._documents = kit.documents


NameTakenError: TypeAlias = Callable[[str, TableIdentifier], CatalogError]
"""A function from (kind of the existing object, requested identifier) to the error for a taken name."""

CreationPermit: TypeAlias = (
    Permit[CreateTable | RegisterTable | AdoptTable]
    | Permit[CreateView | RegisterView | AdoptView]
    | Permit[CreateGenericTable | AdoptGenericTable]
)


def kind_text(kind: str) -> str:
    """Return the kind of a row as readable text: `generic table`."""
    return kind.replace("_", " ")


def name_taken_error(kind: str, identifier: TableIdentifier) -> AlreadyExistsException:
    """Return the error for a taken table name, with the text of Iceberg's REST compatibility kit."""
    if kind != "table":
        return AlreadyExistsException(
            f"{kind_text(kind).capitalize()} with same name already exists: {identifier.dotted}"
        )
    return AlreadyExistsException(f"Table already exists: {identifier.dotted}")


async def refuse_taken_name(
    permit: CreationPermit,
    database: Database,
    namespace: ResolvedNamespace,
    identifier: TableIdentifier,
    error_for: NameTakenError = name_taken_error,
) -> None:
    """Raise the error of `error_for` if the name is taken in a namespace of `permit`.

    The check saves work: the unique index finally decides at the insert.
    """
    kind = await tables.read_name_taken(database, namespace.id, identifier.name)
    if kind is not None:
        raise error_for(kind, identifier)


@asynccontextmanager
async def creation_transaction(
    permit: CreationPermit,
    database: Database,
    namespace: ResolvedNamespace,
    identifier: TableIdentifier,
    location: Location,
    error_for: NameTakenError = name_taken_error,
    *,
    explicit: bool = True,
) -> AsyncIterator[Connection]:
    """Open a transaction of `database`. Until it ends, the namespace cannot be dropped or moved, and no other
    transaction can take an overlapping location.

    `explicit` is True if the client chose the location. Raises NoSuchNamespaceException if the namespace was dropped
    meanwhile. If the insert violates a unique index, raises the error of `error_for` for a taken name, or else
    LocationAlreadyTaken.
    """
    try:
        async with database.change(permit) as connection:
            if not await tables.lock_place(connection, namespace, explicit=explicit):
                raise NoSuchNamespaceException.of(identifier.namespace)
            yield connection
    except tabular_writes.LocationTaken as taken:
        raise _location_taken_error(location) from taken
    except tables.Clash as clash:
        await refuse_taken_name(permit, database, namespace, identifier, error_for)
        raise _location_taken_error(location) from clash


def overlap_keys_above(location: Location) -> list[str]:
    """Return the overlap keys of all locations that contain this one."""
    return [above.overlap_key for above in location.ancestors()]


def _location_taken_error(location: Location) -> LocationAlreadyTaken:
    return LocationAlreadyTaken(
        f"Location is taken by another table or view, or by files of one: {location.text}. Choose another location."
    )


async def record_ownership(
    connection: Connection,
    actor: Actor,
    type: ObjectType,
    id: UUID,
    namespace: ResolvedNamespace,
    *,
    owner: Principal | None = None,
    alone: bool = True,
) -> list[Pending]:
    """Record the parent and the owner of the inserted object. The owner is the actor by default. Return the keys of the
    tuples to deliver. `alone` is False if the transaction changes other tables afterwards.
    """
    return await record_new(
        connection,
        actor,
        ObjectKey(type, str(id)),
        namespace.key,
        above=above_table(namespace),
        warehouse_id=namespace.warehouse.id,
        owner=owner,
        alone=alone,
    )


def location_of_new(
    profile: StorageProfile, namespace: ResolvedNamespace, name: str, id: UUID, requested: str | None
) -> Location:
    """Return the location of a new table: the requested location, or the default, whose path contains the table's UUID.
    Raises InvalidLocation.
    """
    if requested is not None:
        return profile.parse_location(requested)
    ids = (*namespace.ancestors, namespace.id)
    path = tuple(zip(namespace.namespace.levels, ids, strict=True))
    return default_location(profile.base_location(), profile.storage_layout, path, name, id)


async def claim_location(connection: Connection, location: Location) -> None:
    """Ensure until the transaction ends that no table is at, above or below a chosen location. Raises
    LocationAlreadyTaken.
    """
    await tables.hold_explicit_locations(connection)
    await refuse_taken_location(connection, location)
    await release_claims(connection, location)


async def release_claims(connection: Connection, location: Location) -> None:
    """Delete the claims of earlier owners on a chosen location. The caller has found it empty, or adopts its files."""
    await retired_locations.remove_reused(connection, location.text, location.overlap_key)


async def refuse_taken_location(
    connection: Connection, location: Location, *, other_than: UUID | None = None, owners: Sequence[str] = ()
) -> None:
    """Raise LocationAlreadyTaken if a table or view of any project is at, above or below the location. Also raise it if
    one was there and vended credentials for it may still be valid.

    `other_than` is the id of a table to ignore. `owners` may reuse their own retired locations.
    """
    above, key = overlap_keys_above(location), location.overlap_key
    if await tables.location_taken(connection, key, above, other_than=other_than, owners=owners):
        raise _location_taken_error(location)
