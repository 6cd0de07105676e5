# SPDX-License-Identifier: Apache-2.0
"""The change that a commit makes to one table, which exists already or is created by the commit.

Both classes compute their outcome without I/O and apply it in a transaction that the caller opened. So a commit to one
table and a transaction over several tables share the code (`commits.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.db.engine.database import Connection
from gateway.db.resolver.resolver import reread_table
from gateway.db.tables import former_names, namespaces, pending_files, tables, tabular_writes
from gateway.db.tuples.outbox import Pending
from gateway.features.metadata.metadata_files import Written, own_files
from gateway.features.tables.commit_retry import CommitConflict
from gateway.features.tables.tabular_creation import overlap_keys_above, record_ownership, release_claims
from gateway.iceberg.commit import CommitOutcome, commit_table
from gateway.iceberg.errors import NoSuchNamespaceException, NoSuchTableException
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.limits import Limits
from gateway.iceberg.locations import location_properties, update_locations
from gateway.iceberg.metadata import decode_stored_table_metadata
from gateway.iceberg.requirements import TableRequirement
from gateway.iceberg.updates import TableUpdate
from gateway.iceberg.wire import CommitTableRequest
from gateway.offloading import extent
from gateway.scope.location import Location
from gateway.scope.location_bounds import require_inside
from gateway.storage.registry import parse_location


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of an applied change: the id of the table's row, and the keys of the tuples to deliver."""

    id: UUID
    pending: Sequence[Pending] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A commit to an existing table. `identifier` is the table's name in the request."""

    table: ResolvedTable
    identifier: TableIdentifier
    request: CommitTableRequest

    @property
    def warehouse(self) -> ResolvedWarehouse:
        """The warehouse whose store gets the metadata files."""
        return self.table.warehouse

    @property
    def previous(self) -> str | None:
        """The location of the current metadata file, which the new one replaces."""
        return self.table.metadata_location

    @property
    def lock_sort_key(self) -> tuple[int, str]:
        """Return the key by which a transaction orders its changes. All transactions lock locations first, then rows in
        the order of ids.
        """
        return 1, str(self.table.id)

    @property
    def extent(self) -> int:
        """Return the approximate number of bytes to process for the outcome, without the table's current document."""
        return extent(self.request.updates)

    def outcome(self, now_ms: int, limits: Limits, document: bytes) -> CommitOutcome:
        """Return the outcome of the commit on the table that `document` describes.

        Raises CommitFailedException for a requirement that does not hold, and errors of status 400 for invalid updates.
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

    async def apply(
        self, connection: Connection, actor: Actor, outcome: CommitOutcome, written: Written, *, alone: bool
    ) -> Applied:
        """Update the pointer to the metadata file. Record for cleanup the metadata files that the table no longer
        refers to.

        Raises CommitConflict if the table's version has changed since it was read.
        """
        await former_names.record_former_columns(connection, self.table.id, self.request.updates, outcome.metadata)
        if not await tabular_writes.swap(
            connection,
            self.table.id,
            from_version=self.table.version,
            metadata_location=written[0],
            metadata=written[1],
            noted=True,
            expired=self.expired_files(outcome),
        ):
            raise CommitConflict
        return Applied(id=self.table.id)

    def expired_files(self, outcome: CommitOutcome) -> list[str]:
        """Return the metadata files that the commit removes from the table's metadata log."""
        return own_files(parse_location(self.table.location), outcome.expired_metadata_files)

    async def hold(self, connection: Connection) -> None:
        """Lock the table at the version that was read until the transaction ends. For a commit that changes nothing,
        whose requirements must hold until then. Raises CommitConflict if the version has changed.
        """
        if not await tables.hold_version(connection, self.table.id, self.table.version):
            raise CommitConflict

    async def reread(self, connection: Connection) -> TableChange:
        """Return the same change of the table's current row. Raises NoSuchTableException if the table was dropped,
        renamed or moved: the decision was about the old name.
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
    """A commit that creates a table, at a free location or at the one that the same caller staged.

    `chosen` is True if the location is not the default of a new or staged table.
    """

    namespace: ResolvedNamespace
    identifier: TableIdentifier
    location: Location
    chosen: bool
    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]

    @property
    def warehouse(self) -> ResolvedWarehouse:
        """The warehouse whose store gets the metadata files."""
        return self.namespace.warehouse

    @property
    def previous(self) -> str | None:
        """None, because a new table has no earlier metadata file."""
        return None

    @property
    def lock_sort_key(self) -> tuple[int, str]:
        """Return the key by which a transaction orders its changes. New tables come first, because locations are locked
        before rows.
        """
        return 0, self.location.overlap_key

    @property
    def extent(self) -> int:
        """Return the approximate number of bytes to process for the outcome."""
        return extent(self.updates)

    def outcome(self, now_ms: int, limits: Limits) -> CommitOutcome:
        """Return the new table. Raises errors of status 400 for invalid updates and for requirements other than
        `assert-create`.
        """
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

    async def apply(
        self, connection: Connection, actor: Actor, outcome: CommitOutcome, written: Written, *, alone: bool
    ) -> Applied:
        """Insert the row, or complete the staged one. `alone` is True if the transaction makes no other change.

        Raises Clash, LocationTaken and NoSuchNamespaceException.
        """
        try:
            await namespaces.lock_shared(connection, self.namespace)
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
            await tables.hold_explicit_locations(connection)
            await tabular_writes.create(
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
                above=overlap_keys_above(self.location),
                noted=True,
            )
            await release_claims(connection, self.location)
        else:
            await pending_files.hold(connection, [written[0]])
            await tables.finish_staged(
                connection,
                id,
                name=self.identifier.name,
                table_uuid=table_uuid,
                metadata_location=written[0],
                metadata=written[1],
            )
        pending = await record_ownership(connection, actor, ObjectType.TABLE, id, self.namespace, alone=alone)
        return Applied(id=id, pending=pending)

    async def reread(self, connection: Connection) -> NewTable:
        """Return this change itself: none of its values was read from a row that can change."""
        return self


Change = TableChange | NewTable


def _check_places(
    warehouse: ResolvedWarehouse, location: Location, updates: Sequence[TableUpdate], outcome: CommitOutcome
) -> None:
    """Raise an error if a path property, manifest list or statistics file is outside of the table's prefix. Engines
    that read the table and the purge follow these paths (LG-LOC-08, LG-LOC-09 in `docs/threats.md`).
    """
    profile = warehouse.storage_profile
    require_inside(profile, location, (*location_properties(outcome.metadata), *update_locations(updates)))
