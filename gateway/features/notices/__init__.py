# SPDX-License-Identifier: Apache-2.0
"""Use cases of the notices of projects."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import pending_during_outage
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.notice import NoticeNameAlreadyExists
from gateway.access.nouns.project import ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.notices import CreateNotice, DeleteNotice, GetNotice, ListNotices, Notice, NoticeList
from gateway.db.tuples.ownership import record_deleted, record_new_in_project
from gateway.db.warehouses import notices
from gateway.db.warehouses.notices import NoticeRow
from gateway.features.kit import UseCases


class Notices(UseCases):
    """Create, list and delete the notices of projects."""

    async def create(self, permit: Permit[CreateNotice]) -> Notice:
        """Write a notice that its creator owns. Raise NoticeNameAlreadyExists."""
        request = permit.operation.request
        project = permit.row(permit.operation.project, ResolvedProject)
        id = uuid7()
        permit.pending_audit.add_details(notice_id=str(id))
        async with self._database.change(permit) as connection:
            row = await notices.create(connection, id=id, project_id=project.id, name=request.name, text=request.text)
            if row is None:
                raise NoticeNameAlreadyExists(
                    "A notice with this name already exists in the project. Choose another name."
                )
            pending = await record_new_in_project(
                connection, permit.actor, ObjectKey(ObjectType.NOTICE, str(id)), project.key
            )
        await self._delivery.deliver_or_defer(pending)
        return _wire(row)

    async def list(self, permit: Permit[ListNotices]) -> NoticeList:
        """Return the notices of the project in order of creation."""
        operation = permit.operation
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            rows = await notices.page(connection, operation.project.project_id, after=page.after, limit=page.limit)
        return NoticeList(
            notices=[_wire(row) for row in page.rows(rows)], next_page_token=page.next_token(rows, lambda row: row.id)
        )

    async def get(self, permit: Permit[GetNotice]) -> Notice:
        """Return one notice."""
        async with self._database.read() as connection:
            row = await notices.get(connection, permit.operation.notice.notice_id)
        if row is None:
            raise not_found(permit.operation.notice)
        return _wire(row)

    async def delete(self, permit: Permit[DeleteNotice]) -> None:
        """Delete a notice, and the grants on it. Return when these are revoked everywhere.

        Raise RevocationPending if the deletion is recorded but OpenFGA has not confirmed it yet.
        """
        ref = permit.operation.notice
        async with self._database.change(permit) as connection:
            project_id = await notices.delete(connection, ref.notice_id)
            if project_id is None:
                raise not_found(ref)
            gone = ObjectKey(ObjectType.NOTICE, str(ref.notice_id))
            parent = ObjectKey(ObjectType.PROJECT, project_id)
            pending = await record_deleted(connection, gone, parent, above=(), warehouse_id=None, by=permit.actor.id)
        with pending_during_outage(
            "The notice is deleted, but the revocation of the grants on it is not yet complete. The gateway retries "
            "it; no further request is needed."
        ):
            await self._delivery.deliver(pending)


def _wire(row: NoticeRow) -> Notice:
    return Notice(id=row.id, name=row.name, text=row.text, created_at=row.created_at)
