# SPDX-License-Identifier: Apache-2.0
"""The proof of a decision. A use case takes a `Permit[Op]` as its first parameter and cannot be called without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, final

from gateway.access import resolved
from gateway.access.actor import Actor
from gateway.access.deadline import Deadline
from gateway.access.decision import Decision, Restriction
from gateway.access.entrance import Passage
from gateway.access.operation import Operation
from gateway.access.policy import Obligations
from gateway.access.refs import (
    GenericTableIdRef,
    GenericTableRef,
    KeptGenericTableRef,
    KeptTableRef,
    KeptViewRef,
    NamespaceIdRef,
    NamespaceRef,
    ProjectRef,
    Ref,
    RoleRef,
    ServerRef,
    TableIdRef,
    TableRef,
    UserRef,
    ViewIdRef,
    ViewRef,
    WarehouseNameRef,
    WarehouseRef,
)
from gateway.access.relations import Can
from gateway.access.repetition import Claim
from gateway.access.trail import Trail

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
    _trail: Trail
    _request_id: str
    _claim: Claim | None
    _decide_again: DecideAgain | None
    _deadline: Deadline
    _passages: tuple[Passage, ...]

    def __init__(self) -> None:
        raise TypeError("a Permit comes from Door.admit")

    @property
    def operation(self) -> OpCo:
        """What is permitted."""
        return self._operation

    @property
    def deadline(self) -> Deadline:
        """When the request is cut off."""
        return self._deadline

    @property
    def actor(self) -> Actor:
        """Who it is permitted to."""
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
    def passages(self) -> tuple[Passage, ...]:
        """The views that were read through on the way, the outermost first."""
        return self._passages

    @property
    def trail(self) -> Trail:
        """The audit record that has to become durable before the answer leaves."""
        return self._trail

    @property
    def obligations(self) -> Obligations:
        """What policies demand of the way it is done."""
        return self._decision.obligations or Obligations()

    @property
    def resolution(self) -> resolved.Resolution:
        """All rows behind the references of the operation."""
        return self._resolution

    async def decide_again(self) -> resolved.Resolution:
        """What this permit stands on now, after the same operation was decided once more for the same caller.

        For when a revision moved since the decision (section 5 of the design, "Cache"): then something may have been
        taken away. Raises the refusal, and asks the caller to try again when less is allowed than this permit says.
        """
        if self._decide_again is None:
            raise LookupError(f"{type(self._operation).__name__} was not admitted by a door that can be asked again")
        return await self._decide_again()

    @property
    def held(self) -> frozenset[tuple[Can, Ref]]:
        """Every relation the caller was found to have, of those the operation asked for."""
        return self._decision.held

    def holds(self, relation: Can, on: Ref) -> bool:
        """True if the caller was found to have `relation` on `on`; only relations the operation listed were asked."""
        return (relation, on) in self._decision.held

    @property
    def restrictions(self) -> tuple[tuple[Ref, Restriction], ...]:
        """What it is permitted under, for each table that the caller may not read all of."""
        return self._decision.restrictions

    def restriction(self, on: Ref) -> Restriction | None:
        """What of a table may be read, None when nothing is held back: then `holds` tells whether it may be read."""
        return dict(self._decision.restrictions).get(on)

    def table(self, ref: TableRef | TableIdRef | KeptTableRef) -> resolved.ResolvedTable:
        """The table row behind `ref`."""
        return self._row(ref, resolved.ResolvedTable)

    def view(self, ref: ViewRef | ViewIdRef | KeptViewRef) -> resolved.ResolvedView:
        """The view row behind `ref`."""
        return self._row(ref, resolved.ResolvedView)

    def generic_table(
        self, ref: GenericTableRef | GenericTableIdRef | KeptGenericTableRef
    ) -> resolved.ResolvedGenericTable:
        """The generic table row behind `ref`."""
        return self._row(ref, resolved.ResolvedGenericTable)

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
