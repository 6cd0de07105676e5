# SPDX-License-Identifier: Apache-2.0
"""Use cases of tables: list, create, load, drop. Commits are in `commits.py`."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedTable
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.tables import CreateTable, DropTable, ListTables, LoadTable, TableExists
from gateway.access.results import Tagged
from gateway.db.tables import tables, tabular_writes
from gateway.db.tables.documents import Document
from gateway.db.tasks import tasks
from gateway.db.tasks.tasks import Files, Queue
from gateway.db.tuples.outbox import Pending
from gateway.features.approvals.change_approval import UNCONDITIONAL, Approval
from gateway.features.credentials.credentials import VendResult, require_vendable
from gateway.features.deletion.drops import drop_tabular
from gateway.features.kit import Kit
from gateway.features.tables.loads import (
    Labels,
    creation_representation,
    load_representation,
    may_read_data,
    require_same_columns,
    shows_data,
)
from gateway.features.tables.tabular_creation import (
    TableCollection,
    creation_transaction,
    location_of_new,
    overlap_keys_above,
    record_ownership,
    refuse_taken_location,
    refuse_taken_name,
    release_claims,
)
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.errors import NoSuchTableException
from gateway.iceberg.excerpts import SnapshotsMode, referenced_document, without_data
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.locations import location_properties
from gateway.iceberg.metadata import TableMetadata, decode_stored_table_metadata, encode_table_metadata
from gateway.iceberg.properties import GC_ENABLED, flag
from gateway.iceberg.wire import CommitTableResponse, ListTablesResponse, LoadTableResult
from gateway.obligations.application import restrictions_for_load
from gateway.offloading import offload
from gateway.scope.location import Location
from gateway.scope.location_bounds import require_inside
from gateway.storage.registry import parse_location

#: The time after which a staged table is deleted if no commit has completed it.
STAGED_SECONDS = 24 * 3600.0


class Tables(TableCollection):
    """Use cases of the tables of a warehouse."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._labels = Labels(kit)

    async def list(self, permit: Permit[ListTables]) -> ListTablesResponse:
        """Return the tables that the caller can see, with names as their creators spelled them."""
        return await self._lists.answer(permit, ObjectType.TABLE)

    async def create(self, permit: Permit[CreateTable], vend: Permit[VendCreationCredentials] | None) -> Tagged:
        """Create the table, or stage it. The caller becomes its owner and gets credentials for it. A staged table has
        no ETag.

        Raises errors of status 400 for names, locations and schemas, AlreadyExistsException, and LocationAlreadyTaken.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        warehouse = namespace.warehouse
        validate_new_name(request.name)
        profile = warehouse.storage_profile
        id = uuid7()
        identifier = TableIdentifier(namespace.namespace, request.name)
        await refuse_taken_name(permit, self._database, namespace, identifier)
        location = location_of_new(profile, namespace, identifier.name, id, request.location)
        require_vendable(profile, location)
        metadata = self._first_metadata(permit, id, location)
        require_inside(profile, location, location_properties(metadata))
        explicit = request.location is not None
        if explicit:
            await self._chosen.require_allowed(permit, profile.base_location(), namespace, location)
            async with self._database.read() as connection:
                await refuse_taken_location(connection, location)
            await self._files.require_empty(warehouse, location)
        permit.pending_audit.add_details(table_id=str(id), namespace_id=str(namespace.id), location=location.text)
        if request.stage_create:
            # A staged table is not verified here. The verifiers check the commit that completes the table.
            await self._insert(permit, namespace, identifier, id, location, explicit=explicit, written=None)
            vended_result = await self._credentials.for_creation(permit, vend, location.text, id)
            return Tagged("", answer(None, encode_table_metadata(metadata), vended_result))
        approval = await self._approval.of_creation(
            permit,
            ObjectType.TABLE,
            namespace,
            identifier.name,
            lambda: encode_table_metadata(metadata),
            location=None if request.location is None else location.text,
        )
        async with self._files.write_one(warehouse, metadata, None) as written:
            await self._insert(
                permit, namespace, identifier, id, location, explicit=explicit, written=written, approval=approval
            )
        self._documents.keep(id, *written)
        vended_result = await self._credentials.for_creation(permit, vend, location.text, id)
        representation = creation_representation(permit, vend, id, written[0])
        return Tagged(
            representation.tag(permit.resolution.now, vended_result.expires_at), answer(*written, vended_result)
        )

    async def load(self, permit: Permit[LoadTable], vend: Permit[VendCredentials] | None) -> Tagged:
        """Return the current metadata as stored, with credentials if the caller requests them and may have them.

        A caller that may only describe the table gets only metadata (`shows_data`). A caller that reads with its own
        keys gets the region and endpoint. The body is None if the client's ETag is still valid; this is checked after
        the decision and before vending. The document is read after the decision and may be of a later commit. Location,
        document and ETag are of the same commit.

        Raises NoSuchTableException if the table was dropped since the decision, and the error of an outage if a commit
        since then changed the restrictions.
        """
        ref = permit.operation.table
        table = permit.table(ref)
        labels = await self._labels.of_table(permit)
        representation = replace(load_representation(permit, vend), labels=labels)
        now = permit.resolution.now
        confirmed = representation.confirmed(permit.operation.options.known, now)
        if confirmed is not None:
            permit.pending_audit.add_details(confirmed="not modified")
            permit.pending_audit.keep_as_read()
            return Tagged(confirmed, None)
        document = await self._document(permit)
        representation = replace(representation, metadata_location=document.metadata_location)
        await require_same_columns(permit, document)
        if vend is not None:
            vended_result = await self._credentials.for_load(vend)
        elif may_read_data(permit):
            vended_result = self._credentials.without_credentials(table.warehouse)
        else:
            vended_result = VendResult({})
        text = await self._shown(permit, document)
        if permit.operation.options.snapshots is SnapshotsMode.REFS:
            whole = text
            text = await offload(lambda: referenced_document(whole), size=len(whole))
        body = answer(document.metadata_location, text, vended_result)
        restrictions = restrictions_for_load(permit.obligations, str(table.id)) if may_read_data(permit) else b""
        if restrictions:
            body = msgspec.structs.replace(body, read_restrictions=msgspec.Raw(restrictions))
        if labels:
            body = msgspec.structs.replace(body, labels=msgspec.Raw(labels))
        return Tagged(representation.tag(now, vended_result.expires_at), body)

    async def committed(self, permit: Permit[LoadTable]) -> CommitTableResponse:
        """Return the current state of the table in the format of the response to a commit."""
        document = await self._document(permit)
        shown = await self._shown(permit, document)
        return CommitTableResponse(metadata_location=document.metadata_location, metadata=msgspec.Raw(shown))

    @staticmethod
    async def _shown(permit: Permit[LoadTable], document: Document) -> bytes:
        """Return the metadata as stored, or without what is computed from the rows (`shows_data`)."""
        if shows_data(permit):
            return document.text
        return await offload(lambda: without_data(document.text), size=len(document.text))

    async def _document(self, permit: Permit[LoadTable]) -> Document:
        document = await self._documents.read(permit.table(permit.operation.table))
        if document is None:
            raise permit.operation.hidden(permit.operation.table)
        return document

    async def load_staged(
        self,
        permit: Permit[CreateTable],
        vend: Permit[VendCreationCredentials] | None,
        recorded_success: RecordedSuccess,
    ) -> Tagged:
        """Return the response for a table that the caller staged earlier, with the same location and table UUID.

        `recorded_success` is the record of the idempotency key. Raises AlreadyExistsException if the staged table was
        committed meanwhile, and NoSuchTableException if its row was deleted.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        identifier = TableIdentifier(namespace.namespace, request.name)
        id, location = UUID(recorded_success.detail["table_id"]), parse_location(recorded_success.detail["location"])
        async with self._database.read() as connection:
            still_staged = await tables.is_staged(connection, id, location_key=location.overlap_key)
        if not still_staged:
            await refuse_taken_name(permit, self._database, namespace, identifier)
            raise NoSuchTableException(f"Table does not exist: {identifier.dotted}")
        metadata = self._first_metadata(permit, id, location)
        permit.pending_audit.add_details(table_id=str(id), location=location.text, repeated="true")
        await permit.pending_audit.commit()
        vended_result = await self._credentials.for_creation(permit, vend, location.text, id)
        return Tagged("", answer(None, encode_table_metadata(metadata), vended_result))

    async def exists(self, permit: Permit[TableExists]) -> None:
        """Do nothing: the permit proves that the table exists and is visible to the caller."""

    async def drop(self, permit: Permit[DropTable]) -> str:
        """Drop the table (`drops.drop_tabular`). Return `Dropped.note`.

        Its name is free immediately, its location after its files are deleted. `purge` deletes the files after the
        permanent deletion, unless the table has the property `gc.enabled=false`: other tables may use its files
        (Iceberg's table properties).
        """
        operation = permit.operation
        table = permit.table(operation.table)
        files = Files.PURGE if operation.purge is not False and await self._owns_its_files(table) else Files.KEEP
        approval = await self._approval.of_drop(permit, table, self._documents)
        async with self._database.change(permit) as connection:
            dropped = await drop_tabular(
                connection,
                permit,
                table,
                operation.table.identifier,
                files=files,
                stated=operation.purge is not None,
                force=operation.force,
                approval=approval,
            )
        await self._delivery.deliver_or_defer(dropped.pending)
        return dropped.note

    async def _owns_its_files(self, table: ResolvedTable) -> bool:
        """Return True if the table's properties allow the deletion of its files. Return False if the table was
        dropped.
        """
        document = await self._documents.read(table)
        return document is not None and await offload(lambda: owns_its_files(document.text), size=len(document.text))

    def _first_metadata(self, permit: Permit[CreateTable], id: UUID, location: Location) -> TableMetadata:
        warehouse = permit.namespace(permit.operation.namespace).warehouse
        return new_table_metadata(
            permit.operation.request,
            table_uuid=id,
            location=location.text,
            now_ms=now_ms(permit),
            default_format_version=warehouse.new_table_format,
            allowed=frozenset(warehouse.allowed_format_versions),
            limits=self._files.limits,
        )

    async def _insert(
        self,
        permit: Permit[CreateTable],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        id: UUID,
        location: Location,
        *,
        explicit: bool,
        written: tuple[str, bytes] | None,
        approval: Approval = UNCONDITIONAL,
    ) -> None:
        warehouse = namespace.warehouse
        async with creation_transaction(
            permit, self._database, namespace, identifier, location, explicit=explicit
        ) as connection:
            await approval.use(connection)
            await tabular_writes.create(
                connection,
                id=id,
                warehouse_id=warehouse.id,
                namespace_id=namespace.id,
                name=identifier.name,
                table_uuid=id,
                location=location.text,
                location_key=location.overlap_key,
                metadata_location=None if written is None else written[0],
                metadata=None if written is None else written[1],
                staged_by=permit.actor.id if written is None else None,
                above=overlap_keys_above(location),
                noted=written is not None,
            )
            if explicit:
                await release_claims(connection, location)
            pending: list[Pending] = []
            if written is not None:
                pending = await record_ownership(connection, permit.actor, ObjectType.TABLE, id, namespace)
            else:
                await tasks.add(
                    connection,
                    Queue.EXPIRE_STAGED_TABLE,
                    warehouse_id=warehouse.id,
                    entity_id=id,
                    in_seconds=STAGED_SECONDS,
                )
        await self._delivery.deliver_or_defer(pending)


def owns_its_files(document: bytes) -> bool:
    """Return True if the table properties in `document` allow the deletion of the table's files."""
    properties = decode_stored_table_metadata(document).properties
    return flag(properties, GC_ENABLED, default=True)


def answer(metadata_location: str | None, metadata: bytes, vended_result: VendResult) -> LoadTableResult:
    """Build the response to a load. The metadata is included as stored, without decoding."""
    return LoadTableResult(
        metadata_location=metadata_location,
        metadata=msgspec.Raw(metadata),
        config=vended_result.config,
        storage_credentials=vended_result.credentials,
        remote_signing_config=vended_result.signing,
    )


def now_ms(permit: Permit[Operation]) -> int:
    """Return the time of the request on the database's clock, in milliseconds since 1970."""
    return int(permit.resolution.now.timestamp() * 1000)
