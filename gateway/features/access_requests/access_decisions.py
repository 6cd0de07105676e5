# SPDX-License-Identifier: Apache-2.0
"""Use cases of principals that decide about access requests: approve, deny, and end an approved access."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from gateway.access.demand import Facts
from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent, type_of
from gateway.access.management_errors import (
    AccessAlreadyGranted,
    AccessRequestInvalid,
    AccessRequestNotOpen,
    OwnAccessRequestForbidden,
)
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.nouns.privileges import Privilege
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
from gateway.access.operations.grant_lists import ChangeGrants
from gateway.access.operations.grants import Assignment
from gateway.db.engine.database import Connection
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow
from gateway.db.grants.decided_rows import granted_for_longer
from gateway.features.access_requests.access_requests import not_pending
from gateway.features.access_requests.decided import user_of
from gateway.features.access_requests.deciders import Deciders, privileges_of, with_first_status
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
        rows = await self._of_another(permit, permit.operation.request.requests)
        rows = with_first_status(rows, AccessRequestStatus.PENDING, AccessRequestStatus.APPROVED)
        first, *further = [self._approval(permit, row) for row in rows]
        return ApproveAccessRequest(*first, permit.operation.request, further=tuple(further))

    def _approval(
        self, permit: Permit[FindAccessRequestToApprove], row: AccessRequestRow
    ) -> tuple[FoundAccessRequest, ChangeGrants]:
        request = permit.operation.request
        chosen = row.privileges if request.privileges is None else sorted(set(request.privileges))
        duration = row.duration if request.duration_seconds is None else request.duration_seconds
        if not set(chosen) <= set(row.privileges) or duration > row.duration:
            raise AccessRequestInvalid(
                f"An approval can give {', '.join(row.privileges)} on {row.name} for {row.duration} s, as requested, "
                "or less. A longer access needs a new request."
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
        return found, change_for(found, writes=writes)

    async def approve(self, permit: Permit[ApproveAccessRequest]) -> None:
        """Approve the request, and grant its privileges in the same transaction.

        Repeating the own decision has no effect. Raises AccessRequestNotOpen, AccessAlreadyGranted, and the errors of
        a change of grants.
        """
        rows = [await self._now(found) for found, _ in permit.operation.each]
        pairs = list(zip(rows, permit.operation.each, strict=True))
        if all(_approved_before(row, change, permit.actor.id) for row, (_, change) in pairs):
            await self._repeat(permit)
            return
        marks = [partial(self._approve, permit, row, found, change.writes) for row, (found, change) in pairs]
        await self._change(permit, rows, [RequestedChange(mark) for mark in marks])

    async def _approve(
        self,
        permit: Permit[ApproveAccessRequest],
        before: AccessRequestRow,
        found: FoundAccessRequest,
        writes: Sequence[Assignment],
        connection: Connection,
    ) -> None:
        by, granted = permit.actor.id, [each.privilege for each in writes]
        [ends] = {each.expires_at for each in writes}
        if ends is None:
            raise LookupError("the grants of a request expire")
        longer = await granted_for_longer(connection, before, granted, by=by, until=ends)
        if longer is not None:
            raise AccessAlreadyGranted(
                f"You have already granted {longer} to {found.principal} for as long or longer. Deny the request, "
                "or approve its other privileges."
            )
        comment, approved = permit.operation.request.comment, AccessRequestStatus.APPROVED
        if not await access_requests.decide(
            connection, found.id, approved, by=by, comment=comment, granted=granted, ends_at=ends
        ):
            raise not_pending(await _get(connection, found))

    async def find_to_deny(self, permit: Permit[FindAccessRequestToDeny]) -> DenyAccessRequest:
        """Find the request. Return the operation that denies it, which the door decides next.

        Raises AccessRequestNotFound and OwnAccessRequestForbidden.
        """
        denied: list[tuple[FoundAccessRequest, Privilege]] = []
        rows = await self._of_another(permit)
        for row in with_first_status(rows, AccessRequestStatus.PENDING, AccessRequestStatus.DENIED):
            grantable = await self._deciders.grantable(permit, row)
            if not grantable:
                raise access_request_not_found(row.id)
            denied.append((_found(row), grantable[0]))
        first, *further = denied
        return DenyAccessRequest(*first, permit.operation.request, tuple(further))

    async def deny(self, permit: Permit[DenyAccessRequest]) -> None:
        """Deny the request. Repeating the own decision has no effect. Raises AccessRequestNotOpen."""
        by, denied, comment = permit.actor.id, AccessRequestStatus.DENIED, permit.operation.request.reason
        rows = [await self._now(found) for found, _ in permit.operation.each]
        permit.pending_audit.further_changes = FurtherChanges(_further("denyAccessRequest", rows)).all
        async with self._database.change(permit) as connection:
            decided = [
                await _get(connection, found)
                for found, _ in permit.operation.each
                if not await access_requests.decide(connection, found.id, denied, by=by, comment=comment)
            ]
            repeats = len(decided) == len(rows) and all((row.status, row.decided_by) == (denied, by) for row in decided)
            if decided and not repeats:
                raise not_pending(decided[0])
            if repeats:
                permit.pending_audit.add_details(repeated="true")

    async def find_to_end(self, permit: Permit[FindAccessRequestToEnd]) -> EndAccess:
        """Find the request. Return the operation that ends its access, which the door decides next.

        Raises AccessRequestNotFound, and AccessRequestNotOpen for a request that was never approved.
        """
        rows = await self._deciders.find_all(permit, permit.operation.access_request_id)
        given = [row for row in rows if row.granted]
        if not given:
            raise _not_approved(rows[0])
        first, *further = [_end_of(row) for row in with_first_status(given, AccessRequestStatus.APPROVED)]
        return EndAccess(*first, own=rows[0].principal == permit.actor.id, further=tuple(further))

    async def end(self, permit: Permit[EndAccess]) -> None:
        """Revoke the grants that the approval made. Other grants of the same privileges stay.

        Repeating it has no effect. Raises AccessRequestNotOpen and the errors of a change of grants, and
        AccessRequestNotFound if another user gives up the access as its own.
        """
        if permit.operation.own and permit.operation.found.principal != permit.actor.id:
            raise access_request_not_found(permit.operation.found.id)
        rows = [await self._now(found) for found, _ in permit.operation.each]
        marks = [partial(_end, found, permit.actor.id) for found, _ in permit.operation.each]
        changes = [RequestedChange(mark, row.grant_reason) for mark, row in zip(marks, rows, strict=True)]
        await self._change(permit, rows, changes)

    async def _change(
        self,
        permit: Permit[ChangesAccess],
        rows: Sequence[AccessRequestRow],
        requested: Sequence[RequestedChange],
    ) -> None:
        """Change the grants of requests, and announce the changes of grants beside those of the requests."""
        changes = [change for _, change in permit.operation.each]
        announced = [_event("changeGrants", row, change.facts()) for row, change in zip(rows, changes, strict=True)]
        name = type_of("", type(permit.operation).__name__)
        permit.pending_audit.further_changes = FurtherChanges([*announced, *_further(name, rows)]).all
        await self._grants.change_for_request(permit, list(zip(changes, requested, strict=True)))

    async def _of_another(
        self, permit: Permit[FindingAccessRequest], selected: Sequence[UUID] | None = None
    ) -> Sequence[AccessRequestRow]:
        """Return the requests that the caller is to decide. Raises OwnAccessRequestForbidden for the caller's own."""
        rows = await self._deciders.find_all(permit, permit.operation.access_request_id, selected)
        row = rows[0]
        if row.principal == permit.actor.id:
            raise OwnAccessRequestForbidden(
                f"You made access request {row.id}. Another principal that may grant its privileges has to decide."
            )
        return rows

    async def _now(self, found: FoundAccessRequest) -> AccessRequestRow:
        async with self._database.read() as connection:
            return await _get(connection, found)

    async def _repeat(self, permit: Permit[ApproveAccessRequest]) -> None:
        """Record that the caller repeated a decision, and change nothing."""
        permit.pending_audit.add_details(repeated="true")
        async with self._database.change(permit):
            pass


