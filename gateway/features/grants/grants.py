# SPDX-License-Identifier: Apache-2.0
"""Use cases of grants: change the rows, write the tuples to OpenFGA, and respond when OpenFGA has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    InvalidGrantExpiry,
    TupleNotFound,
    pending_during_outage,
    require_remaining_admin,
)
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, field_of
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.access_requests import ApproveAccessRequest, EndAccess
from gateway.access.operations.access_reviews import ReviewGrants
from gateway.access.operations.break_glass import ActivateBreakGlass, ConfirmBreakGlass, EndBreakGlass
from gateway.access.operations.grant_lists import (
    ChangeColumnGrants,
    ChangeGrants,
    OfColumn,
    ReadColumnAssignments,
    WriteColumnAssignments,
)
from gateway.access.operations.grants import (
    Assignment,
    AssignmentEntry,
    AssignmentsAnswer,
    ReadAssignments,
    WriteAssignments,
    WritingGrants,
)
from gateway.access.operations.roles import ChangeRoleMembers
from gateway.access.tuples import PrincipalType
from gateway.db.engine.database import Connection, retry_serialization
from gateway.db.grants import grants
from gateway.db.principals.role_nesting import administers_server
from gateway.db.principals.users import guard_last_admin
from gateway.db.tuples import outbox
from gateway.db.tuples.outbox import Pending
from gateway.features.grants import grant_recording as recording
from gateway.features.grants.columns import GrantObject, object_of
from gateway.features.grants.grant_lists import limits_of_row
from gateway.features.grants.grant_requests import LAST_END, require_future
from gateway.features.grants.role_guards import refuse_leaving, refuse_members, restricting
from gateway.features.kit import UseCases
from gateway.iceberg.errors import CatalogError


async def _mark_nothing(_: Connection) -> None:
    """Mark no request, because the change of grants belongs to none."""


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """The part of an access request or a review in a change of grants.

    `mark` records the decision in the transaction of the change. `granted_for` is the reason of the grants to revoke,
    None for every reason. Several changes are made in one transaction.
    """

    mark: Callable[[Connection], Awaitable[None]]
    granted_for: str | None = None


_NOT_REQUESTED: Final = RequestedChange(_mark_nothing)


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of grants on one object, with the row of the object."""

    change: WritingGrants
    row: Resolved
    on: GrantObject
    requested: RequestedChange


