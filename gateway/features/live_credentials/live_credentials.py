# SPDX-License-Identifier: Apache-2.0
"""List live credentials, which are issued and not yet expired. Count those that remain valid after a revocation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from gateway.access.door.permit import Permit
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.data_policy import ResolvedDataPolicy
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedView
from gateway.access.nouns.role import ResolvedRole
from gateway.access.operation import Operation
from gateway.access.operations.grant_lists import ChangeColumnGrants, ChangeGrants, WriteColumnAssignments
from gateway.access.operations.grants import WriteAssignments
from gateway.access.operations.live_credentials import (
    ListPrincipalLiveCredentials,
    ListTabularLiveCredentials,
    ListWarehouseLiveCredentials,
    LiveCredential,
    LiveCredentialList,
)
from gateway.access.operations.roles import RemoveRoleMember
from gateway.access.tuples import PrincipalType
from gateway.db.credentials import live_credentials
from gateway.db.credentials.live_credentials import Selection
from gateway.db.engine.database import Connection, Database
from gateway.features.kit import UseCases
from gateway.features.paging import Paged
from gateway.iceberg.identifiers import Namespace, TableIdentifier

Revoking = WriteAssignments | ChangeGrants | WriteColumnAssignments | ChangeColumnGrants | RemoveRoleMember
"""The operations that can revoke grants."""

_log = structlog.get_logger("governance.live_credentials")


@dataclass(frozen=True, slots=True)
class Remaining:
    """The number of credentials that stay valid after grants on an object were revoked, and the time of their last
    expiry.

    They are credentials for the object or below it, of the principals of the revoked grants.
    """

    count: int
    until: datetime | None

    @property
    def text(self) -> str:
        """The value of the response header and of the audit detail: `3; until=2026-03-04T12:00:00+00:00`."""
        return str(self.count) if self.until is None else f"{self.count}; until={_iso(self.until)}"


_UNKNOWN: Final = "unknown"


class LiveCredentials(UseCases):
    """Pages of live credentials, and the number of those that remain valid after a revocation."""

    async def in_warehouse(self, permit: Permit[ListWarehouseLiveCredentials]) -> LiveCredentialList:
        """Return the live credentials of a warehouse, including those for deleted tables."""
        operation = permit.operation
        selection = Selection(
            warehouse_id=permit.warehouse(operation.on).id, table_id=operation.table_id, user=operation.user
        )
        return await self._page(selection, operation)

    async def of_tabular(self, permit: Permit[ListTabularLiveCredentials]) -> LiveCredentialList:
        """Return the live credentials of a table or generic table."""
        operation = permit.operation
        selection = Selection(table_id=UUID(_row(permit, operation.on).key.id), user=operation.user)
        return await self._page(selection, operation)

    async def of_principal(self, permit: Permit[ListPrincipalLiveCredentials]) -> LiveCredentialList:
        """Return the live credentials of a principal in a project.

        For the caller itself, they are the credentials that it received; with an assumed role, those that it received
        in that role. For another user, they include credentials that rest on that user's right, or that it passed on as
        an engine.
        """
        operation, actor = permit.operation, permit.actor
        about = operation.principal
        if about is None:
            own = {"received_by": actor.id, "assumed_role": actor.assumed_role}
        elif about.type is PrincipalType.ROLE:
            own = {"assumed_role": UUID(about.id)}
        else:
            own = {"user": about.id}
        selection = Selection(project_id=operation.project.project_id, **own)  # type: ignore[arg-type]  # of three shapes
        return await self._page(selection, operation)

    async def after_revocation(self, permit: Permit[Revoking]) -> str | None:
        """Return the header value that counts the credentials which remain valid after the revocations of a change.

        Return None if the change revokes nothing that gives access to data, or if the caller may not list these
        credentials: the right to grant does not imply it. The value is also written to the audit log if the number is
        not 0. The revocation is already in force, so a failure raises no error: the value is then `unknown`.
        """
        if not permit.operation.deletes:
            return None
        try:
            left = await self._remaining(permit)
            if left is None:
                return None
            if left.count:
                await permit.pending_audit.also(live_credentials=left.text)
        except Exception as failed:
            # Any exception: the grant is revoked, and an error would make the client believe the opposite.
            _log.warning("live_credentials.not_counted", exc_info=failed)
            return _UNKNOWN
        return left.text

    async def _remaining(self, permit: Permit[Revoking]) -> Remaining | None:
        change = permit.operation
        row = _row(permit, change.on)
        if isinstance(row, ResolvedRole) and all(entry.privilege is not Privilege.ASSIGNEE for entry in change.deletes):
            return None
        project_id = _project(row)
        counted_on = row.key if project_id is None else ObjectKey(ObjectType.PROJECT, project_id)
        if not all(await self._door.visible(permit, Can.READ_ASSIGNMENTS, [counted_on])):
            return None
        principals = [entry.principal for entry in change.deletes]
        # For a role, any user may be a member, so each credential on the object may depend on the grant.
        by_role = any(each.type is PrincipalType.ROLE for each in principals)
        users = None if by_role else sorted({each.id for each in principals})
        async with self._database.read() as connection:
            return Remaining(*await live_credentials.remaining(connection, row.key, project_id=project_id, users=users))

    async def _page(self, selection: Selection, operation: Paged) -> LiveCredentialList:
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            rows = await live_credentials.page(connection, selection, after=page.after, limit=page.limit)
        return LiveCredentialList(
            live_credentials=list(page.rows(rows)),
            next_page_token=page.next_token(rows, lambda row: row.id),
        )


def _row(permit: Permit[Operation], ref: Ref) -> Resolved:
    row = permit.resolution.get(ref)
    if row is None:
        raise LookupError(f"{type(permit.operation).__name__} was not admitted on {ref!r}")
    return row


def _project(row: Resolved) -> str | None:
    """Return the id of the project if the row is a view, role or data policy, otherwise None."""
    match row:
        case ResolvedRole(project_id=project_id) | ResolvedDataPolicy(project_id=project_id):
            return project_id
        case ResolvedView():
            return row.warehouse.project_id
        case _:
            return None


def _iso(moment: datetime) -> str:
    """Return the time in UTC, rounded up to a whole second, so that the credentials have expired by then."""
    utc = moment.astimezone(UTC)
    return (utc.replace(microsecond=0) + timedelta(seconds=1 if utc.microsecond else 0)).isoformat()


_AT_A_TIME: Final = 1000


class NotFound(Exception):
    """No warehouse or table has the given name, or several have."""


async def find(
    database: Database, *, warehouse: str | None, table: str | None, user: str | None
) -> list[LiveCredential]:
    """Return the live credentials, oldest first. A filter that is None selects all.

    `warehouse` is an id or a name. `table` is an id, or the dotted name of a table in the warehouse. Raises NotFound
    and DatabaseUnavailable.
    """
    found: list[LiveCredential] = []
    async with database.read() as connection:
        selection = await _selection(connection, warehouse, table, user)
        while True:
            after = found[-1].id if found else None
            rows = await live_credentials.page(connection, selection, after=after, limit=_AT_A_TIME)
            found += rows
            if len(rows) < _AT_A_TIME:
                return found


async def _selection(connection: Connection, warehouse: str | None, table: str | None, user: str | None) -> Selection:
    warehouse_id = None if warehouse is None else _uuid_or_none(warehouse)
    if warehouse is not None and warehouse_id is None:
        ids = await live_credentials.warehouses_named(connection, warehouse)
        if len(ids) != 1:
            raise NotFound(f"{len(ids)} warehouses are named {warehouse!r}; give the id of the warehouse")
        (warehouse_id,) = ids
    table_id = None if table is None else _uuid_or_none(table)
    if table is not None and table_id is None:
        levels = table.split(".")
        if warehouse_id is None or len(levels) < 2:
            raise NotFound("give the id of the table, or its name <namespace>.<name> together with --warehouse")
        identifier = TableIdentifier(Namespace(tuple(levels[:-1])), levels[-1])
        table_id = await live_credentials.table_named(connection, warehouse_id, identifier)
        if table_id is None:
            raise NotFound(f"the warehouse has no table {table!r}; give the id of a deleted table")
    return Selection(warehouse_id=warehouse_id, table_id=table_id, user=user)


def _uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
