# SPDX-License-Identifier: Apache-2.0
"""Use cases of break-glass: activate, confirm, end, review and list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import structlog

from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.events.event_building import BREAK_GLASS
from gateway.access.management_errors import (
    AccessAlreadyGranted,
    BreakGlassAlreadyOpen,
    BreakGlassInvalid,
    BreakGlassNotOpen,
    OwnBreakGlassForbidden,
)
from gateway.access.nouns.authz_errors import break_glass_not_found, not_found
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import warehouse_of
from gateway.access.operations.access_request_bodies import AccessObject
from gateway.access.operations.break_glass import (
    ActivateBreakGlass,
    ConfirmBreakGlass,
    EndBreakGlass,
    FindActivationToConfirm,
    FindActivationToEnd,
    FindActivationToReview,
    FoundActivation,
    ListBreakGlass,
    ReviewBreakGlass,
)
from gateway.access.operations.break_glass_bodies import ActivationStatus, BreakGlassActivation, BreakGlassList
from gateway.access.operations.grant_lists import ChangeGrants, change_grants_on
from gateway.access.operations.grants import Assignment
from gateway.access.principals import actor_of
from gateway.access.tuples import Principal
from gateway.db.engine.database import Connection
from gateway.db.grants import break_glass
from gateway.db.grants.break_glass import ActivationRow
from gateway.db.grants.decided_rows import NewRow, grant_reason, granted_for_longer
from gateway.features.access_requests.decided import DecidedLists, answer_of, new_row, user_of
from gateway.features.access_requests.requested_objects import parse_object, stored_ref
from gateway.features.grants.grants import Grants, RequestedChange
from gateway.features.kit import Kit, UseCases

_log = structlog.get_logger("access.break_glass")

_MINUTES_TO_CONFIRM: Final = 60
"""Minutes in which the second person can confirm."""

_Activating = ActivateBreakGlass | ConfirmBreakGlass
_Mark = Callable[[Connection], Awaitable[None]]
_Finding = FindActivationToConfirm | FindActivationToEnd | FindActivationToReview


class BreakGlass(UseCases):
    """Rights that a user takes for an emergency.

    With `second_person` in the settings, another principal confirms each activation before its grants are made.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._second_person = kit.break_glass_second_person
        self._grants = Grants(kit)
        self._lists = DecidedLists(kit, (Can.CONFIRM_BREAK_GLASS, Can.REVIEW_BREAK_GLASS))

    async def activate(self, permit: Permit[ActivateBreakGlass]) -> BreakGlassActivation:
        """Make the grants of the caller, or leave the activation pending for a second person.

        The grants end no later than the caller's right to break glass. Raises BreakGlassAlreadyOpen and
        AccessAlreadyGranted.
        """
        operation, request = permit.operation, permit.operation.request
        waits = self._second_person or request.second_person
        latest = await self._bounded(permit, request.minutes + (_MINUTES_TO_CONFIRM if waits else 0))
        new = new_row(permit, operation.on, operation.privileges, request.reason)
        permit.pending_audit.add_details(activation=str(new.id))

        async def record(connection: Connection) -> None:
            open_one = await break_glass.open_activation(connection, new.principal, new.on)
            if open_one is not None:
                raise BreakGlassAlreadyOpen(
                    f"Your activation {open_one} on this object is open. End it before another one."
                )
            await _refuse_longer(connection, new, by=new.principal, until=latest)
            await break_glass.record(connection, new, minutes=request.minutes, latest_end=latest, active=not waits)

        if waits:
            async with self._database.change(permit) as connection:
                await record(connection)
            return activation_answer(await self._get(new.id))
        reason = grant_reason(ActivationRow, new.id, new.reason)
        writes = _assignments(new.privileges, user_of(new), reason, latest)
        await self._give(permit, operation.on, new.on, writes, record)
        made = await self._get(new.id)
        _alert(made)
        return activation_answer(made)

    async def find_to_confirm(self, permit: Permit[FindActivationToConfirm]) -> ConfirmBreakGlass:
        """Find the activation. Return the operation that confirms it, which the door decides next.

        Raises BreakGlassNotFound and OwnBreakGlassForbidden.
        """
        return ConfirmBreakGlass(_found(await self._of_another(permit)))

    async def confirm(self, permit: Permit[ConfirmBreakGlass]) -> None:
        """Make the grants of a pending activation. They end no later than the rights of its user and of the caller.

        Raises BreakGlassNotOpen, also if its user may not break glass any more, and AccessAlreadyGranted.
        """
        found, by = permit.operation.found, permit.actor.id
        before = await self._get(found.id)
        if before.status != ActivationStatus.PENDING:
            raise _not(before, "pending")
        holder = HypotheticalCheck(actor_of(user_of(before)), Can.BREAK_GLASS, found.on)
        if not all(await self._door.hypothetical_checks.evaluate(permit, [holder])):
            raise BreakGlassNotOpen(f"{found.principal} may not break glass on this object any more.")
        ends = min(before.latest_end, await self._bounded(permit, before.minutes))
        writes = _assignments(before.privileges, user_of(before), before.grant_reason, ends)

        async def mark(connection: Connection) -> None:
            await _refuse_longer(connection, before, by=by, until=ends)
            if not await break_glass.confirm(connection, found.id, by=by, ends_at=ends):
                raise _not(await _row(connection, found.id), "pending")

        await self._give(permit, found.on, before.on, writes, mark)
        _alert(await self._get(found.id))

    async def find_to_end(self, permit: Permit[FindActivationToEnd]) -> EndBreakGlass:
        """Find the activation. Return the operation that ends it, which the door decides next."""
        row = await self._get_here(permit)
        return EndBreakGlass(_found(row), own=row.principal == permit.actor.id)

    async def end(self, permit: Permit[EndBreakGlass]) -> None:
        """Revoke the grants of an activation, or withdraw a pending one. Repeating it has no effect.

        Raises BreakGlassNotFound if another user ends the activation as its own.
        """
        found, by = permit.operation.found, permit.actor.id
        if permit.operation.own and found.principal != by:
            raise break_glass_not_found(found.id)
        before = await self._get(found.id)
        if before.status == ActivationStatus.ACTIVE:

            async def mark(connection: Connection) -> None:
                await break_glass.end(connection, found.id, by=by)

            deletes = _assignments(before.privileges, user_of(before), None, None)
            change = _change_on(found.on, deletes=deletes)
            self._announce(permit, before.on, before.project_id, before.warehouse_id, change, active=False)
            await self._grants.change_by_break_glass(permit, change, RequestedChange(mark, before.grant_reason))
            return
        async with self._database.change(permit) as connection:
            await break_glass.withdraw(connection, found.id, by=by)

    async def find_to_review(self, permit: Permit[FindActivationToReview]) -> ReviewBreakGlass:
        """Find the activation. Return the operation that reviews it, which the door decides next.

        Raises BreakGlassNotFound and OwnBreakGlassForbidden.
        """
        row = await self._of_another(permit)
        on: Ref = WarehouseRef(row.warehouse_id) if row.in_warehouse else ProjectRef(row.project_id)
        return ReviewBreakGlass(FoundActivation(row.id, row.principal, on), permit.operation.request)

    async def review(self, permit: Permit[ReviewBreakGlass]) -> None:
        """Close the review. Raises BreakGlassNotOpen if the activation has no open review."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            if not await break_glass.review(
                connection, operation.found.id, by=permit.actor.id, finding=operation.request.finding
            ):
                raise _not(await _row(connection, operation.found.id), "waiting for a review")

    async def list(self, permit: Permit[ListBreakGlass]) -> BreakGlassList:
        """Return the caller's activations, and those of other users that the caller may confirm or review."""
        operation = permit.operation
        rows, token = await self._lists.page(
            permit,
            operation,
            lambda connection, selection: break_glass.page(connection, selection, operation.status),
            partial(self._readable, permit),
        )
        return BreakGlassList(activations=[activation_answer(row) for row in rows], next_page_token=token)

    async def own(self, permit: Permit[ListBreakGlass], id: UUID) -> BreakGlassActivation:
        """Return an activation of the caller. Raises BreakGlassNotFound for another one."""
        row = await self._get(id)
        if row.principal != permit.actor.id:
            raise break_glass_not_found(id)
        return activation_answer(row)

    async def _readable(self, permit: Permit[ListBreakGlass], rows: Sequence[ActivationRow]) -> Sequence[bool]:
        """Return for each activation if the caller made it, may review it, or may confirm or end it now."""
        seen = [row.principal == permit.actor.id for row in rows]
        closed = [row.status not in (ActivationStatus.PENDING, ActivationStatus.ACTIVE) for row in rows]
        for relation, key_of in (
            (Can.REVIEW_BREAK_GLASS, _reviewed_on),
            (Can.CONFIRM_BREAK_GLASS, lambda row: row.on),
        ):
            all_states = relation is Can.REVIEW_BREAK_GLASS
            asked = [place for place, yes in enumerate(seen) if not yes and (all_states or not closed[place])]
            keys = list(dict.fromkeys(key_of(rows[place]) for place in asked))
            answers = dict(zip(keys, await self._door.visible(permit, relation, keys), strict=True))
            for place in asked:
                seen[place] = answers[key_of(rows[place])]
        return seen

    async def _bounded(self, permit: Permit[_Activating], minutes: int) -> datetime:
        """Return the time after these minutes, or the earlier one at which the caller's right ends."""
        latest = permit.resolution.now + timedelta(minutes=minutes)
        first = await self._door.first_expiry(permit, latest)
        return latest if first is None else min(latest, first)

    async def _give(
        self,
        permit: Permit[_Activating],
        on: Ref,
        key: ObjectKey,
        writes: tuple[Assignment, ...],
        mark: _Mark,
    ) -> None:
        row = permit.resolution.get(on)
        warehouse = None if row is None else warehouse_of(row)
        if row is None or warehouse is None or row.in_project is None:
            raise not_found(on)
        change = _change_on(on, writes=writes)
        self._announce(permit, key, row.in_project, warehouse.id, change, active=True)
        await self._grants.change_by_break_glass(permit, change, RequestedChange(mark))

    @staticmethod
    def _announce(
        permit: Permit[_Activating | EndBreakGlass],
        key: ObjectKey,
        project_id: str,
        warehouse_id: UUID,
        change: ChangeGrants,
        *,
        active: bool,
    ) -> None:
        """Announce the change of grants, and the alert event if rights were taken."""
        types = ("changeGrants", BREAK_GLASS) if active else ("changeGrants",)
        announced = [
            FurtherEvent(
                type=type,
                kind=key.type.value,
                id=key.id,
                data=change.facts(),
                project_id=project_id,
                warehouse_id=str(warehouse_id),
            )
            for type in types
        ]
        permit.pending_audit.further_changes = FurtherChanges(announced).all

    async def _of_another(
        self, permit: Permit[FindActivationToConfirm] | Permit[FindActivationToReview]
    ) -> ActivationRow:
        """Return the activation of another user. Raises OwnBreakGlassForbidden for the caller's own."""
        row = await self._get_here(permit)
        if row.principal == permit.actor.id:
            raise OwnBreakGlassForbidden(
                f"Activation {row.id} is your own. Another principal has to confirm it, and to close its review."
            )
        return row

    async def _get_here(self, permit: Permit[_Finding]) -> ActivationRow:
        """Return an activation in the project that the caller is limited to. Raises BreakGlassNotFound."""
        row = await self._get(permit.operation.activation_id)
        if permit.actor.within not in (None, row.project_id):
            raise break_glass_not_found(row.id)
        return row

    async def _get(self, id: UUID) -> ActivationRow:
        async with self._database.read() as connection:
            return await _row(connection, id)


