# SPDX-License-Identifier: Apache-2.0
"""Use cases of generic tables (tables of other formats than Iceberg): list, create, load, drop.

They share names, locations and credential vending with tables and views.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedNamespace
from gateway.access.operations.generic_tables import (
    AdoptGenericTable,
    CreateGenericTable,
    DropGenericTable,
    GenericTableExists,
    ListGenericTables,
    LoadGenericTable,
    VendGenericTableCreationCredentials,
    VendGenericTableCredentials,
)
from gateway.db.tables import retired_locations, tables, tabular_writes
from gateway.db.tasks.tasks import Files
from gateway.features.approvals.change_approval import Approval
from gateway.features.approvals.change_proposals import creation_update
from gateway.features.credentials.credentials import VendResult, require_vendable
from gateway.features.deletion.drops import drop_tabular
from gateway.features.tables.tabular_creation import (
    TableCollection,
    creation_transaction,
    location_of_new,
    name_taken_error,
    overlap_keys_above,
    record_ownership,
    refuse_taken_location,
    refuse_taken_name,
    release_claims,
)
from gateway.iceberg.errors import AlreadyExistsException, UnexpectedFilesInLocation
from gateway.iceberg.generic_tables import (
    GenericTableIdentifier,
    ListGenericTablesResponse,
    LoadGenericTableResult,
    load_answer,
    new_document,
    owns_its_files,
    read_document,
    without_statistics,
)
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.properties import GC_ENABLED, flag
from gateway.scope.location import Location

_KIND = ObjectType.GENERIC_TABLE.value


class GenericTables(TableCollection):
    """Tables of other formats, of which the catalog stores name, format and location."""

    async def list(self, permit: Permit[ListGenericTables]) -> ListGenericTablesResponse:
        """Return the generic tables that the caller can see, with names as their creators spelled them."""
        namespace = permit.namespace(permit.operation.namespace)
        rows, token = await self._lists.tabulars(permit, ObjectType.GENERIC_TABLE, namespace)
        formats = await self._formats([row.id for row in rows])
        # A table that was dropped after its row was read has no format and is left out.
        present = [row for row in rows if row.id in formats]
        with_protection = permit.operation.return_protection_status
        return ListGenericTablesResponse(
            identifiers=tuple(
                GenericTableIdentifier(
                    namespace=namespace.namespace.levels, name=row.name, id=str(row.id), format=formats[row.id]
                )
                for row in present
            ),
            next_page_token=token,
            protection_status=tuple(row.protected for row in present) if with_protection else msgspec.UNSET,
        )

    async def create(
        self,
        permit: Permit[CreateGenericTable | AdoptGenericTable],
        vend: Permit[VendGenericTableCreationCredentials] | None,
    ) -> LoadGenericTableResult:
        """Create the generic table. The caller becomes its owner and gets credentials for it.

        Raises errors of status 400 for names, formats and locations, AlreadyExistsException, LocationAlreadyTaken, and
        ForbiddenException if the right to adopt files expires: their ownership is permanent.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        validate_new_name(request.name, noun="generic table")
        if isinstance(permit.operation, AdoptGenericTable):
            await self._door.require_endless(permit, Can.ADOPT_FILES, WarehouseRef(namespace.warehouse.id))
        identifier = TableIdentifier(namespace.namespace, request.name)
        await refuse_taken_name(permit, self._database, namespace, identifier, _name_taken_error)
        profile = namespace.warehouse.storage_profile
        id = uuid7()
        location = location_of_new(profile, namespace, identifier.name, id, request.base_location)
        require_vendable(profile, location)
        explicit = request.base_location is not None
        adopted = False
        if explicit:
            await self._chosen.require_allowed(permit, profile.base_location(), namespace, location)
            adopted = await self._holds_files(permit, namespace, location)
        document = new_document(request, self._files.limits, adopted=adopted)
        permit.pending_audit.add_details(generic_table_id=str(id), location=location.text)
        approval = await self._approval.of_creation(
            permit,
            ObjectType.GENERIC_TABLE,
            namespace,
            identifier.name,
            lambda: document,
            updates=[creation_update(permit)],
        )
        restricted = await self._insert(
            permit, namespace, identifier, id, location, document, approval, explicit=explicit, adopted=adopted
        )
        # For the adopted files, data policies apply that the decision on the credentials did not include.
        keys = None if restricted else vend
        vended_result = await self._credentials.for_creation(permit, keys, location.text, id)
        return _answer(identifier, request.format, location.text, document, vended_result)

    async def load(
        self, permit: Permit[LoadGenericTable], vend: Permit[VendGenericTableCredentials] | None
    ) -> LoadGenericTableResult:
        """Return the generic table, with credentials if the caller requests them and may have them.

        If data policies restrict the caller, statistics are left out, because they are computed from the data.
        """
        ref = permit.operation.table
        row = permit.generic_table(ref)
        document = await self._document(permit, row)
        restricted = permit.restricted(ref)
        if restricted:
            document = without_statistics(document)
        if vend is not None:
            vended_result = await self._credentials.for_generic_table(vend)
        elif permit.holds(Can.READ_DATA, ref) and not restricted:
            vended_result = self._credentials.without_credentials(row.warehouse)
        else:
            vended_result = VendResult({})
        return _answer(row.identifier, row.format, row.location, document, vended_result)

    async def exists(self, permit: Permit[GenericTableExists]) -> None:
        """Do nothing: the permit proves that the generic table exists and is visible to the caller."""

    async def drop(self, permit: Permit[DropGenericTable]) -> str:
        """Drop the generic table, permanently or as a soft deletion (`drop_tabular`). Its name is free immediately.

        Return `Dropped.note`.

        Its files are deleted too, unless `purge` is false or the property `gc.enabled` forbids it. If its location
        contained files at creation, all its files are deleted only if the request sets `purge`: they may belong to
        another owner.
        """
        operation = permit.operation
        row = permit.generic_table(operation.table)
        document = read_document(await self._document(permit, row))
        purge = owns_its_files(document) if operation.purge is None else operation.purge
        files = Files.PURGE if purge and flag(document.properties, GC_ENABLED, default=True) else Files.KEEP
        approval = await self._approval.of_drop(permit, row, self._documents)
        async with self._database.change(permit) as connection:
            dropped = await drop_tabular(
                connection,
                permit,
                row,
                operation.table.identifier,
                files=files,
                stated=operation.purge is not None,
                force=operation.force,
                approval=approval,
            )
        await self._delivery.deliver_or_defer(dropped.pending)
        return dropped.note

    async def _document(
        self, permit: Permit[LoadGenericTable] | Permit[DropGenericTable], row: ResolvedGenericTable
    ) -> bytes:
        document = await self._documents.read(row)
        if document is None:
            raise permit.operation.hidden(permit.operation.table)
        return document.text

    async def _formats(self, ids: Sequence[UUID]) -> dict[UUID, str]:
        if not ids:
            return {}
        async with self._database.read() as connection:
            return await tables.formats(connection, ids)

    async def _holds_files(
        self,
        permit: Permit[CreateGenericTable | AdoptGenericTable],
        namespace: ResolvedNamespace,
        location: Location,
    ) -> bool:
        """Return True if a chosen location contains files. Raises LocationAlreadyTaken. Raises
        UnexpectedFilesInLocation unless the permit is for an adoption: the credentials of the new table would reach
        these files.
        """
        async with self._database.read() as connection:
            await refuse_taken_location(connection, location)
        try:
            await self._files.require_empty(namespace.warehouse, location)
        except UnexpectedFilesInLocation:
            if not isinstance(permit.operation, AdoptGenericTable):
                raise
            return True
        return False

    async def _insert(
        self,
        permit: Permit[CreateGenericTable | AdoptGenericTable],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        id: UUID,
        location: Location,
        document: bytes,
        approval: Approval,
        *,
        explicit: bool,
        adopted: bool,
    ) -> bool:
        """Insert the row and its owner. Return True if data policies or tags of earlier objects apply to the adopted
        files.
        """
        restricted = False
        async with creation_transaction(
            permit, self._database, namespace, identifier, location, _name_taken_error, explicit=explicit
        ) as connection:
            await approval.use(connection)
            await tabular_writes.create(
                connection,
                id=id,
                warehouse_id=namespace.warehouse.id,
                namespace_id=namespace.id,
                kind=_KIND,
                name=identifier.name,
                table_uuid=id,
                location=location.text,
                location_key=location.overlap_key,
                metadata_location=None,
                metadata=document,
                staged_by=None,
                format=permit.operation.request.format,
                above=overlap_keys_above(location),
            )
            if adopted:
                above = [(each.text, each.overlap_key) for each in (location, *location.ancestors())]
                to = ObjectKey(ObjectType.GENERIC_TABLE, str(id))
                restricted = await retired_locations.carry_policies(
                    connection, to=to, namespace=namespace, file=None, above=above
                )
            if explicit:
                await release_claims(connection, location)
            pending = await record_ownership(connection, permit.actor, ObjectType.GENERIC_TABLE, id, namespace)
        await self._delivery.deliver_or_defer(pending)
        return restricted


def _name_taken_error(kind: str, identifier: TableIdentifier) -> AlreadyExistsException:
    if kind == _KIND:
        return AlreadyExistsException(f"Generic table already exists: {identifier.dotted}")
    if kind == "table":
        return AlreadyExistsException.table_instead_of_view(identifier)
    return name_taken_error(kind, identifier)


def _answer(
    identifier: TableIdentifier, format: str, location: str, document: bytes, vended_result: VendResult
) -> LoadGenericTableResult:
    return LoadGenericTableResult(
        table=load_answer(identifier, format, location, read_document(document)),
        config=vended_result.config,
        storage_credentials=vended_result.credentials,
    )
