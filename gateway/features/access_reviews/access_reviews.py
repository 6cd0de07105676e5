# SPDX-License-Identifier: Apache-2.0
"""Use cases of reviews: find grants, certify or revoke those on one object, and list the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.management_errors import AccessRequestInvalid, CannotInspectPermissions, InvalidGrantPrivilege
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import warehouse_of
from gateway.access.operation import Operation
from gateway.access.operations.access_reviews import (
    FindGrantsToReview,
    GrantReview,
    GrantReviewList,
    ListGrantReviews,
    ReviewedGrantAnswer,
    ReviewGrants,
    ReviewOutcome,
)
from gateway.access.operations.grant_lists import change_grants_on
from gateway.access.operations.grants import Assignment
from gateway.access.principals import principal_answer, principal_of
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.grants import grant_reviews, grants
from gateway.db.grants.grant_reviews import Place, ReviewedGrant
from gateway.features.access_requests.requested_objects import object_answer, stored_ref
from gateway.features.grants.grant_requests import parse_grants, require_writable
from gateway.features.grants.grants import Grants, RequestedChange
from gateway.features.kit import Kit, UseCases
from gateway.features.paging import number, packed, place_of, unpacked

_KNOWN = frozenset(Privilege)


@dataclass(frozen=True, slots=True)
class FoundGrants:
    """The operations that decide about the grants of a page, one for each object, and the token of the next page."""

    operations: tuple[ReviewGrants, ...]
    next_page_token: str | None


class AccessReviews(UseCases):
    """Reviews of existing grants."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._grants = Grants(kit)

    async def find(self, permit: Permit[FindGrantsToReview]) -> FoundGrants:
        """Find the grants. Return the operations that decide about them, which the door decides next.

        Raises AccessRequestInvalid unless the request has either `grants` or `filter`, and the errors of a revocation.
        """
        operation = permit.operation
        request, on = operation.request, operation.on
        if (request.grants is None) == (request.filter is None):
            raise AccessRequestInvalid("Give exactly one of `grants` and `filter`.")
        if request.grants is not None:
            _, deletes = require_writable(on, (), parse_grants(request.grants))
            return FoundGrants((ReviewGrants(request, change_grants_on(on.type)(on, (), deletes)),), None)
        rows = await self._page(permit)
        kept = rows[: request.page_size]
        return FoundGrants(
            tuple(
                ReviewGrants(request, change_grants_on(key.type)(stored_ref(key, first.warehouse_id), (), entries))
                for key, first, entries in _by_object(kept)
            ),
            packed(kept[-1].place) if len(rows) > len(kept) else None,
        )

    async def _page(self, permit: Permit[FindGrantsToReview]) -> Sequence[ReviewedGrant]:
        """Return the grants of a page, and one more if another page follows."""
        request = permit.operation.request
        if request.filter is None:
            return ()
        chosen = request.filter
        key = _row(permit, permit.operation.on).key
        # The right of `pass_grants` is not inherited, so it does not suffice for the contents of the object.
        if not await self._door.hypothetical_checks.related_below(permit, Can.READ_ASSIGNMENTS, key):
            raise CannotInspectPermissions(
                "A filter selects grants on everything below the object. It needs the right to read the assignments of "
                "all of these objects, which holders of `manage_grants` on the object have."
            )
        async with self._database.read() as connection:
            return await grant_reviews.below(
                connection,
                key,
                principal=None if chosen.principal is None else principal_of(chosen.principal),
                privilege=None if chosen.privilege is None else _known(chosen.privilege),
                before=chosen.granted_before,
                after=place_of(request.page_token, _unpacked_place),
                limit=request.page_size + 1,
            )

    async def decide(self, permit: Permit[ReviewGrants]) -> Sequence[ReviewedGrantAnswer]:
        """Certify or revoke the grants on one object, and record the decision about each that is live.

        Raises the errors of a change of grants.
        """
        operation = permit.operation
        row, deletes = _row(permit, operation.change.on), operation.change.deletes
        certify = operation.request.decision == "certify"
        outcome: ReviewOutcome = "certified" if certify else "revoked"
        held: set[tuple[Privilege, Principal]] = set()

        async def mark(connection: Connection) -> None:
            held.clear()
            held.update(await grants.held_of(connection, row.key, [each.key for each in deletes]))
            await grant_reviews.record(
                connection,
                row.key,
                [each.key for each in deletes if each.key in held],
                decision=outcome,
                reason=operation.request.reason,
                by=permit.actor.id,
            )

        if certify:
            async with self._database.change(permit) as connection:
                await mark(connection)
        else:
            permit.pending_audit.further_changes = FurtherChanges([_changed(row, operation)]).all
            await self._grants.change_for_request(permit, [(operation.change, RequestedChange(mark))])
        warehouse = warehouse_of(row)
        on = object_answer(row.key, row.in_project, None if warehouse is None else warehouse.id)
        return [
            ReviewedGrantAnswer(
                object=on,
                privilege=each.privilege.value,
                principal=principal_answer(each.principal.type, each.principal.id),
                outcome=outcome if each.key in held else "gone",
            )
            for each in deletes
        ]

    async def list(self, permit: Permit[ListGrantReviews]) -> GrantReviewList:
        """Return the decisions about grants on one object, the latest first."""
        operation = permit.operation
        page = self._page_of(operation, number(18))
        async with self._database.read() as connection:
            found = await grant_reviews.on_object(
                connection, _row(permit, operation.on).key, after=page.after, limit=page.limit
            )
        return GrantReviewList(
            decisions=[
                GrantReview(
                    privilege=row.privilege,
                    principal=principal_answer(row.principal_type, row.principal_id),
                    decision=row.decision,
                    reason=row.reason,
                    decided_by=row.decided_by,
                    decided_at=row.decided_at,
                )
                for row in page.rows(found)
            ],
            next_page_token=page.next_token(found, lambda row: row.id),
        )


def _by_object(rows: Sequence[ReviewedGrant]) -> Sequence[tuple[ObjectKey, ReviewedGrant, tuple[Assignment, ...]]]:
    """Return (object, its first grant, the grants to decide about) for each object. The rows are ordered by object.

    Privileges that another version of the gateway recorded are left out.
    """
    found = []
    for key, group in groupby(rows, key=lambda row: row.on):
        here = list(group)
        entries = tuple(
            Assignment(Privilege(row.privilege), Principal(PrincipalType(row.principal_type), row.principal_id))
            for row in here
            if row.privilege in _KNOWN
        )
        if entries:
            found.append((key, here[0], entries))
    return found


def _known(privilege: str) -> Privilege:
    if privilege not in _KNOWN:
        raise InvalidGrantPrivilege(f"{privilege!r} is not a privilege of this server. Check its spelling.")
    return Privilege(privilege)


def _changed(row: Resolved, operation: ReviewGrants) -> FurtherEvent:
    """Return the event of the change of grants, which is announced beside that of the review."""
    warehouse = warehouse_of(row)
    return FurtherEvent(
        type="changeGrants",
        kind=row.key.type.value,
        id=row.key.id,
        data=operation.change.facts(),
        project_id=row.in_project or "",
        warehouse_id="" if warehouse is None else str(warehouse.id),
    )


def _row(permit: Permit[Operation], ref: Ref) -> Resolved:
    row = permit.resolution.get(ref)
    if row is None:
        raise not_found(ref)
    return row


def _unpacked_place(token: str) -> Place:
    return unpacked(token, tuple[str, str, str, str, str])
