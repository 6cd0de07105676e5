# SPDX-License-Identifier: Apache-2.0
"""The permit, which is the proof of a decision.

A use case takes a `Permit[Op]` as its first parameter and cannot be called without one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar, final

from gateway.access.actor import Actor
from gateway.access.decisions.decision import Decision
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.door.request_context import Deadline, DefinerView
from gateway.access.idempotency import Claim
from gateway.access.nouns import resolved
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.refs import (
    GenericTableRef,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    Ref,
    TableRef,
    ViewRef,
    WarehouseNameRef,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.restrictions.bound_restrictions import PolicyStanding, PolicyVerdict
from gateway.obligations.data_policies import AppliesTo, roles_tested_by
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import NO_OBLIGATIONS, Obligations

OpCo = TypeVar("OpCo", bound=Operation, covariant=True)
Row = TypeVar("Row", bound=Resolved)


DecideAgain = Callable[[], Awaitable[resolved.Resolution]]
"""Callable that decides the same operation again. It returns the new resolution, or raises the refusal."""


ReadStanding = Callable[[Mapping[str, AppliesTo], resolved.Resolution], Awaitable[PolicyStanding]]
"""Callable that returns the relation of the caller to data policies, by the state of a resolution."""


@final
class Permit(Generic[OpCo]):
    """Permission to do exactly `operation`, with the rows on which it was decided.

    There is no public constructor: `gateway.access.door._mint` makes permits and only the door may import it (lock 7).
    The methods that return a row raise LookupError for a reference that the operation was not admitted on.
    """

    __slots__ = (
        "_actor",
        "_claim",
        "_deadline",
        "_revalidate",
        "_decision",
        "_operation",
        "_definer_views",
        "_request_id",
        "_resolution",
        "_pending_audit",
        "_standing",
    )

    _operation: OpCo
    _actor: Actor
    _decision: Decision
    _resolution: resolved.Resolution
    _pending_audit: PendingAudit
    _request_id: str
    _claim: Claim | None
    _revalidate: DecideAgain | None
    _deadline: Deadline
    _definer_views: tuple[DefinerView, ...]
    _standing: ReadStanding | None

    def __init__(self) -> None:
        raise TypeError("a Permit comes from Door.admit")

    @property
    def operation(self) -> OpCo:
        """The permitted operation."""
        return self._operation

    @property
    def deadline(self) -> Deadline:
        """The time limit of the request."""
        return self._deadline

    @property
    def actor(self) -> Actor:
        """The caller for which the operation is permitted."""
        return self._actor

    @property
    def request_id(self) -> str:
        """The id of the request that the permit was minted for."""
        return self._request_id

    @property
    def claim(self) -> Claim | None:
        """The claim of the request's idempotency key, under which its success is recorded. None if it has no key."""
        return self._claim

    @property
    def definer_views(self) -> tuple[DefinerView, ...]:
        """The definer views through which this operation is requested, the outermost first."""
        return self._definer_views

    @property
    def pending_audit(self) -> PendingAudit:
        """The audit record that must be durable before the response is sent."""
        return self._pending_audit

    @property
    def obligations(self) -> Obligations:
        """The obligations that column grants and policies impose."""
        return self._decision.obligations or NO_OBLIGATIONS

    @property
    def resolution(self) -> resolved.Resolution:
        """All rows behind the references of the operation."""
        return self._resolution

    async def revalidate(self) -> resolved.Resolution:
        """Decide the operation again for the same caller, and return the new resolution.

        Called if the revision changed since the decision, because rights may have been revoked. Raises the refusal.
        Raises the error of an outage, so that clients retry, if less is allowed than by this permit. Raises LookupError
        for a permit that was minted without this function.
        """
        if self._revalidate is None:
            raise LookupError(
                f"the permit of {type(self._operation).__name__} was minted without a function to revalidate it"
            )
        return await self._revalidate()

    async def policy_standing(
        self, policies: Mapping[str, AppliesTo], resolution: resolved.Resolution
    ) -> PolicyStanding:
        """Return which of these data policies restrict the caller, and which the caller manages.

        `resolution` is that of the last decision. Raises the refusal for an outage, and LookupError for a permit that
        was minted without this function.
        """
        if self._standing is None:
            raise LookupError(
                f"the permit of {type(self._operation).__name__} was minted without a function to revalidate it"
            )
        return await self._standing(policies, resolution)

    @property
    def held(self) -> frozenset[tuple[Can, Ref]]:
        """The demanded relations that the caller holds, each with its object."""
        return self._decision.held

    def holds(self, relation: Can, on: Ref) -> bool:
        """Return True if the caller holds `relation` on `on`.

        Relations that the operation does not demand were not checked.
        """
        return (relation, on) in self._decision.held

    def restriction(self, on: Ref) -> ReadableColumns | None:
        """Return the readable columns of a table; None if no column restriction applies.

        None does not mean that the table may be read: `holds` determines that.
        """
        row = self._resolution.get(on)
        return None if row is None else self.obligations.find(ReadableColumns, row.key.id)

    def policy_verdict(self, on: Ref) -> PolicyVerdict | None:
        """Return the effect of data policies on a table; None if no policy is bound to it."""
        row = self._resolution.get(on)
        return None if row is None else next((v for v in self._decision.policies if v.object_id == row.key.id), None)

    def restricted(self, on: Ref) -> bool:
        """Return True if a column grant or a data policy restricts what the caller may read of the table."""
        verdict = self.policy_verdict(on)
        return self.restriction(on) is not None or (verdict is not None and verdict.restricts)

    @property
    def tested_roles(self) -> frozenset[str]:
        """The ids of the roles that row filters on the permit's tables test with `has-role`."""
        bound = (one for each in self._decision.policies if each.inputs is not None for one in each.inputs.bound)
        return frozenset().union(*(roles_tested_by(one.policy.definition) for one in bound))

    @property
    def exempt(self) -> frozenset[str]:
        """The ids of the data policies that would restrict the caller on these tables if it were not exempt from
        them.
        """
        return frozenset().union(*(each.exempt for each in self._decision.policies))

    def table(self, ref: TableRef) -> resolved.ResolvedTable:
        """Return the table row behind `ref`."""
        return self.row(ref, resolved.ResolvedTable)

    def view(self, ref: ViewRef) -> resolved.ResolvedView:
        """Return the view row behind `ref`."""
        return self.row(ref, resolved.ResolvedView)

    def generic_table(self, ref: GenericTableRef) -> resolved.ResolvedGenericTable:
        """Return the generic table row behind `ref`."""
        return self.row(ref, resolved.ResolvedGenericTable)

    def tabular(
        self, ref: TableRef | ViewRef | GenericTableRef
    ) -> resolved.ResolvedTable | resolved.ResolvedView | resolved.ResolvedGenericTable:
        """Return the table, view or generic table row behind `ref`."""
        match ref.type:
            case ObjectType.VIEW:
                return self.row(ref, resolved.ResolvedView)
            case ObjectType.GENERIC_TABLE:
                return self.row(ref, resolved.ResolvedGenericTable)
            case _:
                return self.row(ref, resolved.ResolvedTable)

    def namespace(self, ref: NamespaceRef | NamespaceIdRef) -> resolved.ResolvedNamespace:
        """Return the namespace row behind `ref`."""
        return self.row(ref, resolved.ResolvedNamespace)

    def warehouse(self, ref: WarehouseRef | WarehouseNameRef) -> resolved.ResolvedWarehouse:
        """Return the warehouse row behind `ref`."""
        return self.row(ref, resolved.ResolvedWarehouse)

    def row(self, ref: Ref, kind: type[Row]) -> Row:
        """Return the row behind `ref`, of the type that the card of its object type declares."""
        row = self._resolution.get(ref)
        if not isinstance(row, kind):
            raise LookupError(f"{type(self._operation).__name__} was not admitted on {ref!r}")
        return row