class Grants(UseCases):
    """Read and change the grants on an object."""

    async def read(self, permit: Permit[ReadAssignments | ReadColumnAssignments]) -> AssignmentsAnswer:
        """Return the assignments on one object, oldest first. Equal grants of several grantors appear once."""
        operation = permit.operation
        row = _row(permit, operation.on)
        async with self._database.read() as connection:
            on = await object_of(connection, operation, row, dropped=True)
            found = await grants.on_object(connection, on.key)
        distinct = dict.fromkeys(
            (each.privilege, each.principal_type, each.principal_id, limits_of_row(each))
            for each in found
            if not operation.privileges or each.privilege in operation.privileges
        )
        return AssignmentsAnswer(
            assignments=[
                AssignmentEntry(type=privilege, user=id, acts_for=limits)
                if type == PrincipalType.USER
                else AssignmentEntry(type=privilege, role=UUID(id), acts_for=limits)
                for privilege, type, id, limits in distinct
            ],
            project_id=row.id if isinstance(row, ResolvedProject) else None,
            column=on.column,
            field_id=field_of(on.key) if on.key.type is ObjectType.COLUMN else None,
        )

    async def write(self, permit: Permit[WriteAssignments | WriteColumnAssignments]) -> None:
        """Grant and revoke in one transaction. Granting an existing assignment or revoking a missing one is an error.

        Raises TupleAlreadyExists, TupleNotFound, GrantPrincipalUnknown, InvalidGrantExpiry, RoleMembershipCycle,
        RoleMembershipDepthExceeded or LastServerAdmin: nothing was changed. Raises RevocationPending if a revocation is
        recorded but OpenFGA has not confirmed it yet.
        """
        await self._apply(permit, [(permit.operation, _NOT_REQUESTED)], strict=True)

    async def change(self, permit: Permit[ChangeGrants | ChangeColumnGrants | ChangeRoleMembers]) -> None:
        """Grant and revoke in one transaction. Existing grants and absent revoked grants are not errors.

        A grant that the caller gave before gets the new expiry and reason. Raises AmbiguousColumn and the errors of
        `write`, except TupleAlreadyExists and TupleNotFound.
        """
        await self._apply(permit, [(permit.operation, _NOT_REQUESTED)], strict=False)

    async def change_for_request(
        self,
        permit: Permit[ApproveAccessRequest | EndAccess | ReviewGrants],
        changes: Sequence[tuple[WritingGrants, RequestedChange]],
    ) -> None:
        """Grant or revoke for access requests or a review, in the transaction that records the decisions.

        Raises the errors of `change`, and those of the functions that mark the requests.
        """
        await self._apply(permit, changes, strict=False)

    async def change_by_break_glass(
        self,
        permit: Permit[ActivateBreakGlass | ConfirmBreakGlass | EndBreakGlass],
        change: WritingGrants,
        requested: RequestedChange,
    ) -> None:
        """Make or revoke the grants of a break-glass activation, in the transaction that marks the activation.

        Raises the errors of `change`, and those of the function that marks the activation.
        """
        await self._apply(permit, [(change, requested)], strict=False)

    async def exempts_caller(self, permit: Permit[WriteAssignments | ChangeGrants]) -> bool:
        """Return True if an admitted change grants `exempt`, and the caller holds it afterwards, including through a
        role.

        The creator of a role is its member, and may not expect that a grant to the role exempts the creator. During an
        outage the result is False, because the change has already been made.
        """
        operation = permit.operation
        key = _row(permit, operation.on).key
        if not any(each.privilege is Privilege.EXEMPT for each in operation.writes):
            return False
        try:
            return all(await self._door.visible(permit, Can.SKIP_POLICY, [key]))
        except CatalogError:
            return False

    async def _apply(
        self, permit: Permit[Operation], changes: Sequence[tuple[WritingGrants, RequestedChange]], *, strict: bool
    ) -> None:
        """Apply changes of grants together and respond when they are in force.

        With `strict`, it is an error if a new grant exists already or a revoked one does not. Without `strict`, their
        tuples are delivered again: a client that retries after RevocationPending gets its response when the revocation
        is in force.
        """
        steps = [await self._step(permit, *each) for each in changes]
        # All transactions lock the objects in this order.
        steps.sort(key=lambda each: str(each.on.key))
        for step in steps:
            require_future(step.change.writes, permit.resolution.now)
            await self._refuse_longer_expiry(permit, step.change.writes)
        try:
            with require_remaining_admin():
                given, lost = await retry_serialization(lambda: self._record(permit, steps, strict=strict))
        except TupleNotFound:
            # If a client repeats a revocation after a 503, this waits for delivery: "does not exist" must not come
            # before the revocation is in force.
            for step in steps:
                await self._answer_when_delivered((), await self._pending_revocations(step.on.key, step.change))
            raise
        await self._answer_when_delivered(given, lost)

    async def _step(self, permit: Permit[Operation], change: WritingGrants, requested: RequestedChange) -> _Step:
        row = _row(permit, change.on)
        on = GrantObject(row.key)
        if isinstance(permit.operation, OfColumn):
            async with self._database.read() as connection:
                on = await object_of(connection, permit.operation, row, dropped=not change.writes)
        return _Step(change, row, on, requested)

    async def _record(
        self, permit: Permit[Operation], steps: Sequence[_Step], *, strict: bool
    ) -> tuple[Sequence[Pending], Sequence[Pending]]:
        """Write rows and outbox in one transaction. Return (pending grants, pending revocations).

        At the end of the block the guards compare with the state before it; then `change` revalidates the decision and
        writes the audit record.
        """
        may = partial(self._door.visible, permit)
        given: list[Pending] = []
        lost: list[Pending] = []
        async with self._database.change(permit) as connection, AsyncExitStack() as guards:
            for step in steps:
                key, change = step.on.key, step.change
                await guards.enter_async_context(_guard_last_admin(connection, key, change))
                concerned = change.takes_away and key.type is ObjectType.ROLE
                await guards.enter_async_context(refuse_leaving(connection, permit.actor, may, concerned=concerned))
            for step in steps:
                new, less = await self._record_step(connection, permit, step, strict=strict)
                given += new
                lost += less
        return given, lost

    async def _record_step(
        self, connection: Connection, permit: Permit[Operation], step: _Step, *, strict: bool
    ) -> tuple[Sequence[Pending], Sequence[Pending]]:
        """Write the rows of one change. Return (pending grants, pending revocations). The steps lock in this order."""
        change, on, requested = step.change, step.on, step.requested
        key, by, may = on.key, permit.actor.id, partial(self._door.visible, permit)
        place = await recording.lock(connection, key, step.row, change)
        await requested.mark(connection)
        new = await recording.record_new(connection, key, place, change, by)
        if new is not None:
            return new, ()
        await refuse_members(connection, key, change.writes, may)
        await recording.revoke(connection, on, change.deletes, by, strict=strict, granted_for=requested.granted_for)
        shortened = await recording.grant(connection, key, change.writes, by, strict=strict)
        # New subjects of a policy, and new members of a role that is a subject, must be restricted before the
        # response is sent.
        less = [*change.deletes, *shortened, *await restricting(connection, key, change.writes)]
        return await recording.enqueue(connection, key, place, change.writes, less)

    async def _refuse_longer_expiry(self, permit: Permit[Operation], writes: Sequence[Assignment]) -> None:
        """Raise InvalidGrantExpiry if the caller extends its own right beyond the expiry of its right to grant it.

        Otherwise a caller with a temporary right to grant could make that right permanent.
        """
        own = [entry for entry in writes if _is_own(permit, entry)]
        if not own:
            return
        ends = await self._door.first_expiry(permit, max(entry.expires_at or LAST_END for entry in own))
        if ends is not None and any(entry.expires_at is None or entry.expires_at > ends for entry in own):
            raise InvalidGrantExpiry(
                "A grant to yourself must expire no later than your own right to grant it, which expires at "
                f"{ends.isoformat()}. Set expires-at to that time or earlier."
            )

    async def _pending_revocations(self, key: ObjectKey, change: WritingGrants) -> list[Pending]:
        """Return those earlier revocations from this change's principals that OpenFGA has not confirmed."""
        principals = {entry.principal for entry in change.deletes}
        async with self._database.read() as connection:
            waiting = await outbox.revocations_on(connection, key)
        return [row for row in waiting if row.key.subject in principals]

    async def _answer_when_delivered(self, given: Sequence[Pending], taken: Sequence[Pending]) -> None:
        if taken:
            with pending_during_outage(
                "The revocation is recorded, but it is not yet in effect everywhere. The gateway retries it; no "
                "further request is needed."
            ):
                await self._delivery.deliver(taken)
        await self._delivery.deliver_or_defer(given)


def _is_own(permit: Permit[Operation], entry: Assignment) -> bool:
    """Return whether the caller grants to itself or to a role that it is a member of."""
    if entry.principal.type is PrincipalType.ROLE:
        return entry.principal.id in permit.resolution.caller_roles
    return entry.principal.id == permit.actor.id


def _guard_last_admin(
    connection: Connection, on: ObjectKey, change: WritingGrants
) -> AbstractAsyncContextManager[None]:
    """Return a guard against the loss of the last server administrator, or a null context if that cannot happen.

    A change can cause it directly, or by a role.
    """
    if change.takes_away and on.type is ObjectType.ROLE:
        return guard_last_admin(connection, concerned=partial(administers_server, connection, on.id))
    return guard_last_admin(connection) if change.takes_away and on.type is ObjectType.SERVER else nullcontext()


def _row(permit: Permit[Operation], ref: Ref) -> Resolved:
    row = permit.resolution.get(ref)
    if row is None:
        raise LookupError(f"{type(permit.operation).__name__} was not admitted on {ref!r}")
    return row
