# SPDX-License-Identifier: Apache-2.0
"""Use cases of requesters: make, list, read, withdraw and repeat access requests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.demand import Facts
from gateway.access.door.list_visibility import holders_of
from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent, type_of
from gateway.access.management_errors import (
    AccessReminderTooEarly,
    AccessRequestAlreadyOpen,
    AccessRequestInvalid,
    AccessRequestNotOpen,
    TooManyAccessRequests,
)
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.access_request_bodies import (
    AccessRequest,
    AccessRequestList,
    AccessRequestStatus,
    TriedAccessRequest,
    TriedItem,
    TriedPrivilege,
)
from gateway.access.operations.access_requests import (
    REQUESTABLE_UNSEEN,
    CreateAccessRequest,
    FindRequestableTag,
    GetAccessRequest,
    ListAccessRequests,
    RemindOfAccessRequest,
    RequestingAccess,
    TryAccessRequest,
    WithdrawAccessRequest,
)
from gateway.access.operations.answer_lists import WhoCan
from gateway.db.engine.database import Connection
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow
from gateway.db.grants.decided_rows import NewRow
from gateway.db.policies import tag_attachments
from gateway.features.access_requests.decided import DecidedLists, new_row
from gateway.features.access_requests.deciders import Deciders, access_request_answer, in_lock_order, with_first_status
from gateway.features.kit import Kit, UseCases

Requesting = CreateAccessRequest | TryAccessRequest
"""The operations that make requests. A dry run makes them in a transaction that is rolled back."""

#: The most principals that a dry run names for a privilege.
_DECIDERS: Final = 20

#: The id of no object.
_NO_ID: Final = UUID(int=0)


class _RolledBack(Exception):
    """Raised in a dry run to roll its transaction back."""


class AccessRequests(UseCases):
    """The access requests of the caller, and those about which the caller may decide."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._rules = kit.access_rules
        self._deciders = Deciders(kit)
        self._lists = DecidedLists(kit, set(map(granting, Privilege)))

    async def find_tag(self, permit: Permit[FindRequestableTag]) -> TagRef | None:
        """Return a tag on the object by which the caller may request access to it; None if there is none.

        A caller that sees the object, or may request access to it directly, needs no tag. For other callers an absent
        object takes the same reads and checks as an object with any number of tags.
        """
        on = permit.operation.on
        if on.type not in REQUESTABLE_UNSEEN:
            return None
        checks = self._door.hypothetical_checks
        resolution = await checks.resolve(permit, [on])
        direct = [(VISIBLE_BY[on.type], on), (Can.REQUEST_ACCESS, on)]
        if any(await checks.holds(permit, direct, resolution=resolution)):
            return None
        row, holders = resolution.get(on), holders_of(permit.actor, resolution)
        async with self._database.read() as connection:
            id = _NO_ID if row is None else UUID(row.key.id)
            tag = await access_requests.tag_to_request_by(connection, id, holders)
        key = ObjectKey(ObjectType.TAG, str(tag or _NO_ID))
        (requestable,) = await self._door.visible(permit, Can.REQUEST_ACCESS, [key])
        return TagRef(tag) if tag is not None and requestable else None

    async def create(self, permit: Permit[CreateAccessRequest]) -> AccessRequest:
        """Record a pending request for each object, all in one transaction. Return the first.

        Raises AccessRequestInvalid for a duration that is too long and for `subject`, AccessRequestAlreadyOpen and
        TooManyAccessRequests. Raises the error for an absent object if the tag that allows the request was detached
        meanwhile.
        """
        news = self._news(permit)
        permit.pending_audit.add_details(access_request_id=str(news[0][1].id))
        announced = [_event("createAccessRequest", new, each.facts()) for each, new in news[1:]]
        permit.pending_audit.further_changes = FurtherChanges(announced).all
        async with self._database.change(permit) as connection:
            first, *_ = await self._record(connection, permit, news)
        return await self._deciders.answer(permit, first)

    async def dry_run(self, permit: Permit[TryAccessRequest]) -> tuple[TriedAccessRequest, Sequence[WhoCan]]:
        """Return (what the request would open, the questions for the principals that decide about it).

        There is a question for each privilege on an object whose assignments the caller may read, in their order. The
        requests are made in a transaction that is rolled back. Raises the errors of `create`.
        """
        made: list[AccessRequestRow] = []
        with suppress(_RolledBack):
            async with self._database.transaction() as connection:
                made += await self._record(connection, permit, self._news(permit))
                raise _RolledBack
        answers = await self._deciders.answers(permit, made)
        reads = await self._door.visible(permit, Can.READ_ASSIGNMENTS, [row.on for row in made])
        asked = [
            WhoCan(each.on, granting(privilege), page_size=_DECIDERS)
            for each, readable in zip(permit.operation.each, reads, strict=True)
            for privilege in each.privileges
            if readable
        ]
        items = [
            TriedItem(
                object=answer.object,
                name=answer.name,
                opens=answer.opens,
                privileges=[
                    TriedPrivilege(each, granting(each), [] if readable else None) for each in requested.privileges
                ],
            )
            for answer, requested, readable in zip(answers, permit.operation.each, reads, strict=True)
        ]
        return TriedAccessRequest(items=items, duration_seconds=made[0].duration), asked

    def _news(self, permit: Permit[Requesting]) -> list[tuple[RequestingAccess, NewRow]]:
        """Return the rows to record, each with its part of the operation. Raises AccessRequestInvalid."""
        operation = permit.operation
        # The requester can end what it requested, and an approver could rely on the restriction.
        if any(Privilege.SUBJECT in each.privileges for each in operation.each):
            raise AccessRequestInvalid("`subject` restricts its holder and gives no access, so it cannot be requested.")
        duration = self._duration(operation)
        if duration > self._rules.longest_duration:
            raise AccessRequestInvalid(
                f"`duration-seconds` is {duration}; at most {self._rules.longest_duration} are allowed."
            )
        news = [(each, new_row(permit, each.on, each.privileges, operation.request.reason)) for each in operation.each]
        if len({new.on for _, new in news}) < len(news):
            raise AccessRequestInvalid("`items` names an object twice. Name all privileges on an object in one item.")
        return news

    def _duration(self, operation: RequestingAccess) -> int:
        return operation.request.duration_seconds or self._rules.default_duration

    async def _record(
        self, connection: Connection, permit: Permit[Requesting], news: Sequence[tuple[RequestingAccess, NewRow]]
    ) -> list[AccessRequestRow]:
        """Record the requests, several as a bundle. Return their rows in the order of `news`."""
        bundle, duration = uuid7() if len(news) > 1 else None, self._duration(permit.operation)
        # All transactions lock the objects in this order.
        for each, new in sorted(news, key=lambda pair: str(pair[1].on)):
            await _require_attached(connection, permit, each, new)
            self._refuse_more(await access_requests.open_requests(connection, new.principal, new.on, new.privileges))
            await access_requests.record(
                connection, new, bundle=bundle, duration=duration, lifetime=self._rules.lifetime
            )
        rows = {row.id: row for row in await access_requests.bundled(connection, bundle or news[0][1].id)}
        return [rows[new.id] for _, new in news]

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
        operation = permit.operation
        rows, token = await self._lists.page(
            permit,
            operation,
            lambda connection, selection: access_requests.page(connection, selection, operation.status),
            partial(self._deciders.readable, permit),
            own=operation.mine,
        )
        return AccessRequestList(access_requests=[access_request_answer(row) for row in rows], next_page_token=token)

    async def get(self, permit: Permit[GetAccessRequest]) -> AccessRequest:
        """Return a request. Raises AccessRequestNotFound unless the caller made it or may decide about it."""
        return await self._deciders.answer(
            permit, await self._deciders.find(permit, permit.operation.access_request_id)
        )

    async def withdraw(self, permit: Permit[WithdrawAccessRequest]) -> None:
        """Withdraw a pending request of the caller, or those of a bundle. Withdrawn ones stay so.

        Raises AccessRequestNotFound and AccessRequestNotOpen.
        """
        by, withdrawn = permit.actor.id, AccessRequestStatus.WITHDRAWN
        async with self._database.change(permit) as connection:
            rows = await _own(connection, permit)
            ended = [row for row in rows if not await access_requests.withdraw(connection, row.id, by=by)]
            now = [each for row in ended if (each := await access_requests.get(connection, row.id)) is not None]
            repeats = len(now) == len(rows) and all(row.status == withdrawn for row in now)
            if now and not repeats:
                raise not_pending(now[0])
            if repeats:
                permit.pending_audit.add_details(repeated="true")

    async def remind(self, permit: Permit[RemindOfAccessRequest]) -> None:
        """Announce a pending request of the caller again, or those of a bundle.

        Raises AccessRequestNotFound, AccessRequestNotOpen and AccessReminderTooEarly.
        """
        interval = self._rules.reminder_interval
        async with self._database.change(permit) as connection:
            for row in await _own(connection, permit):
                if await access_requests.remind(connection, row.id, by=permit.actor.id, interval=interval):
                    continue
                now = await access_requests.get(connection, row.id)
                if now is not None and now.status != AccessRequestStatus.PENDING:
                    raise not_pending(now)
                raise AccessReminderTooEarly(
                    f"A reminder is possible {interval:.0f} s after the request, and after the last reminder."
                )


