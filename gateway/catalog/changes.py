# SPDX-License-Identifier: Apache-2.0
"""What a commit does to one table: to one that exists, or to one that it makes exist.

Both kinds know their outcome without touching anything, and apply it inside a transaction that somebody else holds; so
a commit to one table and a transaction over many are the same code (`commits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.refs import ObjectType
from gateway.access.resolved import ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.catalog.commit_retry import LostRace
from gateway.catalog.metadata_files import Written
from gateway.catalog.offloading import extent
from gateway.catalog.tabular_creation import claim_location, owned
from gateway.db import namespaces, tables
from gateway.db.engine import Connection
from gateway.db.outbox import Pending
from gateway.db.resolver import reread_table
from gateway.iceberg.commit import CommitOutcome, commit_table
from gateway.iceberg.errors import NoSuchNamespaceException, NoSuchTableException
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.limits import Limits
from gateway.iceberg.locations import location_properties, update_locations
from gateway.iceberg.metadata import decode_stored_table_metadata
from gateway.iceberg.requirements import TableRequirement
from gateway.iceberg.updates import TableUpdate
from gateway.iceberg.wire import CommitTableRequest
from gateway.scope.location import Location
from gateway.scope.places import require_inside
from gateway.storage.registry import parse_location, stored_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One change that a transaction has made: the table's row, and the tuple keys that follow from it."""

    id: UUID
    pending: Sequence[Pending] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A commit to a table that exists; `identifier` is what the caller calls it."""

    table: ResolvedTable
    identifier: TableIdentifier
    request: CommitTableRequest

    @property
    def warehouse(self) -> ResolvedWarehouse:
        """Where its metadata files go."""
        return self.table.warehouse

    @property
    def previous(self) -> str | None:
        """The metadata file that the next one follows on."""
        return self.table.metadata_location

    @property
    def order(self) -> tuple[int, str]:
        """Its place in a transaction: rows are locked in one order by everybody, after all locations."""
        return 1, str(self.table.id)

    @property
    def extent(self) -> int:
        """About the bytes that have to be looked at for its outcome, beside the table's document."""
        return extent(self.request.updates)

    def outcome(self, now_ms: int, limits: Limits, document: bytes) -> CommitOutcome:
        """Return what the table that `document` describes becomes.

        Raises CommitFailedException, and 400 for updates that are not legal.
        """
        outcome = commit_table(
            decode_stored_table_metadata(document),
            self.table.metadata_location,
            self.request.requirements,
            self.request.updates,
            now_ms=now_ms,
            allowed_format_versions=frozenset(self.warehouse.allowed_format_versions),
            limits=limits,
        )
        if outcome.changed:
            location = parse_location(self.table.location)
            _check_places(self.warehouse, location, self.request.updates, outcome)
        return outcome

    async def apply(self, connection: Connection, actor: Actor, outcome: CommitOutcome, written: Written) -> Applied:
        """Move the pointer. Raises LostRace when it is not where it was read."""
        if not await tables.swap(
            connection,
            self.table.id,
            from_version=self.table.version,
            metadata_location=written[0],
            metadata=written[1],
        ):
            raise LostRace
        return Applied(id=self.table.id)

    async def hold(self, connection: Connection) -> None:
        """Keep the table as it was read until the transaction ends: its requirements hold, though nothing of it
        changes. Raises LostRace.
        """
        if not await tables.hold_version(connection, self.table.id, self.table.version):
            raise LostRace

    async def again(self, connection: Connection) -> TableChange:
        """The same change to what the table is now. Raises NoSuchTableException when it went, or goes by another
        name: then it is no longer what was decided on.
        """
        now = await reread_table(connection, self.table.id)
        if (
            now is None
            or now.namespace.id != self.table.namespace.id
            or now.identifier.key != self.table.identifier.key
        ):
            raise NoSuchTableException.of(self.identifier)
        return TableChange(table=now, identifier=self.identifier, request=self.request)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """A commit that makes a table exist, at the location the same caller staged or at a free one."""

    namespace: ResolvedNamespace
    identifier: TableIdentifier
    location: Location
    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]

    @property
    def warehouse(self) -> ResolvedWarehouse:
        """Where its metadata files go."""
        return self.namespace.warehouse

    @property
    def previous(self) -> str | None:
        """There is no file before the first."""
        return None

    @property
    def order(self) -> tuple[int, str]:
        """Before all swaps, so that the lock on locations is taken before any on rows."""
        return 0, self.location.overlap_key

    @property
    def extent(self) -> int:
        """About the bytes that have to be looked at for its outcome."""
        return extent(self.updates)

    def outcome(self, now_ms: int, limits: Limits) -> CommitOutcome:
        """What the table will be. Raises 400 for requirements other than `assert-create` and for illegal updates."""
        outcome = commit_table(
            None,
            None,
            self.requirements,
            self.updates,
            now_ms=now_ms,
            allowed_format_versions=frozenset(self.warehouse.allowed_format_versions),
            default_format_version=self.warehouse.new_table_format,
            limits=limits,
        )
        _check_places(self.warehouse, self.location, self.updates, outcome)
        return outcome

    async def apply(self, connection: Connection, actor: Actor, outcome: CommitOutcome, written: Written) -> Applied:
        """Insert the row, or finish the staged one. Raises Clash, LocationAlreadyTaken, NoSuchNamespaceException."""
        try:
            await namespaces.hold(connection, self.namespace)
        except namespaces.NamespaceGone as gone:
            raise NoSuchNamespaceException.of(self.identifier.namespace) from gone
        row = await tables.staged(
            connection,
            namespace_id=self.namespace.id,
            name=self.identifier.name,
            location=self.location.text,
            staged_by=actor.id,
        )
        table_uuid = UUID(outcome.metadata.table_uuid)
        id = uuid7() if row is None else row.id
        if row is None:
            await claim_location(connection, self.location, explicit=True)
            await tables.create(
                connection,
                id=id,
                warehouse_id=self.warehouse.id,
                namespace_id=self.namespace.id,
                name=self.identifier.name,
                table_uuid=table_uuid,
                location=self.location.text,
                location_key=self.location.overlap_key,
                metadata_location=written[0],
                metadata=written[1],
                staged_by=None,
            )
        else:
            await tables.finish_staged(
                connection,
                id,
                name=self.identifier.name,
                table_uuid=table_uuid,
                metadata_location=written[0],
                metadata=written[1],
            )
        pending = await owned(connection, actor, ObjectType.TABLE, id, self.namespace)
        return Applied(id=id, pending=pending)

    async def again(self, connection: Connection) -> NewTable:
        """Nothing of it was read from a row that can change."""
        return self


Change = TableChange | NewTable


def _check_places(
    warehouse: ResolvedWarehouse, location: Location, updates: Sequence[TableUpdate], outcome: CommitOutcome
) -> None:
    """Refuse path properties, manifest lists and statistics files outside of the table's own prefix: whoever reads or
    purges the table follows them (LG-LOC-08, LG-LOC-09).
    """
    profile = stored_profile(warehouse.profile)
    require_inside(profile, location, (*location_properties(outcome.metadata), *update_locations(updates)))
