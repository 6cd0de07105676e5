# SPDX-License-Identifier: Apache-2.0
"""Use cases of principals that decide about access requests: approve, deny, and end an approved access."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.management_errors import (
    AccessAlreadyGranted,
    AccessRequestInvalid,
    AccessRequestNotOpen,
    OwnAccessRequestForbidden,
)
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.operations.access_request_bodies import AccessRequestStatus
from gateway.access.operations.access_requests import (
    ApproveAccessRequest,
    DenyAccessRequest,
    EndAccess,
    FindAccessRequestToApprove,
    FindAccessRequestToDeny,
    FindAccessRequestToEnd,
    FindingAccessRequest,
    FoundAccessRequest,
    change_for,
)
from gateway.access.operations.grants import Assignment
from gateway.db.engine.database import Connection
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow
from gateway.db.grants.decided_rows import granted_for_longer
from gateway.features.access_requests.access_requests import not_pending
from gateway.features.access_requests.decided import user_of
from gateway.features.access_requests.deciders import Deciders, privileges_of
from gateway.features.access_requests.requested_objects import stored_ref
from gateway.features.grants.grants import Grants, RequestedChange
from gateway.features.kit import Kit, UseCases

ChangesAccess = ApproveAccessRequest | EndAccess


class AccessDecisions(UseCases):
    """Decisions about access requests of other users, and the end of accesses."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._rules = kit.access_rules
        self._deciders = Deciders(kit)
        self._grants = Grants(kit)

    async def find_to_approve(self, permit: Permit[FindAccessRequestToApprove]) -> ApproveAccessRequest:
        """Find the request. Return the operation that approves it, which the door decides next.

        Raises AccessRequestNotFound, OwnAccessRequestForbidden, and AccessRequestInvalid for an approval of more than
        was requested, or of a privilege that can no longer be granted.
        """
        request = permit.operation.request
        row = await self._of_another(permit)
        chosen = row.privileges if request.privileges is None else sorted(set(request.privileges))
        duration = row.duration if request.duration_seconds is None else request.duration_seconds
        if not set(chosen) <= set(row.privileges) or duration > row.duration:
            raise AccessRequestInvalid(
                f"An approval can give {', '.join(row.privileges)} for {row.duration} s, as requested, or less. A "
                "longer access needs a new request."
            )
        known = privileges_of(row)
        unknown = sorted(set(chosen) - set(known))
        if unknown:
            raise AccessRequestInvalid(
                f"{', '.join(unknown)} can no longer be granted on this {row.on.type}. Approve other `privileges` of "
                "the request, or deny it. Its requester can withdraw it."
            )
        ends = permit.resolution.now + timedelta(seconds=min(duration, self._rules.longest_duration))
        writes = tuple(Assignment(each, user_of(row), row.grant_reason, ends) for each in known if each in chosen)
        found = _found(row)
        return ApproveAccessRequest(found, change_for(found, writes=writes), request)

    async def approve(self, permit: Permit[ApproveAccessRequest]) -> None:
        """Approve the request, and grant its privileges in the same transaction.

        Repeating the own decision has no effect. Raises AccessRequestNotOpen, AccessAlreadyGranted, and the errors of
        a change of grants.
        """
        operation, by = permit.operation, permit.actor.id
        found, writes = operation.found, operation.change.writes
        granted = [each.privilege for each in writes]
        before = await self._now(found)
        if before.status == AccessRequestStatus.APPROVED and (before.decided_by, before.granted) == (by, granted):
            await self._repeat(permit)
            return
        [ends] = {each.expires_at for each in writes}
        if ends is None:
            raise LookupError("the grants of a request expire")

        async def mark(connection: Connection) -> None:
            longer = await granted_for_longer(connection, before, granted, by=by, until=ends)
            if longer is not None:
                raise AccessAlreadyGranted(
                    f"You have already granted {longer} to {found.principal} for as long or longer. Deny the request, "
                    "or approve its other privileges."
                )
            comment = operation.request.comment
            approved = AccessRequestStatus.APPROVED
            if not await access_requests.decide(
                connection, found.id, approved, by=by, comment=comment, granted=granted, ends_at=ends
            ):
                raise not_pending(await _get(connection, found))

        await self._change(permit, before, mark)

    async def find_to_deny(self, permit: Permit[FindAccessRequestToDeny]) -> DenyAccessRequest:
        """Find the request. Return the operation that denies it, which the door decides next.

        Raises AccessRequestNotFound and OwnAccessRequestForbidden.
        """
        row = await self._of_another(permit)
        grantable = await self._deciders.grantable(permit, row)
        if not grantable:
            raise access_request_not_found(row.id)
        return DenyAccessRequest(_found(row), grantable[0], permit.operation.request)

    async def deny(self, permit: Permit[DenyAccessRequest]) -> None:
        """Deny the request. Repeating the own decision has no effect. Raises AccessRequestNotOpen."""
        operation, by = permit.operation, permit.actor.id
        async with self._database.change(permit) as connection:
            denied, comment = AccessRequestStatus.DENIED, operation.request.reason
            if await access_requests.decide(connection, operation.found.id, denied, by=by, comment=comment):
                return
            now = await _get(connection, operation.found)
            if now.status != AccessRequestStatus.DENIED or now.decided_by != by:
                raise not_pending(now)
            permit.pending_audit.add_details(repeated="true")

    async def find_to_end(self, permit: Permit[FindAccessRequestToEnd]) -> EndAccess:
        """Find the request. Return the operation that ends its access, which the door decides next.

        Raises AccessRequestNotFound, and AccessRequestNotOpen for a request that was never approved.
        """
        row = await self._deciders.find(permit, permit.operation.access_request_id)
        if not row.granted:
            raise _not_approved(row)
        given = [each for each in privileges_of(row) if each in row.granted]
        found = _found(row)
        change = change_for(found, deletes=tuple(Assignment(each, user_of(row)) for each in given))
        return EndAccess(found, change, own=row.principal == permit.actor.id)

    async def end(self, permit: Permit[EndAccess]) -> None:
        """Revoke the grants that the approval made. Other grants of the same privileges stay.

        Repeating it has no effect. Raises AccessRequestNotOpen and the errors of a change of grants, and
        AccessRequestNotFound if another user gives up the access as its own.
        """
        if permit.operation.own and permit.operation.found.principal != permit.actor.id:
            raise access_request_not_found(permit.operation.found.id)
        found = permit.operation.found
        before = await self._now(found)

        async def mark(connection: Connection) -> None:
            if not await access_requests.end(connection, found.id, by=permit.actor.id):
                now = await _get(connection, found)
                if now.status != AccessRequestStatus.ENDED:
                    raise _not_approved(now)

        await self._change(permit, before, mark, granted_for=before.grant_reason)

    async def _change(
        self,
        permit: Permit[ChangesAccess],
        row: AccessRequestRow,
        mark: Callable[[Connection], Awaitable[None]],
        granted_for: str | None = None,
    ) -> None:
        """Change the grants of a request, and announce the change of grants beside that of the request."""
        announced = FurtherEvent(
            type="changeGrants",
            kind=row.object_type,
            id=row.object_id,
            data=permit.operation.change.facts(),
            project_id=row.project_id,
            warehouse_id="" if row.warehouse_id is None else str(row.warehouse_id),
        )
        permit.pending_audit.further_changes = FurtherChanges([announced]).all
        await self._grants.change_for_request(permit, [(permit.operation.change, RequestedChange(mark, granted_for))])

    async def _of_another(self, permit: Permit[FindingAccessRequest]) -> AccessRequestRow:
        """Return the request that the caller is to decide. Raises OwnAccessRequestForbidden for the caller's own."""
        row = await self._deciders.find(permit, permit.operation.access_request_id)
        if row.principal == permit.actor.id:
            raise OwnAccessRequestForbidden(
                f"You made access request {row.id}. Another principal that may grant its privileges has to decide."
            )
        return row

    async def _now(self, found: FoundAccessRequest) -> AccessRequestRow:
        async with self._database.read() as connection:
            return await _get(connection, found)

    async def _repeat(self, permit: Permit[ApproveAccessRequest]) -> None:
        """Record that the caller repeated a decision, and change nothing."""
        permit.pending_audit.add_details(repeated="true")
        async with self._database.change(permit):
            pass


def _found(row: AccessRequestRow) -> FoundAccessRequest:
    return FoundAccessRequest(row.id, row.principal, stored_ref(row.on, row.warehouse_id), privileges_of(row))


async def _get(connection: Connection, found: FoundAccessRequest) -> AccessRequestRow:
    row = await access_requests.get(connection, found.id)
    if row is None:
        raise access_request_not_found(found.id)
    return row


def _not_approved(row: AccessRequestRow) -> AccessRequestNotOpen:
    return AccessRequestNotOpen(f"Access request {row.id} is {row.status}. It gives no access that could end.")
