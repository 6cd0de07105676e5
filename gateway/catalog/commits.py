# SPDX-License-Identifier: Apache-2.0
"""Commits: validate, write the new document, swap the pointer, and start over when somebody else was faster.

Clients send no base; a commit whose own requirements still hold succeeds on whatever the table is now. A failed
requirement is final. Nothing a lost race wrote stays in the store.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

import msgspec
import structlog
from uuid_utils.compat import uuid7

from gateway.access.operations.tables import CommitTable, CommitTableCreation
from gateway.access.outage import CommitUnknown, DatabaseUnavailable
from gateway.access.permit import Permit
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.resolved import ResolvedNamespace, ResolvedTable
from gateway.catalog.metadata_files import MetadataFiles, require_inside
from gateway.catalog.tables import Tables, above_table, claim_location, now_ms, place, taken
from gateway.db import namespaces, tables
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database
from gateway.db.outbox import Pending
from gateway.db.ownership import record_new
from gateway.db.resolver import reread_table
from gateway.iceberg.commit import CommitOutcome, commit_table
from gateway.iceberg.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceException,
    NoSuchTableException,
    TableIdentifierMismatch,
)
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.locations import location_properties, update_locations
from gateway.iceberg.metadata import decode_stored_table_metadata
from gateway.iceberg.updates import SetLocation, TableUpdate
from gateway.iceberg.wire import CommitTableRequest, CommitTableResponse
from gateway.scope.location import Location
from gateway.scope.profile import decode_profile

_log = structlog.get_logger("catalog.commits")

_ATTEMPTS = 6


class _LostRace(Exception):
    """Another commit moved the pointer first."""


class Commits:
    """Commits of one table, and the commit that makes a staged table exist."""

    def __init__(self, *, database: Database, delivery: TupleDelivery, files: MetadataFiles, tables: Tables) -> None:
        self._database = database
        self._delivery = delivery
        self._files = files
        self._tables = tables

    async def commit(self, permit: Permit[CommitTable]) -> CommitTableResponse:
        """Apply the updates to the table as it is now.

        Raises CommitFailedException (409) for a requirement that does not hold or when others are faster again and
        again, 400 for updates that make no sense, CommitStateUnknownException when the database went away in the
        middle of COMMIT.
        """
        operation = permit.operation
        _require_same_identifier(operation.request, operation.table.identifier)
        table = permit.table(operation.table)
        permit.trail.tell(updates=",".join(sorted({_kind(update) for update in operation.request.updates})))
        for attempt in range(_ATTEMPTS):
            try:
                return await self._attempt(permit, table)
            except _LostRace:
                # Full jitter: writers that met once do not meet again in step.
                await asyncio.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - spreads load, protects nothing
            async with self._database.read() as connection:
                again = await reread_table(connection, table.id)
            if again is None:
                raise NoSuchTableException(f"Table does not exist: {operation.table.identifier.dotted}")
            table = again
        raise CommitFailedException("Commit failed: other commits were faster each time; try again.")

    async def _attempt(self, permit: Permit[CommitTable], table: ResolvedTable) -> CommitTableResponse:
        request = permit.operation.request
        outcome = commit_table(
            decode_stored_table_metadata(table.metadata),
            table.metadata_location,
            request.requirements,
            request.updates,
            now_ms=now_ms(permit),
            allowed_format_versions=frozenset(table.warehouse.allowed_format_versions),
        )
        if not outcome.changed:
            async with self._database.change(permit):
                pass
            return CommitTableResponse(metadata_location=table.metadata_location, metadata=msgspec.Raw(table.metadata))
        location = Location.parse(table.location, escapes_known=True)
        self._check(table.namespace, location, request.updates, outcome)
        async with self._files.written(table.warehouse, outcome.metadata, table.metadata_location) as written:
            try:
                async with self._database.change(permit) as connection:
                    swapped = await tables.swap(
                        connection,
                        table.id,
                        from_version=table.version,
                        metadata_location=written[0],
                        metadata=written[1],
                    )
                    if not swapped:
                        raise _LostRace
            except CommitUnknown as unknown:
                await self._learn(permit, table, written[0], unknown)
        await self._files.remove(table.warehouse, outcome.expired_metadata_files)
        return CommitTableResponse(metadata_location=written[0], metadata=msgspec.Raw(written[1]))

    async def _learn(
        self, permit: Permit[CommitTable], table: ResolvedTable, location: str, unknown: CommitUnknown
    ) -> None:
        """Find out what became of a COMMIT whose answer was lost: return when it happened, raise _LostRace when not."""
        try:
            async with self._database.transaction() as connection:
                await tables.wait_for_writers(connection, table.id)
                now = await reread_table(connection, table.id)
        except (DatabaseUnavailable, CommitUnknown):
            raise CommitStateUnknownException(
                "The database went away during the commit; its outcome is unknown."
            ) from unknown
        if now is not None and (now.metadata_location == location or location.encode() in now.metadata):
            permit.trail.settle()
            return
        raise _LostRace

    def _check(
        self, namespace: ResolvedNamespace, location: Location, updates: Sequence[TableUpdate], outcome: CommitOutcome
    ) -> None:
        """Refuse path properties, manifest lists and statistics files outside of the table's own prefix: whoever reads
        or purges the table follows them (threats K7, A09).
        """
        profile = decode_profile(namespace.warehouse.profile)
        require_inside(profile, location, (*location_properties(outcome.metadata), *update_locations(updates)))

    async def create(self, permit: Permit[CommitTableCreation]) -> CommitTableResponse:
        """Make a table exist from a commit that asserts it does not: the end of a create transaction.

        A location must be the one the same caller staged, or be free and empty; without one the default is taken.
        """
        operation = permit.operation
        identifier = TableIdentifier(operation.namespace.namespace, operation.table)
        _require_same_identifier(operation.request, identifier)
        validate_new_name(operation.table)
        namespace = permit.namespace(operation.namespace)
        async with self._database.read() as connection:
            kind = await tables.name_taken(connection, namespace.id, identifier.name)
        if kind == "table":
            raise CommitFailedException("Requirement failed: table already exists")
        if kind is not None:
            raise taken(kind, identifier)
        location, updates = self._placed(namespace, identifier, operation.request)
        staged = await self._staged(permit, namespace, identifier, location)
        if not staged:
            await self._tables.require_free(location)
            await self._files.require_empty(namespace.warehouse, location)
        outcome = commit_table(
            None,
            None,
            operation.request.requirements,
            updates,
            now_ms=now_ms(permit),
            allowed_format_versions=frozenset(namespace.warehouse.allowed_format_versions),
            default_format_version=namespace.warehouse.default_format_version or 2,
        )
        self._check(namespace, location, updates, outcome)
        async with self._files.written(namespace.warehouse, outcome.metadata, None) as written:
            try:
                pending = await self._insert(permit, namespace, identifier, location, outcome, written)
            except tables.Clash as clash:
                async with self._database.read() as connection:
                    kind = await tables.name_taken(connection, namespace.id, identifier.name)
                if kind == "table":
                    raise CommitFailedException("Requirement failed: table already exists") from clash
                raise await self._tables.clash(namespace, identifier, location) from clash
        await self._delivery.deliver_or_leave(pending)
        return CommitTableResponse(metadata_location=written[0], metadata=msgspec.Raw(written[1]))

    def _placed(
        self, namespace: ResolvedNamespace, identifier: TableIdentifier, request: CommitTableRequest
    ) -> tuple[Location, list[TableUpdate]]:
        profile = decode_profile(namespace.warehouse.profile)
        asked = [update.location for update in request.updates if isinstance(update, SetLocation)]
        location = place(profile, namespace, identifier.name, uuid7(), asked[-1] if asked else None)
        others = [update for update in request.updates if not isinstance(update, SetLocation)]
        return location, [*others, SetLocation(location=location.text)]

    async def _staged(
        self,
        permit: Permit[CommitTableCreation],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        location: Location,
    ) -> bool:
        async with self._database.read() as connection:
            row = await tables.staged(
                connection,
                namespace_id=namespace.id,
                name=identifier.name,
                location_key=location.overlap_key,
                staged_by=permit.actor.id,
            )
        return row is not None

    async def _insert(
        self,
        permit: Permit[CommitTableCreation],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        location: Location,
        outcome: CommitOutcome,
        written: tuple[str, bytes],
    ) -> list[Pending]:
        warehouse = namespace.warehouse
        try:
            async with self._database.change(permit) as connection:
                await namespaces.hold(connection, namespace.id)
                row = await tables.staged(
                    connection,
                    namespace_id=namespace.id,
                    name=identifier.name,
                    location_key=location.overlap_key,
                    staged_by=permit.actor.id,
                )
                id = uuid7() if row is None else row.id
                permit.trail.tell(table_id=str(id), location=location.text)
                if row is None:
                    await claim_location(connection, location, explicit=True)
                    await tables.create(
                        connection,
                        id=id,
                        warehouse_id=warehouse.id,
                        namespace_id=namespace.id,
                        name=identifier.name,
                        table_uuid=UUID(outcome.metadata.table_uuid),
                        location=location.text,
                        location_key=location.overlap_key,
                        metadata_location=written[0],
                        metadata=written[1],
                        staged_by=None,
                    )
                else:
                    await tables.finish_staged(
                        connection,
                        id,
                        name=identifier.name,
                        table_uuid=UUID(outcome.metadata.table_uuid),
                        metadata_location=written[0],
                        metadata=written[1],
                    )
                return await record_new(
                    connection,
                    permit.actor,
                    ObjectKey(ObjectType.TABLE, str(id)),
                    namespace.key,
                    above=above_table(namespace),
                    warehouse_id=warehouse.id,
                )
        except namespaces.NamespaceGone as gone:
            raise NoSuchNamespaceException(f"Namespace does not exist: {identifier.namespace.dotted}") from gone


def _require_same_identifier(request: CommitTableRequest, identifier: TableIdentifier) -> None:
    """The body's identifier, when it has one, names what the path names: the decision is made on the path."""
    named = None if request.identifier is None else request.identifier.identifier
    if named is not None and named.key != identifier.key:
        raise TableIdentifierMismatch(
            f"The body names {named.dotted} and the path names {identifier.dotted}: they must be the same table"
        )


def _kind(update: object) -> str:
    tag = type(update).__struct_config__.tag  # type: ignore[attr-defined]  # every update is a tagged struct
    return str(tag)