def _approved_before(row: AccessRequestRow, change: ChangeGrants, by: str) -> bool:
    granted = [each.privilege for each in change.writes]
    return row.status == AccessRequestStatus.APPROVED and (row.decided_by, row.granted) == (by, granted)


def _end_of(row: AccessRequestRow) -> tuple[FoundAccessRequest, ChangeGrants]:
    given = [each for each in privileges_of(row) if each in (row.granted or ())]
    found = _found(row)
    return found, change_for(found, deletes=tuple(Assignment(each, user_of(row)) for each in given))


async def _end(found: FoundAccessRequest, by: str, connection: Connection) -> None:
    if not await access_requests.end(connection, found.id, by=by):
        now = await _get(connection, found)
        if now.status != AccessRequestStatus.ENDED:
            raise _not_approved(now)


def _further(type: str, rows: Sequence[AccessRequestRow]) -> list[FurtherEvent]:
    """Return the events of the requests after the first, which the operation itself announces."""
    facts = [{"access_request": str(row.id), "requested_by": row.principal} for row in rows]
    return [_event(type, row, each) for row, each in list(zip(rows, facts, strict=True))[1:]]


def _event(type: str, row: AccessRequestRow, data: Facts) -> FurtherEvent:
    return FurtherEvent(
        type=type,
        kind=row.object_type,
        id=row.object_id,
        data=data,
        project_id=row.project_id,
        warehouse_id="" if row.warehouse_id is None else str(row.warehouse_id),
    )


def _found(row: AccessRequestRow) -> FoundAccessRequest:
    return FoundAccessRequest(row.id, row.principal, stored_ref(row.on, row.warehouse_id), privileges_of(row))


async def _get(connection: Connection, found: FoundAccessRequest) -> AccessRequestRow:
    row = await access_requests.get(connection, found.id)
    if row is None:
        raise access_request_not_found(found.id)
    return row


def _not_approved(row: AccessRequestRow) -> AccessRequestNotOpen:
    return AccessRequestNotOpen(f"Access request {row.id} is {row.status}. It gives no access that could end.")
