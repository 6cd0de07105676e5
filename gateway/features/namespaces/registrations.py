# SPDX-License-Identifier: Apache-2.0
"""Register and adopt tables and views by their metadata files; unregister tables.

To adopt is to register files that no owner of their location registers. The content of a metadata file is a claim of
the caller, not a fact. All its paths must lie inside the location that it names, and the caller must be entitled to
that location (`location_reuse.py`; LG-LOC-09, LG-LOC-10 and LG-LOC-23 in `docs/threats.md`). The row is new, and so is
the object of the relationship model: two registrations of one file are two tables.
"""

from __future__ import annotations

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import forbidden
from gateway.access.nouns.refs import ObjectType, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedTable
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView, UnregisterTable
from gateway.access.operations.tables import DropTable
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.tables import namespaces, tables, tabular_writes
from gateway.db.tables.documents import Document
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_deleted
from gateway.features.contents.containers import above_table
from gateway.features.credentials.credentials import require_vendable
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.metadata.metadata_validation import MetadataValidator
from gateway.features.tables.location_reuse import Claim, RegistrationPermit, claim_of_file, take_location
from gateway.features.tables.tabular_creation import (
    creation_transaction,
    name_taken_error,
    record_ownership,
    refuse_taken_name,
)
from gateway.features.views.views import Views, view_name_taken_error
from gateway.features.views.views import answer as view_answer
from gateway.iceberg.applying.structure import check_format_version
from gateway.iceberg.errors import (
    CommitFailedException,
    InvalidLocation,
    NoSuchTableException,
    ProtectedTabularDeletionWithoutForce,
)
from gateway.iceberg.excerpts import without_data
from gateway.iceberg.identifiers import TableIdentifier, fold, validate_new_name
from gateway.iceberg.views import decode_stored_view_metadata
from gateway.iceberg.wire import LoadTableResult, LoadViewResult, UnregisterTableResult
from gateway.offloading import offload
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile
from gateway.storage.examine import Examined, Kind
from gateway.storage.registry import parse_location