def emergency_object(given: AccessObject) -> Ref:
    """Return the reference to the object of an activation. Raises BreakGlassInvalid for one outside of warehouses."""
    if given.type in ("project", "role", "tag", "data-policy"):
        raise BreakGlassInvalid(f"Break-glass is possible on a warehouse and on objects in it, not on a {given.type}.")
    return parse_object(given)


def activation_answer(row: ActivationRow) -> BreakGlassActivation:
    """Return a recorded activation in the form of a response."""
    return answer_of(BreakGlassActivation, row, status=ActivationStatus(row.status))


async def _refuse_longer(connection: Connection, row: ActivationRow | NewRow, *, by: str, until: datetime) -> None:
    """Raise AccessAlreadyGranted if the grants would shorten one that the same grantor made."""
    longer = await granted_for_longer(connection, row, row.privileges, by=by, until=until)
    if longer is not None:
        raise AccessAlreadyGranted(f"{by} has already granted {longer} to {row.principal} for as long or longer.")


async def _row(connection: Connection, id: UUID) -> ActivationRow:
    row = await break_glass.get(connection, id)
    if row is None:
        raise break_glass_not_found(id)
    return row


def _reviewed_on(row: ActivationRow) -> ObjectKey:
    if row.in_warehouse:
        return ObjectKey(ObjectType.WAREHOUSE, str(row.warehouse_id))
    return ObjectKey(ObjectType.PROJECT, row.project_id)


def _found(row: ActivationRow) -> FoundActivation:
    return FoundActivation(row.id, row.principal, stored_ref(row.on, row.warehouse_id))


def _assignments(
    privileges: Sequence[str], user: Principal, reason: str | None, ends: datetime | None
) -> tuple[Assignment, ...]:
    return tuple(Assignment(Privilege(each), user, reason, ends) for each in privileges)


def _change_on(on: Ref, *, writes: tuple[Assignment, ...] = (), deletes: tuple[Assignment, ...] = ()) -> ChangeGrants:
    return change_grants_on(on.type)(on, writes, deletes)


def _not(row: ActivationRow, state: str) -> BreakGlassNotOpen:
    return BreakGlassNotOpen(f"Activation {row.id} is {row.status}. It is not {state}.")


def _alert(row: ActivationRow) -> None:
    """Write the log event by which operators are alerted."""
    _log.warning(
        "break_glass.activated",
        activation=str(row.id),
        principal=row.principal,
        object=f"{row.object_type}:{row.object_id}",
        privileges=list(row.privileges),
        ends_at=None if row.ends_at is None else row.ends_at.isoformat(),
    )
