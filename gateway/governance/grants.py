# SPDX-License-Identifier: Apache-2.0
"""Use cases of grants: rows first, OpenFGA after them, and an answer only when both agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from gateway.access.operations.grants import Assignment, ReadAssignments, WriteAssignments
from gateway.access.outage import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.permit import Permit
from gateway.access.principal_ids import require_fitting
from gateway.access.privileges import GRANTABLE, TRAVERSE_REASONS, Privilege
from gateway.access.refs import ObjectKey, ObjectType, Ref
from gateway.access.refusals import not_found
from gateway.access.resolved import (
    Resolved,
    ResolvedNamespace,
    ResolvedRole,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.access.wire import AssignmentEntry, AssignmentsAnswer
from gateway.db import grants, outbox, roles, tables, users
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Connection, Database
from gateway.db.outbox import Pending
from gateway.db.wanted import TRAVERSE, path_above
from gateway.governance.errors import (
    GrantPrincipalUnknown,
    InvalidGrantPrivilege,
    RevocationPending,
    SelfAssignment,
    TupleAlreadyExists,
    TupleNotFound,
)
from gateway.iceberg.errors import BadRequestException


class Grants:
    """Who holds what."""

    def __init__(self, *, database: Database, delivery: TupleDelivery) -> None:
        self._database = database
        self._delivery = delivery

    async def read(self, permit: Permit[ReadAssignments]) -> AssignmentsAnswer:
        """The assignments on one object, oldest first."""
        row = _row(permit, permit.operation.on)
        async with self._database.read() as connection:
            found = await grants.on_object(connection, row.key)
        # An assignment says who has what: one of it, however many gave it.
        held = dict.fromkeys((each.privilege, each.principal_type, each.principal_id) for each in found)
        return AssignmentsAnswer(
            assignments=[
                AssignmentEntry(type=privilege, user=id)
                if type == PrincipalType.USER
                else AssignmentEntry(type=privilege, role=UUID(id))
                for privilege, type, id in held
            ]
        )

    async def write(self, permit: Permit[WriteAssignments]) -> None:
        """Give and take, all or nothing.

        Raises TupleAlreadyExists, TupleNotFound, GrantPrincipalUnknown, InvalidGrantPrivilege, SelfAssignment: nothing
        was changed. Raises RevocationPending when what was taken is recorded but OpenFGA has not confirmed it yet.
        """
        operation = permit.operation
        row = _row(permit, operation.on)
        _refuse_nonsense(row.key, (*operation.writes, *operation.deletes))
        warehouse_id = _warehouse_id(row)
        async with self._database.change(permit) as connection:
            if not await grants.hold_object(connection, row.key):
                raise not_found(operation.on)
            await _require_known(connection, operation.writes)
            for entry in operation.deletes:
                if not await grants.take(
                    connection, privilege=entry.privilege, principal=entry.principal, on=row.key, by=permit.actor.id
                ):
                    raise TupleNotFound(f"There is no {entry.privilege} of {entry.principal.id} here.")
            for entry in operation.writes:
                if not await grants.give(
                    connection,
                    privilege=entry.privilege,
                    principal=entry.principal,
                    on=row.key,
                    by=permit.actor.id,
                ):
                    raise TupleAlreadyExists(f"{entry.principal.id} has {entry.privilege} here already.")
            above = await _above_now(connection, row)
            given = await outbox.enqueue(
                connection, _keys(row, above, operation.writes), takes_away=False, warehouse_id=warehouse_id
            )
            taken = await outbox.enqueue(
                connection, _keys(row, above, operation.deletes), takes_away=True, warehouse_id=warehouse_id
            )
        await self._answer_when_so(given, taken)

    async def _answer_when_so(self, given: Sequence[Pending], taken: Sequence[Pending]) -> None:
        if taken:
            try:
                await self._delivery.deliver(taken)
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
                raise RevocationPending(
                    "The revocation is recorded and not yet in force everywhere; it is delivered as soon as possible."
                ) from outage
        await self._delivery.deliver_or_leave(given)


def parse_entries(entries: Iterable[AssignmentEntry]) -> tuple[Assignment, ...]:
    """Wire entries as values. Raises InvalidGrantPrivilege and 400 for an entry without exactly one principal."""
    parsed: dict[Assignment, None] = {}
    for entry in entries:
        if (entry.user is None) == (entry.role is None):
            raise BadRequestException("Each assignment names exactly one of user and role.")
        try:
            privilege = Privilege(entry.type)
        except ValueError:
            raise InvalidGrantPrivilege(f"{entry.type!r} is no privilege.") from None
        principal = (
            Principal(PrincipalType.ROLE, str(entry.role))
            if entry.role is not None
            else Principal(PrincipalType.USER, require_fitting(entry.user or ""))
        )
        parsed[Assignment(privilege, principal)] = None
    return tuple(parsed)


def require_grantable(kind: ObjectType, entries: Iterable[Assignment]) -> None:
    """Raise InvalidGrantPrivilege when one of the privileges does not exist on this type of object."""
    for entry in entries:
        if entry.privilege not in GRANTABLE[kind]:
            raise InvalidGrantPrivilege(
                f"{entry.privilege} cannot be granted on a {kind}: possible are {', '.join(GRANTABLE[kind])}"
            )


def _refuse_nonsense(on: ObjectKey, entries: Iterable[Assignment]) -> None:
    for entry in entries:
        if on.type is ObjectType.ROLE and entry.principal == Principal(PrincipalType.ROLE, on.id):
            raise SelfAssignment("A role cannot be assigned to itself.")


async def _require_known(connection: Connection, entries: Sequence[Assignment]) -> None:
    """A grant to somebody nobody knows is most often a mistyped id, and would be found by who takes that id later."""
    wanted_users = {e.principal.id for e in entries if e.principal.type is PrincipalType.USER}
    wanted_roles = {e.principal.id for e in entries if e.principal.type is PrincipalType.ROLE}
    missing = sorted(wanted_users - await users.exist(connection, sorted(wanted_users)))
    missing += sorted(wanted_roles - await roles.exist(connection, sorted(wanted_roles)))
    if missing:
        raise GrantPrincipalUnknown(f"Not known here: {', '.join(missing)}")


def _row(permit: Permit[ReadAssignments] | Permit[WriteAssignments], ref: Ref) -> Resolved:
    row = permit.resolution.get(ref)
    if row is None:
        raise LookupError(f"{type(permit.operation).__name__} was not admitted on {ref!r}")
    return row


def _warehouse_id(row: Resolved) -> UUID | None:
    match row:
        case ResolvedWarehouse(id=id):
            return id
        case ResolvedNamespace() | ResolvedTable() | ResolvedView():
            return row.warehouse.id
        case _:
            return None


def _keys(row: Resolved, above: Sequence[ObjectKey], entries: Sequence[Assignment]) -> list[TupleKey]:
    """The grants' own tuples, and `traverse` on everything above for those that are reasons to see the way."""
    keys: dict[TupleKey, None] = {}
    for entry in entries:
        keys[TupleKey(entry.principal, entry.privilege.value, row.key)] = None
        if entry.privilege in TRAVERSE_REASONS:
            keys.update(dict.fromkeys(TupleKey(entry.principal, TRAVERSE, container) for container in above))
    return list(keys)


async def _above_now(connection: Connection, row: Resolved) -> list[ObjectKey]:
    """The containers above. Those of a table or view are read again under the hold: a rename may have been faster."""
    match row:
        case ResolvedTable(id=id) | ResolvedView(id=id):
            return await tables.containers(connection, id)
        case ResolvedNamespace():
            return _path(row, list(row.ancestors))
        case ResolvedWarehouse(project_id=project_id):
            return [ObjectKey(ObjectType.PROJECT, project_id)]
        case ResolvedRole():
            return []
        case _:
            return []


def _path(namespace: ResolvedNamespace, ids: Sequence[UUID]) -> list[ObjectKey]:
    warehouse = namespace.warehouse
    return path_above(warehouse.project_id, str(warehouse.id), [str(id) for id in ids])
