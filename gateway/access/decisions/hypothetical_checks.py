# SPDX-License-Identifier: Apache-2.0
"""Evaluate checks that admit nothing: for the rows of a list, for permission checks, and about other principals.

The result equals the decision that a real request would get. Nothing here mints a permit, which is the proof of a
decision. Only the door (`door.py`) does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.decisions.delegation import administering
from gateway.access.decisions.hypothetical_evaluation import (
    AT_ONCE,
    AT_ONCE_EACH,
    Circumstances,
    HypotheticalCheck,
    HypotheticalVerdict,
    ask_policies,
    evaluate_checks,
    questions_about,
)
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.door.engines import Engines
from gateway.access.door.permit import Permit
from gateway.access.door.questions import only_warehouse, pin_of, revision_of, stand_ins_in
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, Governed, Resolution, ResolvedGenericTable, ResolvedTable
from gateway.access.operation import Operation
from gateway.access.operations.checks import BatchCheck
from gateway.access.ports import Pin, Question, Resolver
from gateway.access.restrictions.bound_restrictions import PolicyStanding, PolicyVerdict
from gateway.access.restrictions.column_restrictions import GrantedColumns
from gateway.access.restrictions.data_restrictions import DataRestrictions, is_governed
from gateway.access.shares.fair_slots import FairSlots
from gateway.access.shares.shares import Lane, principal_key
from gateway.obligations.data_policies import AppliesTo, BoundPolicy


class HypotheticalChecks:
    """Evaluates checks with OpenFGA and OPA, without admitting an operation.

    If an engine cannot answer, each method raises the refusal for an outage. `slots` limit the work in progress; all
    instances of a process share them.
    """

    def __init__(
        self,
        resolver: Resolver,
        engines: Engines,
        columns: GrantedColumns,
        data: DataRestrictions,
        slots: Mapping[Lane, FairSlots] | None = None,
    ) -> None:
        self._resolver = resolver
        self._engines = engines
        self._columns = columns
        self._data = data
        self.slots = slots or {
            Lane.USER: FairSlots(AT_ONCE, each=AT_ONCE_EACH),
            Lane.ENGINE: FairSlots(AT_ONCE, each=AT_ONCE),
        }

    async def related(
        self,
        permit: Permit[Operation],
        actor: Actor,
        relation: Can,
        objects: Sequence[ObjectKey],
        by: Sequence[str | None] = (),
    ) -> list[bool]:
        """Return for each object whether `actor` has `relation` on it, in order. `by` is as in `Door.visible`.

        For another actor than the caller, call it only if the operation was admitted to check other principals.
        """
        return await self.related_each(permit, actor, [(relation, key) for key in objects], by)

    async def related_each(
        self,
        permit: Permit[Operation],
        actor: Actor,
        pairs: Sequence[tuple[Can, ObjectKey]],
        by: Sequence[str | None] = (),
    ) -> list[bool]:
        """Return `related` for each (relation, object), in order. All are asked at once."""
        if not pairs:
            return []
        within = only_warehouse(permit.resolution)
        hints = by or [None] * len(pairs)
        questions = [
            Question(relation, key, revision_of(key, within), hint)
            for (relation, key), hint in zip(pairs, hints, strict=True)
        ]
        try:
            return await self._engines.check(
                actor, questions, permit.resolution.now, _pin(permit, actor), paced=_lane(permit) is Lane.USER
            )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def related_below(self, permit: Permit[Operation], relation: Can, container: ObjectKey) -> bool:
        """Return whether the caller has `relation` on every object in a container on which it has no grant of its own.

        Columns are left out: rights on them follow those on their tables.
        """
        questions = [
            Question(relation, stand_in, above=above)
            for stand_in, above in stand_ins_in(container)
            if stand_in.type is not ObjectType.COLUMN
        ]
        if not questions:
            return True
        try:
            return all(await self._engines.check(permit.actor, questions, permit.resolution.now, None))
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def administered(self, permit: Permit[Operation], user: Actor, scopes: Sequence[ObjectKey]) -> set[ObjectKey]:
        """Return those of the warehouses and projects `scopes` of which `user` is an administrator; see `related`."""
        found: set[ObjectKey] = set()
        for type in dict.fromkeys(each.type for each in scopes):
            asked = [each for each in scopes if each.type is type]
            answers = await self.related(permit, user, administering(type), asked)
            found.update(key for key, yes in zip(asked, answers, strict=True) if yes)
        return found

    async def holds(
        self, permit: Permit[Operation], pairs: Sequence[tuple[Can, Ref]], *, resolution: Resolution | None = None
    ) -> list[bool]:
        """Return OpenFGA's results for relations of the caller, in order.

        The result for an absent object is False; a check is sent for it nevertheless, so that it takes the same time. A
        yes does not allow an operation, because the policies are not evaluated. `resolution` is as for `evaluate`.
        """
        resolution = permit.resolution if resolution is None else resolution
        hypothetical = [HypotheticalCheck(permit.actor, relation, on) for relation, on in pairs]
        try:
            async with self._lane_slot(permit)():
                answers = await self._engines.check(
                    permit.actor,
                    questions_about(hypothetical, resolution),
                    resolution.now,
                    pin_of(resolution),
                    paced=_lane(permit) is Lane.USER,
                )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        return [yes and resolution.get(on) is not None for yes, (_, on) in zip(answers, pairs, strict=True)]

    async def resolve(self, permit: Permit[Operation], refs: Sequence[Ref]) -> Resolution:
        """Return the rows of further objects, for checks that were admitted before the objects were known.

        Objects that the caller's token or role cannot reach have no row.
        """
        resolution = await self._resolver.resolve(refs, permit.actor)
        return resolution.seen_by(permit.actor, permit.resolution.caller_roles)

    def _lane_slot(self, permit: Permit[Operation]) -> Callable[[], AbstractAsyncContextManager[None]]:
        """Return a function whose result is a context manager. Its block occupies one slot of this request's lane."""
        return partial(self.slots[_lane(permit)].slot, principal_key(permit.actor))

    async def evaluate(
        self,
        permit: Permit[Operation],
        hypothetical: Sequence[HypotheticalCheck],
        guardrails: dict[int, tuple[BoundPolicy, ...]] | None = None,
        *,
        resolution: Resolution | None = None,
    ) -> list[bool]:
        """Return, for each check in order, whether both engines would allow it now.

        Call it only if the operation was admitted for these checks. The row filters and masks that are added to
        `guardrails` (`evaluate_checks`) must be passed to `policy_verdicts`. `resolution` has the rows of the checks.
        By default it is that of the permit.
        """
        return [
            each.allowed
            for each in await self.verdicts(permit, hypothetical, guardrails=guardrails, resolution=resolution)
        ]

    async def verdicts(
        self,
        permit: Permit[Operation],
        hypothetical: Sequence[HypotheticalCheck],
        *,
        guardrails: dict[int, tuple[BoundPolicy, ...]] | None = None,
        circumstances: Circumstances | None = None,
        resolution: Resolution | None = None,
        asking: Callable[[PolicyRequest], None] | None = None,
    ) -> list[HypotheticalVerdict]:
        """Return the parts of the decision on each check, in order. The parameters are those of `evaluate`.

        `circumstances` replace those of the request, and `asking` receives each request to OPA (`evaluate_checks`).
        """
        try:
            return await evaluate_checks(
                hypothetical,
                requester=permit.actor,
                record=permit.pending_audit.record,
                resolution=permit.resolution if resolution is None else resolution,
                resolver=self._resolver,
                engines=self._engines,
                room=self._lane_slot(permit),
                # Only checks for a user are paced: if an engine checks, a user's statement waits for the result, and
                # the engine soon times out.
                paced=_lane(permit) is Lane.USER,
                guardrails=guardrails,
                circumstances=circumstances,
                asking=asking,
            )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def policies(
        self,
        permit: Permit[Operation],
        hypothetical: Sequence[HypotheticalCheck],
        *,
        resolution: Resolution | None = None,
    ) -> list[PolicyAnswer]:
        """Return the policies' part of the decision on each check, in order, with unknown circumstances.

        Call it only if the operation was admitted for these checks. `resolution` is as for `evaluate`.
        """
        try:
            return await ask_policies(
                hypothetical,
                requester=permit.actor,
                record=permit.pending_audit.record,
                resolution=permit.resolution if resolution is None else resolution,
                resolver=self._resolver,
                engines=self._engines,
                room=self._lane_slot(permit),
            )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def readable_columns(
        self, permit: Permit[Operation], pairs: Sequence[tuple[Actor, Ref]]
    ) -> list[frozenset[int]]:
        """Return the readable columns, by field id, of each (actor, table) in order.

        Both engines must allow reading the table in part, and the column; otherwise the set is empty. Call it only if
        the operation was admitted for these checks. Each actor needs one statement, even if all tables are absent.
        Tables without granted columns need no check.
        """
        found: dict[tuple[Actor, Ref], frozenset[int]] = {}
        for actor in dict.fromkeys(actor for actor, _ in pairs):
            refs = dict.fromkeys(ref for other, ref in pairs if other == actor)
            rows = {ref: row for ref in refs if isinstance(row := permit.resolution.get(ref), ResolvedTable)}
            recorded = await self._columns.recorded(actor, rows)
            hypothetical = [HypotheticalCheck(actor, Can.READ_COLUMNS, ref) for ref in recorded]
            partly = await self.evaluate(permit, hypothetical) if hypothetical else []
            read = {ref: recorded[ref] for ref, yes in zip(list(recorded), partly, strict=True) if yes}
            try:
                confirmed = await self._columns.confirmed(
                    actor, rows, read, now=permit.resolution.now, pin=_pin(permit, actor)
                )
            except DecisionEngineUnavailable as outage:
                raise unavailable(permit.operation.is_catalog_mutation()) from outage
            found |= {(actor, ref): fields for ref, fields in confirmed.items()}
        return [found.get(each, frozenset()) for each in pairs]

    async def policy_verdicts(
        self,
        permit: Permit[Operation],
        checks: Sequence[tuple[Actor, Ref, tuple[BoundPolicy, ...]]],
        *,
        resolution: Resolution | None = None,
    ) -> list[PolicyVerdict | None]:
        """Return the effect of data policies on each (actor, table, policies of guardrails), in order; None if there is
        none.

        Call it only if the operation was admitted for checks of these actors that were allowed. Each actor needs one
        statement. Tables and generic tables in warehouses without data policies need none. `resolution` is as for
        `evaluate`.
        """
        known = permit.resolution if resolution is None else resolution
        found: dict[tuple[Actor, Ref, tuple[BoundPolicy, ...]], PolicyVerdict | None] = {}
        groups: dict[tuple[Actor, tuple[BoundPolicy, ...]], dict[Ref, Governed]] = {}
        for actor, ref, stated in checks:
            row = known.get(ref)
            if isinstance(row, ResolvedTable | ResolvedGenericTable) and (stated or is_governed(row)):
                groups.setdefault((actor, stated), {})[ref] = row
        try:
            for (actor, stated), own in groups.items():
                about = await self._resolver.resolve((), actor)
                verdicts = await self._data.verdicts(
                    actor,
                    list(own.values()),
                    known,
                    about.caller_roles,
                    other=None if actor == permit.actor else about,
                    guardrails=stated,
                )
                found |= {(actor, ref, stated): verdicts.get(row.id) for ref, row in own.items()}
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        return [found.get(each) for each in checks]

    async def restricting(
        self, permit: Permit[Operation], actor: Actor, policies: Mapping[str, AppliesTo]
    ) -> frozenset[str]:
        """Return which of these data policies restrict the actor. Call it as `policy_verdicts`."""
        is_caller = actor == permit.actor
        try:
            about = permit.resolution if is_caller else await self._resolver.resolve((), actor)
            acting = about.acting(actor) if is_caller else actor
            return await self._data.restricting(acting, policies, about, is_caller=is_caller)
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def policy_standing(
        self, operation: Operation, actor: Actor, policies: Mapping[str, AppliesTo], resolution: Resolution
    ) -> PolicyStanding:
        """Return which of `policies` restrict the caller of `operation`, and which the caller manages.

        `resolution` is the last one about the operation.
        """
        try:
            return await self._data.standing(actor, policies, resolution)
        except DecisionEngineUnavailable as outage:
            raise unavailable(operation.is_catalog_mutation()) from outage

    async def excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        """Yield the excerpts of tables and views (`GrantedColumns.excerpts`).

        Call it only for objects with a check that returned True.
        """
        async for each in self._columns.excerpts(ids):
            yield each


def _lane(permit: Permit[Operation]) -> Lane:
    """Return the lane for the checks of a request. Only requests of proven engines use the lane of engines."""
    return Lane.ENGINE if _inspects(permit.operation) or permit.actor.engine is not None else Lane.USER


def _inspects(operation: Operation) -> bool:
    # Every caller may send `delegated` with checks about itself. Checks about other principals need the right of an
    # inspector, which was decided before this point.
    return (
        isinstance(operation, BatchCheck)
        and operation.delegated
        and any(each.principal is not None for each in operation.checks)
    )


def _pin(permit: Permit[Operation], actor: Actor) -> Pin | None:
    """Return the pin for cached results about the caller.

    Return None for other actors, because their expiries are not known.
    """
    return pin_of(permit.resolution) if actor == permit.actor else None
