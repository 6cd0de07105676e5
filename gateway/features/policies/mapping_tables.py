# SPDX-License-Identifier: Apache-2.0
"""Use cases of mapping tables, which map users and roles to values that row filters compare with columns."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import GrantPrincipalUnknown, MappingTableNameAlreadyExists, MappingTableNotFound
from gateway.access.nouns.project import ResolvedProject
from gateway.access.operations.mapping_tables import (
    ChangeEntriesRequest,
    ChangeMappingEntries,
    CreateMappingTable,
    DeleteMappingTable,
    GetMappingTable,
    ListMappingEntries,
    ListMappingTables,
    MappedPrincipal,
    MappingEntry,
    MappingEntryList,
    MappingTableAnswer,
    MappingTableList,
)
from gateway.db.engine.database import Connection
from gateway.db.policies import mapping_tables
from gateway.db.policies.data_policy_revisions import touch
from gateway.db.policies.mapping_tables import EntryRow, MappingTableRow
from gateway.db.principals import roles, users
from gateway.features.kit import UseCases
from gateway.features.paging import principal
from gateway.iceberg.errors import BadRequestException


class MappingTables(UseCases):
    """Create, list and delete the mapping tables of projects, and change their entries."""

    async def create(self, permit: Permit[CreateMappingTable]) -> MappingTableAnswer:
        """Create an empty mapping table. Raises MappingTableNameAlreadyExists."""
        request = permit.operation.request
        project = permit.row(permit.operation.project, ResolvedProject)
        id = uuid7()
        permit.pending_audit.add_details(mapping_table_id=str(id))
        try:
            async with self._database.change(permit) as connection:
                row = await mapping_tables.create(
                    connection, id=id, project_id=project.id, name=request.name, description=request.description
                )
                # A policy may already refer to the name of the new table, so cached decisions must not be used again.
                await touch(connection, project_id=project.id, warehouse_id=None)
        except mapping_tables.NameTaken as taken:
            raise MappingTableNameAlreadyExists(
                "A mapping table with this name already exists in the project. Choose another name."
            ) from taken
        return _wire(row)

    async def list(self, permit: Permit[ListMappingTables]) -> MappingTableList:
        """Return the mapping tables of the project in order of creation."""
        operation = permit.operation
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            rows = await mapping_tables.page(
                connection, operation.project.project_id, after=page.after, limit=page.limit
            )
        return MappingTableList(
            mapping_tables=[_wire(row) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.id),
        )

    async def get(self, permit: Permit[GetMappingTable]) -> MappingTableAnswer:
        """Return one mapping table. Raises MappingTableNotFound."""
        operation = permit.operation
        async with self._database.read() as connection:
            return _wire(await _row(connection, operation.mapping_table_id, operation.project.project_id))

    async def delete(self, permit: Permit[DeleteMappingTable]) -> None:
        """Delete a mapping table with its entries. Raises MappingTableNotFound."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            row = await _row(connection, operation.mapping_table_id, operation.project.project_id, lock=True)
            await mapping_tables.delete(connection, row.id)
            await touch(connection, project_id=row.project_id, warehouse_id=None)

    async def entries(self, permit: Permit[ListMappingEntries]) -> MappingEntryList:
        """Return the principals with their values. Raises MappingTableNotFound."""
        operation = permit.operation
        page = self._page_of(operation, principal)
        async with self._database.read() as connection:
            row = await _row(connection, operation.mapping_table_id, operation.project.project_id)
            found = await mapping_tables.entries(connection, row.id, after=page.after, limit=page.limit)
        return MappingEntryList(
            entries=[_entry(each) for each in page.rows(found)],
            next_page_token=page.next_token(found, lambda row: f"{row.principal_type}:{row.principal_id}"),
        )

    async def change(self, permit: Permit[ChangeMappingEntries]) -> None:
        """Set and remove values in one transaction. They apply from the response on.

        Raises MappingTableNotFound, GrantPrincipalUnknown, or 400 for a principal that is named twice.
        """
        operation = permit.operation
        request = operation.request
        principals = [*(each.principal for each in request.set), *request.remove]
        if len(set(principals)) < len(principals):
            raise BadRequestException("A principal occurs more than once. State all of its values in one entry.")
        async with self._database.change(permit) as connection:
            row = await _row(connection, operation.mapping_table_id, operation.project.project_id, lock=True)
            await _require_known(connection, request)
            await mapping_tables.replace(
                connection,
                row.id,
                values=[((each.principal.type, each.principal.id), each.values) for each in request.set],
                removed=[(each.type, each.id) for each in request.remove],
            )
            await touch(connection, project_id=row.project_id, warehouse_id=None)


async def _row(connection: Connection, id: UUID, project_id: str, *, lock: bool = False) -> MappingTableRow:
    row = await mapping_tables.get(connection, id, project_id=project_id, lock=lock)
    if row is None:
        raise MappingTableNotFound(f"The project has no mapping table {id}.")
    return row


async def _require_known(connection: Connection, request: ChangeEntriesRequest) -> None:
    """Raise GrantPrincipalUnknown if a user or role in the request does not exist: the id is usually mistyped."""
    some = [each.principal for each in request.set]
    user_ids = {each.id for each in some if each.type == "user"}
    role_ids = {each.id for each in some if each.type == "role"}
    missing = sorted(user_ids - await users.exist(connection, sorted(user_ids)))
    missing += sorted(role_ids - await roles.exist(connection, sorted(role_ids)))
    if missing:
        raise GrantPrincipalUnknown(
            f"These users or roles do not exist on this server: {', '.join(missing)}. Correct the ids, or register the "
            "users first: POST /management/v1/user."
        )


def _wire(row: MappingTableRow) -> MappingTableAnswer:
    return MappingTableAnswer(
        id=row.id, project_id=row.project_id, name=row.name, created_at=row.created_at, description=row.description
    )


def _entry(row: EntryRow) -> MappingEntry:
    if row.principal_type == "user":
        return MappingEntry(principal=MappedPrincipal(user=row.principal_id), values=tuple(row.values))
    return MappingEntry(principal=MappedPrincipal(role=UUID(row.principal_id)), values=tuple(row.values))
