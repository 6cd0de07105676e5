# SPDX-License-Identifier: Apache-2.0
"""Use cases of requesters: make, list, read, withdraw and repeat access requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    AccessReminderTooEarly,
    AccessRequestAlreadyOpen,
    AccessRequestInvalid,
    AccessRequestNotOpen,
    TooManyAccessRequests,
)
from gateway.access.nouns.authz_errors import access_request_not_found, not_found
from gateway.access.nouns.resolved import warehouse_of
from gateway.access.operations.access_request_bodies import AccessRequest, AccessRequestList, AccessRequestStatus
from gateway.access.operations.access_requests import (
    CreateAccessRequest,
    GetAccessRequest,
    ListAccessRequests,
    RemindOfAccessRequest,
    WithdrawAccessRequest,
)
from gateway.access.principals import principal_answer
from gateway.access.tuples import PrincipalType
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow, NewAccessRequest
from gateway.features.access_requests.deciders import Deciders
from gateway.features.access_requests.requested_objects import name_of, object_answer
from gateway.features.kit import Kit, UseCases
from gateway.features.paging import place_of, unpacked, visible_page

_PAGE: Final = 100


class AccessRequests(UseCases):
    """The access requests of the caller, and those about which the caller may decide."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._rules = kit.access_rules
        self._deciders = Deciders(kit)

    async def create(self, permit: Permit[CreateAccessRequest]) -> AccessRequest:
        """Record a pending request.

        Raises AccessRequestInvalid for a duration that is too long, AccessRequestAlreadyOpen and TooManyAccessRequests.
        """
        operation = permit.operation
        request, on, by = operation.request, permit.resolution.get(operation.on), permit.actor.id
        duration = request.duration_seconds or self._rules.default_duration
        if duration > self._rules.longest_duration:
            raise AccessRequestInvalid(
                f"`duration-seconds` is {duration}; at most {self._rules.longest_duration} are allowed."
            )
        if on is None or on.in_project is None:
            raise not_found(operation.on)
        id, warehouse = uuid7(), warehouse_of(on)
        privileges = sorted(operation.privileges)
        permit.pending_audit.add_details(access_request_id=str(id))
        async with self._database.change(permit) as connection:
            await access_requests.lock_counts(connection, by, on.key)
            opened = await access_requests.open_requests(connection, by, on.key, privileges)
            self._refuse_more(opened)
            await access_requests.record(
                connection,
                NewAccessRequest(
                    id=id,
                    principal=by,
                    project_id=on.in_project,
                    warehouse_id=None if warehouse is None else warehouse.id,
                    on=on.key,
                    name=name_of(on),
                    privileges=privileges,
                    reason=request.reason,
                    duration=duration,
                    lifetime=self._rules.lifetime,
                ),
            )
            made = await access_requests.get(connection, id)
        if made is None:
            raise access_request_not_found(id)
        return access_request_answer(made)

    def _refuse_more(self, opened: access_requests.OpenRequests) -> None:
        if opened.same is not None:
            raise AccessRequestAlreadyOpen(
                f"You have already requested these privileges: access request {opened.same} is pending. Withdraw it "
                "to change the request."
            )
        if opened.of_principal >= self._rules.per_principal:
            raise TooManyAccessRequests(
                f"You have {opened.of_principal} pending access requests, which is the limit. Withdraw one first."
            )
        if opened.on_object >= self._rules.per_object:
            raise TooManyAccessRequests("This object has too many pending access requests. Try again later.")

    async def list(self, permit: Permit[ListAccessRequests]) -> AccessRequestList:
        """Return the caller's requests, and those of other users about which the caller may decide."""
        operation, actor = permit.operation, permit.actor

        async def fetch(after: UUID | None, limit: int) -> Sequence[AccessRequestRow]:
            async with self._database.read() as connection:
                return await access_requests.page(
                    connection,
                    actor.id,
                    own=operation.mine,
                    project_id=actor.within,
                    status=operation.status,
                    after=after,
                    limit=limit,
                )

        rows, token = await visible_page(
            fetch,
            partial(self._deciders.readable, permit),
            lambda row: row.id,
            after=place_of(operation.page_token, _unpacked_id),
            page_size=min(operation.page_size or _PAGE, self._page_size),
        )
        return AccessRequestList(access_requests=[access_request_answer(row) for row in rows], next_page_token=token)

    async def get(self, permit: Permit[GetAccessRequest]) -> AccessRequest:
        """Return a request. Raises AccessRequestNotFound unless the caller made it or may decide about it."""
        return access_request_answer(await self._deciders.find(permit, permit.operation.access_request_id))

    async def withdraw(self, permit: Permit[WithdrawAccessRequest]) -> None:
        """Withdraw a pending request of the caller; one that is withdrawn already stays so.

        Raises AccessRequestNotFound and AccessRequestNotOpen.
        """
        id = permit.operation.access_request_id
        async with self._database.change(permit) as connection:
            if not await access_requests.withdraw(connection, id, by=permit.actor.id):
                row = _own(await access_requests.get(connection, id), permit.actor.id, id)
                if row.status != AccessRequestStatus.WITHDRAWN:
                    raise not_pending(row)
                permit.pending_audit.add_details(repeated="true")

    async def remind(self, permit: Permit[RemindOfAccessRequest]) -> None:
        """Announce a pending request of the caller again.

        Raises AccessRequestNotFound, AccessRequestNotOpen and AccessReminderTooEarly.
        """
        id, interval = permit.operation.access_request_id, self._rules.reminder_interval
        async with self._database.change(permit) as connection:
            if not await access_requests.remind(connection, id, by=permit.actor.id, interval=interval):
                row = _own(await access_requests.get(connection, id), permit.actor.id, id)
                if row.status != AccessRequestStatus.PENDING:
                    raise not_pending(row)
                raise AccessReminderTooEarly(
                    f"A reminder is possible {interval:.0f} s after the request, and after the last reminder."
                )


def not_pending(row: AccessRequestRow) -> AccessRequestNotOpen:
    """Return the error for a change of a request that is no longer pending."""
    return AccessRequestNotOpen(f"Access request {row.id} is {row.status}. It is not pending.")


def access_request_answer(row: AccessRequestRow) -> AccessRequest:
    """Return a recorded request in the form of a response."""
    return AccessRequest(
        id=row.id,
        status=AccessRequestStatus(row.status),
        principal=principal_answer(PrincipalType.USER, row.principal),
        object=object_answer(row.on, row.project_id, row.warehouse_id),
        name=row.name,
        privileges=row.privileges,
        reason=row.reason,
        duration_seconds=row.duration,
        created_at=row.created_at,
        expires_at=row.expires_at,
        reminded_at=row.reminded_at,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        comment=row.comment,
        granted=row.granted,
        ends_at=row.ends_at,
        ended_by=row.ended_by,
        ended_at=row.ended_at,
    )


def _own(row: AccessRequestRow | None, user: str, id: UUID) -> AccessRequestRow:
    if row is None or row.principal != user:
        raise access_request_not_found(id)
    return row


def _unpacked_id(token: str) -> UUID:
    return unpacked(token, UUID)