class Registrations(UseCases):
    """Use cases: register and adopt tables and views, unregister tables."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._documents = kit.documents
        self._approval = Views(kit).approval
        self._files = MetadataFiles(kit)
        self._validator = MetadataValidator(MetadataFiles(kit).limits)
        self._views = Views(kit)

    async def table(
        self, permit: Permit[RegisterTable | AdoptTable], drop: Permit[DropTable] | None
    ) -> LoadTableResult:
        """Register a table from a metadata file. If `drop` is given, the new table replaces the table of this name.

        The right to read the table is not decided yet, and a data policy can restrict the caller. So the response
        leaves out metadata that is computed from the rows.

        Raises:
        - AlreadyExistsException: the name is taken.
        - TableActionForbidden: overwriting needs `can_drop`.
        - NamespaceActionForbidden: the caller has no claim on the location.
        - LocationAlreadyTaken, InvalidLocation, FormatVersionNotAllowed.
        - NotFoundException: the file is missing.
        - CommitFailedException: the table to overwrite was changed or renamed meanwhile.
        - Errors of status 400: the file is too large or no table metadata.
        """
        operation = permit.operation
        namespace = permit.namespace(operation.namespace)
        identifier = operation.table.identifier
        validate_new_name(identifier.name)
        replaced = None if drop is None else drop.table(operation.table)
        await self._refuse_taken_name(permit, namespace, replaced)
        profile = namespace.warehouse.storage_profile
        file, folder = _file_and_folder(profile, operation.request.metadata_location)
        claim = await self._claim(permit, file, replaced)
        # Files that are recorded for cleanup in a table's location are left from commits, which delete them. A later
        # commit changes the table's version, which `_delete_replaced` detects.
        await self._files.refuse_pending(file)
        found = await self._read_validated(Kind.TABLE, namespace, file, folder)
        location = parse_location(found.location)
        claim.require_same(location)
        require_vendable(profile, location)
        check_format_version(found.format_version, frozenset(namespace.warehouse.allowed_format_versions))
        # The text of the parsed location, because files are recorded for cleanup, and removed from it, in this
        # spelling.
        written = (file.text, found.document)
        id = uuid7()
        approval = await self._approval.of_registration(
            permit,
            ObjectType.TABLE,
            namespace,
            identifier.name,
            Document(*written),
            replaced=replaced,
            documents=self._documents,
        )
        async with creation_transaction(permit, self._database, namespace, identifier, location) as connection:
            await approval.use(connection)
            gone = [] if replaced is None else await self._delete_replaced(connection, replaced, permit)
            owner = await take_location(
                connection, permit, file, location, id=id, replaced=None if replaced is None else replaced.id
            )
            new = await self._insert(
                connection, permit, id, namespace, identifier, UUID(found.uuid), location, written, owner
            )
        await self._delivery.deliver_or_defer([*gone, *new])
        shown = await offload(lambda: without_data(found.document), size=len(found.document))
        return LoadTableResult(metadata_location=written[0], metadata=msgspec.Raw(shown))

    async def view(self, permit: Permit[RegisterView | AdoptView]) -> LoadViewResult:
        """Register a view from a metadata file. Raises the errors of `table`, and ViewActionForbidden if the view would
        run as another user.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        validate_new_name(request.name, noun="view")
        identifier = TableIdentifier(namespace.namespace, request.name)
        await refuse_taken_name(permit, self._database, namespace, identifier, view_name_taken_error)
        profile = namespace.warehouse.storage_profile
        file, folder = _file_and_folder(profile, request.metadata_location)
        claim = await self._claim(permit, file, None)
        # Cleanup of a dropped view deletes the last file after a time. Until then the file can be registered.
        await self._files.defer_cleanup(file)
        found = await self._read_validated(Kind.VIEW, namespace, file, folder)
        self._views.owners.require(permit.actor, decode_stored_view_metadata(found.document))
        location = parse_location(found.location)
        claim.require_same(location)
        id = uuid7()
        permit.pending_audit.add_details(view_id=str(id), location=location.text)
        written = (file.text, found.document)

        async def take(connection: Connection) -> Principal:
            return await take_location(connection, permit, file, location, id=id)

        approval = await self._approval.of_registration(
            permit, ObjectType.VIEW, namespace, identifier.name, Document(*written), documents=self._documents
        )
        await self._views.insert(permit, namespace, identifier, id, UUID(found.uuid), location, written, approval, take)
        return view_answer(*written)

    async def unregister(self, permit: Permit[UnregisterTable]) -> UnregisterTableResult:
        """Delete the table's row and grants, and return its last state. Its files are not touched.

        Raises ProtectedTabularDeletionWithoutForce for a protected table without `force`, as a drop does. Raises
        TableActionForbidden if the right to unregister expires: a later registration of the files would give permanent
        rights. Raises NoSuchTableException.
        """
        table = permit.table(permit.operation.table)
        await self._door.require_endless(permit, Can.UNREGISTER, permit.operation.table)
        approval = await self._approval.of_drop(permit, table, self._documents)
        async with self._database.change(permit) as connection:
            await approval.use(connection)
            namespace_held = await namespaces.lock_if_unmoved(connection, table.namespace)
            now = await tables.lock(connection, table.id) if namespace_held else None
            if now is None or not _is_unmoved(now.namespace_id, now.name_key, table):
                raise NoSuchTableException.of(permit.operation.table.identifier)
            if now.protected:
                raise ProtectedTabularDeletionWithoutForce.of("table", permit.operation.table.identifier)
            last = await tables.pointer(connection, table.id)
            pending = await self._remove(connection, table, permit.actor)
        if last is None or last.metadata_location is None or last.metadata is None:
            raise NoSuchTableException.of(permit.operation.table.identifier)
        await self._delivery.deliver_or_defer(pending)
        return UnregisterTableResult(metadata_location=last.metadata_location, metadata=msgspec.Raw(last.metadata))

    async def _read_validated(
        self, kind: Kind, namespace: ResolvedNamespace, file: Location, folder: Location
    ) -> Examined:
        """Read the metadata file, and check that it is complete and that all its paths lie inside its own location."""
        warehouse = namespace.warehouse
        async with self._validator.slot():
            document = await self._files.read(warehouse, file, folder)
            return await self._validator.validated(kind, document, file=file, profile=bytes(warehouse.profile))

    async def _refuse_taken_name(
        self,
        permit: Permit[RegisterTable | AdoptTable],
        namespace: ResolvedNamespace,
        replaced: ResolvedTable | None,
    ) -> None:
        operation = permit.operation
        async with self._database.read() as connection:
            kind = await tables.name_taken(connection, namespace.id, operation.request.name)
        if kind is None or replaced is not None:
            return
        if kind == "table" and operation.request.overwrite and permit.holds(Can.GET_METADATA, operation.table):
            raise forbidden(permit.actor, "drop_table, which `overwrite` needs,", operation.table, ())
        raise name_taken_error(kind, operation.table.identifier)

    async def _claim(
        self,
        permit: RegistrationPermit,
        file: Location,
        replaced: ResolvedTable | None,
    ) -> Claim:
        """Return the claim on the file's location, before the file is read (LG-LOC-10, LG-LOC-24 in `docs/threats.md`).

        Raises the errors of `claim_of_file`, and ForbiddenException if the claim rests on a right that expires.
        """
        async with self._database.read() as connection:
            claim = await claim_of_file(connection, permit, file, replaced=None if replaced is None else replaced.id)
        if claim.location is not None and claim.owner.type is PrincipalType.ROLE:
            # The row's owner gets permanent rights on the new row, so a role membership that expires is not enough.
            await self._door.require_endless_membership(permit, claim.owner.id, permit.operation.namespace)
        if claim.location is None:
            # The registration makes its caller the permanent owner of the adopted files, so the right to adopt must not
            # expire.
            warehouse = WarehouseRef(permit.operation.namespace.warehouse_id)
            await self._door.require_endless(permit, Can.ADOPT_FILES, warehouse)
        return claim

    async def _delete_replaced(
        self, connection: Connection, replaced: ResolvedTable, permit: Permit[RegisterTable | AdoptTable]
    ) -> list[Pending]:
        """Delete the row of the overwritten table and keep its files. Return the keys of the tuples to deliver.

        Raises CommitFailedException if the table changed since the decision, and ProtectedTabularDeletionWithoutForce.
        """
        now = await tables.lock(connection, replaced.id)
        if now is None:
            return []
        if not _is_unmoved(now.namespace_id, now.name_key, replaced):
            raise CommitFailedException("The table to overwrite was renamed during this request. Try again.")
        if now.version != replaced.version:
            # The commit that changed the table may be deleting the file that was read, if it is no longer in the
            # metadata log.
            raise CommitFailedException("The table to overwrite was changed during this request. Try again.")
        if now.protected:
            raise ProtectedTabularDeletionWithoutForce.of("table", replaced.identifier)
        permit.pending_audit.add_details(replaced_id=str(replaced.id))
        return await self._remove(connection, replaced, permit.actor)

    async def _remove(self, connection: Connection, table: ResolvedTable, actor: Actor) -> list[Pending]:
        await tables.drop(connection, table.id, by=actor.id)
        namespace = table.namespace
        return await record_deleted(
            connection,
            table.key,
            namespace.key,
            above=above_table(namespace),
            warehouse_id=namespace.warehouse.id,
            by=actor.id,
        )

    async def _insert(
        self,
        connection: Connection,
        permit: Permit[RegisterTable | AdoptTable],
        id: UUID,
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        uuid: UUID,
        location: Location,
        written: tuple[str, bytes],
        owner: Principal,
    ) -> list[Pending]:
        permit.pending_audit.add_details(table_id=str(id), location=location.text)
        await tabular_writes.create(
            connection,
            id=id,
            warehouse_id=namespace.warehouse.id,
            namespace_id=namespace.id,
            name=identifier.name,
            table_uuid=uuid,
            location=location.text,
            location_key=location.overlap_key,
            metadata_location=written[0],
            metadata=written[1],
            staged_by=None,
        )
        return await record_ownership(connection, permit.actor, ObjectType.TABLE, id, namespace, owner=owner)


def _file_and_folder(profile: StorageProfile, text: str) -> tuple[Location, Location]:
    """Return (location of the file, its folder). Raises InvalidLocation unless the folder is below the base."""
    file = profile.parse_location(text)
    folder = file.ancestors()[-1]
    if not isinstance(folder, Location) or not profile.base_location().contains(folder, strict=True):
        raise InvalidLocation(
            f"The metadata file {file.text!r} must be in a folder below the base location of the warehouse."
        )
    return file, folder


def _is_unmoved(namespace_id: UUID, name_key: str, table: ResolvedTable) -> bool:
    return namespace_id == table.namespace.id and name_key == fold(table.identifier.name)