def not_pending(row: AccessRequestRow) -> AccessRequestNotOpen:
    """Return the error for a change of a request that is no longer pending."""
    return AccessRequestNotOpen(f"Access request {row.id} is {row.status}. It is not pending.")


async def _require_attached(
    connection: Connection, permit: Permit[Requesting], operation: RequestingAccess, new: NewRow
) -> None:
    """Raise the error for an absent object if only a tag allows the request, and the object does not have it.

    The attachment is locked, so that the tag stays on the object until the request is recorded.
    """
    warehouse = new.warehouse_id
    if operation.by_tag is None or permit.holds(VISIBLE_BY[operation.on.type], operation.on):
        return
    if warehouse is not None:
        target = tag_attachments.Target(new.on.type.value, UUID(new.on.id), warehouse)
        if await tag_attachments.held(connection, operation.by_tag.tag_id, target) is not None:
            return
    raise operation.hidden(operation.on)


async def _own(
    connection: Connection, permit: Permit[WithdrawAccessRequest | RemindOfAccessRequest]
) -> Sequence[AccessRequestRow]:
    """Return the caller's pending requests with the id or bundle of the operation, in the order of their locks.

    Without pending ones, return those that are withdrawn. Announce each request of a bundle beside the bundle.
    Raises AccessRequestNotFound.
    """
    id = permit.operation.access_request_id
    rows = in_lock_order(
        [row for row in await access_requests.bundled(connection, id) if row.principal == permit.actor.id]
    )
    if not rows:
        raise access_request_not_found(id)
    own = with_first_status(rows, AccessRequestStatus.PENDING, AccessRequestStatus.WITHDRAWN)
    name = type_of("", type(permit.operation).__name__)
    announced = [_event(name, row, {"access_request": str(row.id)}) for row in own if row.id != id]
    permit.pending_audit.further_changes = FurtherChanges(announced).all
    return own


def _event(type: str, row: AccessRequestRow | NewRow, data: Facts) -> FurtherEvent:
    """Return the event of a request of a bundle."""
    return FurtherEvent(
        type=type,
        kind="access_request",
        id=str(row.id),
        data=data,
        project_id=row.project_id,
        warehouse_id="" if row.warehouse_id is None else str(row.warehouse_id),
    )
