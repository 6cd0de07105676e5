# SPDX-License-Identifier: Apache-2.0
"""The proof of a decision. A use case takes a `Permit[Op]` as its first parameter and cannot be called without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, final

from gateway.access import resolved
from gateway.access.actor import Actor
from gateway.access.decision import Decision
from gateway.access.idempotency import Claim
from gateway.access.operation import Operation
from gateway.access.pending_audit import PendingAudit
from gateway.access.refs import (
    GenericTableRef,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    ProjectRef,
    Ref,
    RoleRef,
    ServerRef,
    TableRef,
    UserRef,
    ViewRef,
    WarehouseNameRef,
    WarehouseRef,
)
from gateway.access.relations import Can
from gateway.access.request_context import Deadline, DefinerView
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import NO_OBLIGATIONS, Obligations

OpCo = TypeVar("OpCo", bound=Operation, covariant=True)
Row = TypeVar("Row", bound=resolved.Resolved)


DecideAgain = Callable[[], Awaitable[resolved.Resolution]]
"""Decides the same operation once more: what it stands on now, or the refusal raised."""


@final
class Permit(Generic[OpCo]):
    """Permission to do exactly `operation`, with the rows it was decided on.

    There is no public constructor: `gateway.access._mint` makes permits and only the door may import it (lock 7).
    """

    __slots__ = (
        "_actor",
        "_claim",
        "_deadline",
        "_decide_again",
        "_decision",
        "_operation",
        "_passages",
        "_request_id",
        "_resolution",
        "_trail",
    )

    _operation: OpCo
    _actor: Actor
    _decision: Decision
    _resolution: resolved.Resolution
    _trail: PendingAudit
    _request_id: str
    _claim: Claim | None
    _decide_again: DecideAgain | None
    _deadline: Deadline
    _passages: tuple[DefinerView, ...]

    def __init__(self) -> None:
        raise TypeError("a Permit comes from Door.admit")

    @property
    def operation(self) -> OpCo:
        """The permitted operation."""
        return self._operation

    @property
    def deadline(self) -> Deadline:
        """When the request is cut off."""
        return self._deadline

    @property
    def actor(self) -> Actor:
        """The caller that it is permitted to."""
        return self._actor

    @property
    def request_id(self) -> str:
        """The id of the request it is permitted in."""
        return self._request_id

    @property
    def claim(self) -> Claim | None:
        """The idempotency key under which the success of this request is remembered, if it carries one."""
        return self._claim

    @property
    def passages(self) -> tuple[DefinerView, ...]:
        """The views that were read through on the way, the outermost first."""
        return self._passages

    @property
    def trail(self) -> PendingAudit:
        """The audit record that has to become durable before the answer leaves."""
        return self._trail

    @property
    def obligations(self) -> Obligations:
        """The obligations of column grants and policies."""
        return self._decision.obligations or NO_OBLIGATIONS

    @property
    def resolution(self) -> resolved.Resolution:
        """All rows behind the references of the operation."""
        return self._resolution

    async def decide_again(self) -> resolved.Resolution:
        """Decide the operation again for the same caller, and return the new resolution.

        For a permit whose revision moved since the decision: rights may have been revoked. Raises the refusal, and the
        answer for an outage, so that clients retry, if less is allowed than this permit says.
        """
        if self._decide_again is None:
            raise LookupError(f"{type(self._operation).__name__} was not admitted by a door that can be asked again")
        return await self._decide_again()

    @property
    def held(self) -> frozenset[tuple[Can, Ref]]:
        """The relations that the caller holds, of those in the demands."""
        return self._decision.held

    def holds(self, relation: Can, on: Ref) -> bool:
        """Return True if the caller holds `relation` on `on`. Only relations in the demands were checked."""
        return (relation, on) in self._decision.held

    def restriction(self, on: Ref) -> ReadableColumns | None:
        """Return the readable columns of a table; None if nothing is held back: then `holds` says whether it may be
        read.
        """
        row = self._resolution.get(on)
        return None if row is None else self.obligations.find(ReadableColumns, row.key.id)

    def table(self, ref: TableRef) -> resolved.ResolvedTable:
        """The table row behind `ref`."""
        return self._row(ref, resolved.ResolvedTable)

    def view(self, ref: ViewRef) -> resolved.ResolvedView:
        """The view row behind `ref`."""
        return self._row(ref, resolved.ResolvedView)

    def generic_table(self, ref: GenericTableRef) -> resolved.ResolvedGenericTable:
        """The generic table row behind `ref`."""
        return self._row(ref, resolved.ResolvedGenericTable)

    def tabular(
        self, ref: TableRef | ViewRef | GenericTableRef
    ) -> resolved.ResolvedTable | resolved.ResolvedView | resolved.ResolvedGenericTable:
        """The row behind `ref`, of whatever kind."""
        match ref.type:
            case ObjectType.VIEW:
                return self._row(ref, resolved.ResolvedView)
            case ObjectType.GENERIC_TABLE:
                return self._row(ref, resolved.ResolvedGenericTable)
            case _:
                return self._row(ref, resolved.ResolvedTable)

    def namespace(self, ref: NamespaceRef | NamespaceIdRef) -> resolved.ResolvedNamespace:
        """The namespace row behind `ref`."""
        return self._row(ref, resolved.ResolvedNamespace)

    def warehouse(self, ref: WarehouseRef | WarehouseNameRef) -> resolved.ResolvedWarehouse:
        """The warehouse row behind `ref`."""
        return self._row(ref, resolved.ResolvedWarehouse)

    def project(self, ref: ProjectRef) -> resolved.ResolvedProject:
        """The project row behind `ref`."""
        return self._row(ref, resolved.ResolvedProject)

    def server(self, ref: ServerRef) -> resolved.ResolvedServer:
        """The server row."""
        return self._row(ref, resolved.ResolvedServer)

    def user(self, ref: UserRef) -> resolved.ResolvedUser:
        """The user row behind `ref`."""
        return self._row(ref, resolved.ResolvedUser)

    def role(self, ref: RoleRef) -> resolved.ResolvedRole:
        """The role row behind `ref`."""
        return self._row(ref, resolved.ResolvedRole)

    def _row(self, ref: Ref, kind: type[Row]) -> Row:
        row = self._resolution.get(ref)
        if not isinstance(row, kind):
            raise LookupError(f"{type(self._operation).__name__} was not admitted on {ref!r}")
        return row
