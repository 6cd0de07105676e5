# SPDX-License-Identifier: Apache-2.0
"""The one door: resolve, ask both engines at once, combine, write down, hand out permits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from gateway.access._mint import mint
from gateway.access.audit_record import AuditRecord
from gateway.access.decision import (
    Decision,
    Failure,
    Outcome,
    all_of,
    closed,
    combine,
    refused,
    undecided,
    undelegated,
)
from gateway.access.endings import Endings
from gateway.access.engines import Engines
from gateway.access.entrance import Assumption, Entrance, Passage
from gateway.access.granted_columns import GrantedColumns
from gateway.access.inquiries import Inquiries
from gateway.access.operation import Durability, Operation
from gateway.access.operations.assuming import AssumeRole
from gateway.access.operations.passing import ReadThroughView
from gateway.access.outage import AuditUnavailable, DecisionEngineUnavailable
from gateway.access.passages import owner_of
from gateway.access.permit import Permit
from gateway.access.policy import PolicyAnswer
from gateway.access.ports import AuditSink, Observer, Policies, Relationships, Resolver
from gateway.access.questions import in_inactive_warehouse, key_of, refs_of
from gateway.access.recording import Judged, record_of, told_of
from gateway.access.refs import ObjectKey, Ref, RoleRef, ViewRef
from gateway.access.refusals import (
    MAX_GROUP_ROLES,
    AssumeRoleForbidden,
    InvalidAssumeRoleId,
    RoleActionForbidden,
    RoleNotFound,
    WarehouseNotActive,
    audit_unavailable,
    forbidden,
    restricted,
    right_ends,
    too_many_groups,
    unavailable,
    user_deactivated,
)
from gateway.access.relations import Can
from gateway.access.resolved import Resolution, ResolvedView
from gateway.access.restricted import Restrictions
from gateway.access.threshold import Threshold
from gateway.access.trail import Trail
from gateway.iceberg.errors import CatalogError, ForbiddenException

Op = TypeVar("Op", bound=Operation)
Extra = TypeVar("Extra", bound=Operation)

#: Later than the end of any grant (`gateway.governance.grant_requests.LAST_END`).
_FOR_EVER = datetime(9000, 1, 1, tzinfo=UTC)

_DURABILITY_ORDER = (Durability.BUFFERED, Durability.BEFORE_ANSWER, Durability.WITH_CHANGE)


class Door:
    """Decides every operation (section 3 of the design).

    Invariant 1 rests here: permits are minted for allowed decisions only, and the latch lets no success answer leave
    without one. All collaborators fail by raising; nothing in this class turns a failure into an allow.

    `read_only`: in maintenance nothing that changes anything is admitted, whoever asks (`Operation.pauses`).
    `inquiries` tell what it would say to others.
    """

    def __init__(
        self,
        *,
        resolver: Resolver,
        relationships: Relationships,
        policies: Policies,
        audit: AuditSink,
        observer: Observer,
        read_only: bool = False,
    ) -> None:
        self._resolver = resolver
        self._threshold = Threshold(read_only=read_only)
        self._engines = Engines(relationships, policies, observer)
        self._endings = Endings(resolver, self._engines)
        columns = GrantedColumns(resolver, self._engines)
        self._restrictions = Restrictions(self._engines, columns)
        self._audit = audit
        self._observer = observer
        self.inquiries = Inquiries(resolver, self._engines, columns)

    def pauses(self, operation: type[Operation]) -> bool:
        """As `Threshold.pauses`."""
        return self._threshold.pauses(operation)

    def require_open(self, operation: type[Operation]) -> None:
        """As `Threshold.require_open`."""
        self._threshold.require_open(operation)

    async def admit(self, entrance: Entrance, operation: Op) -> Permit[Op]:
        """The permit for `operation`. Raises the refusal as a CatalogError: 401, 403, 404, 429 or 503."""
        permit, _ = await self.admit_with(entrance, operation, None)
        return permit

    async def admit_with(
        self, entrance: Entrance, operation: Op, extra: Extra | None
    ) -> tuple[Permit[Op], Permit[Extra] | None]:
        """As `admit`, and in the same round the permit for `extra` if there is one that is allowed too; its refusal
        raises nothing.
        """
        asked: tuple[Operation, ...] = (operation,) if extra is None else (operation, extra)
        self._threshold.require(entrance, asked)
        resolution, decisions, groups = await self._judge(entrance, asked)
        entrance.came_for(resolution)
        record = record_of(entrance, told_of(asked, decisions, groups), resolution)
        if not decisions[0].allowed:
            raise self._refuse(entrance, operation, decisions[0], record)
        if entrance.remembered is not None:
            entrance.remembered.require_same(refs_of(asked), resolution)
        trail = self._open_trail(record, asked, decisions, operation)
        entrance.trails.append(trail)
        entrance.admitted.add(type(operation))
        permit = self._mint(entrance, operation, decisions[0], resolution, trail)
        if extra is None or not decisions[1].allowed:
            return permit, None
        entrance.admitted.add(type(extra))
        return permit, self._mint(entrance, extra, decisions[1], resolution, trail)

    async def assume(self, entrance: Entrance, role: RoleRef, *, project: str | None = None) -> None:
        """Let the caller of `entrance` act as a role from here on: only what the role has counts, only in its project,
        which is `project` where the request names one.

        Raises InvalidAssumeRoleId for a role that is none or that the caller does not see, AssumeRoleForbidden, and
        what `admit` raises.

        To an engine that acts for somebody no refusal is told here: it could learn by naming users and roles who is in
        which role, also where it may act for nobody. It goes on as who has nothing, and meets the answer that a member
        of a role without rights meets (LG-DEC-20).
        """
        operation = AssumeRole(role)
        try:
            permit = await self.admit(entrance, operation)
            assumed = permit.role(role)
            if project not in (None, assumed.project_id):
                raise AssumeRoleForbidden("The role to act as is of another project than the request.")
        except (RoleNotFound, ForbiddenException) as refused:
            if entrance.actor.engine is not None:
                entrance.act_as_nobody()
                return
            if isinstance(refused, RoleNotFound):
                raise InvalidAssumeRoleId(f"There is no role {role.role_id} to act as.") from None
            if isinstance(refused, RoleActionForbidden):
                raise AssumeRoleForbidden(refused.message) from None
            raise
        entrance.act_as(permit.actor, operation, assumed, permit.resolution.caller_roles)

    async def pass_through(self, entrance: Entrance, views: Sequence[ViewRef]) -> None:
        """Admit reading through these views, the outermost first, for a caller whose token is of a trusted engine.

        The first view must be readable to the caller. What lies directly below a view is decided by the rights of the
        view's owner; below a view without an owner by the caller's own rights, also when an outer view has an owner.
        Raises AmbiguousViewOwner, and what `admit` raises.
        """
        for view in views:
            operation = ReadThroughView(view)
            permit = await self.admit(entrance, operation)
            row = permit.view(view)
            excerpt = (await self._resolver.excerpts([row.id])).get(row.id)
            if excerpt is None:
                raise operation.hidden(view)
            entrance.pass_through(operation, owner_of(row, excerpt, entrance.actor))

    async def visible(
        self,
        permit: Permit[Operation],
        relation: Can,
        objects: Sequence[ObjectKey],
        by: Sequence[str | None] = (),
    ) -> list[bool]:
        """Which of `objects` the caller of `permit` has `relation` on, in order: the filter of every list.

        `by` is what each of them may be had by (`Question.by`), when anything is known of that. Raises the refusal for
        an outage; a list is complete for its reader or fails (invariant 8).
        """
        return await self.inquiries.related(permit, permit.actor, relation, objects, by)

    async def held_until(
        self, permit: Permit[Operation], until: datetime, *, standing_on: Resolution | None = None
    ) -> datetime | None:
        """The first moment up to `until` at which the caller holds less of what `permit` was admitted by; None when
        there is none. `standing_on` is what the permit stands on by now, when it was decided again.

        For what lives longer than its request: a credential must not outlive the grants behind it (decision 17 of the
        design). Raises the refusal for an outage.
        """
        try:
            return await self._endings.first(permit, until, standing_on or permit.resolution)
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def require_endless(self, permit: Permit[Operation], relation: Can, on: Ref) -> None:
        """Raise ForbiddenException when the caller holds `relation` on `on` by a right that ends.

        For changes that make inherited rights permanent: a lent right must not decide who holds rights for good.
        Raises LookupError for a relation that `permit` does not hold, and the refusal for an outage.
        """
        if not permit.holds(relation, on):
            raise LookupError(f"{type(permit.operation).__name__} was not admitted by {relation} on {on!r}")
        try:
            ends = await self._endings.first(permit, _FOR_EVER, permit.resolution, [(relation, on)])
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        if ends is not None:
            raise right_ends(permit.actor, permit.operation.name(), on, relation, ends)

    async def require_endless_membership(self, permit: Permit[Operation], role_id: str, ref: Ref) -> None:
        """Raise ForbiddenException on `ref` when the caller's membership of a role ends; see `require_endless`."""
        try:
            ends = await self._endings.membership(permit, role_id, _FOR_EVER)
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        if ends is not None:
            raise right_ends(permit.actor, permit.operation.name(), ref, Can.ASSUME, ends)

    async def _judge(
        self, entrance: Entrance, asked: Sequence[Operation]
    ) -> tuple[Resolution, list[Decision], list[list[Judged]]]:
        """(what was resolved, a decision for each operation, the decisions of its parts)."""
        started = time.perf_counter()
        assumption = entrance.assumption
        resolution = await self._resolver.resolve(refs_of(asked), entrance.actor)
        resolution = resolution.seen_by(entrance.actor, assumption.roles if assumption is not None else ())
        parts = [tuple(each.parts()) or (each,) for each in asked]
        verdicts = iter(await self._decide(entrance, list(chain.from_iterable(parts)), resolution))
        groups = [list(zip(some, verdicts, strict=False)) for some in parts]
        decisions = [group[0][1] if len(group) == 1 else all_of([one for _, one in group]) for group in groups]
        self._observer.decision_took("total", time.perf_counter() - started)
        for each, decision in zip(asked, decisions, strict=True):
            self._observer.decided(
                operation=each.name(), outcome=decision.outcome, determined_by=decision.determined_by
            )
        return resolution, decisions, groups

    async def _judge_again(
        self, entrance: Entrance, operation: Operation, before: Resolution, decision: Decision
    ) -> Resolution:
        """Decide what was admitted once more, because something may have been taken away since: what the permit stands
        on now.

        Raises the refusal. Raises the answer for an outage, which makes clients ask anew, when it is allowed otherwise
        than before: the names mean other things, less is held, or policies oblige to something else. Who acts as a role
        has to be in it still.
        """
        for passage in entrance.passages:
            await self._passed_again(entrance, passage)
        if entrance.assumption is not None:
            await self._assumed_again(entrance, entrance.assumption)
        resolution, decisions, groups = await self._judge(entrance, (operation,))
        if not decisions[0].allowed:
            raise self._refuse(
                entrance,
                operation,
                decisions[0],
                record_of(entrance, told_of((operation,), decisions, groups), resolution),
            )
        moved = any(key_of(ref, resolution) != key_of(ref, before) for ref in refs_of((operation,)))
        less = not decisions[0].held >= decision.held or decisions[0].obligations != decision.obligations
        less = less or decisions[0].restrictions != decision.restrictions
        if moved or less:
            raise unavailable(operation.is_catalog_mutation())
        return resolution

    async def _passed_again(self, entrance: Entrance, passage: Passage) -> None:
        """Decide once more that a view may be read through, and that it has the owner it had. Raises the refusal."""
        asked = (passage.operation,)
        if passage.assumption is not None:
            await self._assumed_again(entrance, passage.assumption)
        before = replace(entrance, actor=passage.actor, assumption=passage.assumption, passages=[])
        resolution, decisions, groups = await self._judge(before, asked)
        if not decisions[0].allowed:
            raise self._refuse(
                before,
                passage.operation,
                decisions[0],
                record_of(before, told_of(asked, decisions, groups), resolution),
            )
        view = resolution.get(passage.operation.view)
        if not isinstance(view, ResolvedView):
            raise unavailable(False)
        excerpt = (await self._resolver.excerpts([view.id])).get(view.id)
        if excerpt is None or owner_of(view, excerpt, passage.actor) != passage.owner:
            raise unavailable(False)

    async def _assumed_again(self, entrance: Entrance, assumption: Assumption) -> None:
        """Decide once more that the caller may act as the role. Raises the refusal."""
        asked = (assumption.operation,)
        before = replace(entrance, actor=assumption.actor, assumption=None)
        resolution, decisions, groups = await self._judge(before, asked)
        if not decisions[0].allowed:
            record = record_of(before, told_of(asked, decisions, groups), resolution)
            raise self._refuse(before, assumption.operation, decisions[0], record)

    def _mint(
        self, entrance: Entrance, operation: Op, decision: Decision, resolution: Resolution, trail: Trail
    ) -> Permit[Op]:
        return mint(
            operation,
            actor=resolution.acting(entrance.actor),
            decision=decision,
            resolution=resolution,
            trail=trail,
            request_id=entrance.request_id,
            claim=entrance.claim,
            passages=tuple(entrance.passages),
            deadline=entrance.deadline,
            decide_again=partial(self._judge_again, entrance, operation, resolution, decision),
        )

    def _refuse(
        self, entrance: Entrance, operation: Operation, decision: Decision, record: AuditRecord
    ) -> CatalogError:
        try:
            self._audit.buffer(record)
        except AuditUnavailable as full:
            return audit_unavailable(full, operation.is_catalog_mutation())
        if decision.outcome is Outcome.UNAVAILABLE:
            return unavailable(operation.is_catalog_mutation())
        ref = decision.refused.on if decision.refused is not None else None
        if decision.failure is Failure.TOO_MANY_GROUPS:
            return too_many_groups()
        if decision.failure is Failure.USER_DEACTIVATED:
            return user_deactivated()
        if decision.failure is Failure.WAREHOUSE_INACTIVE:
            return WarehouseNotActive("The warehouse is not active.")
        if decision.outcome is Outcome.HIDDEN and ref is not None:
            return operation.hidden(ref)
        if decision.failure is Failure.RESTRICTED:
            return restricted(entrance.actor, operation.name())
        return forbidden(entrance.actor, operation.name(), ref, decision.policy_reasons)

    def _open_trail(
        self, record: AuditRecord, asked: Sequence[Operation], decisions: Sequence[Decision], operation: Operation
    ) -> Trail:
        allowed = [each.durability for each, decision in zip(asked, decisions, strict=True) if decision.allowed]
        durability = max(allowed, key=_DURABILITY_ORDER.index)
        try:
            return Trail(record, durability, self._audit)
        except AuditUnavailable as full:
            raise audit_unavailable(full, operation.is_catalog_mutation()) from full

    async def _decide(self, entrance: Entrance, asked: Sequence[Operation], resolution: Resolution) -> list[Decision]:
        if all(operation.is_public() for operation in asked):
            allow = PolicyAnswer(allow=True)
            return [combine((), allow) for _ in asked]
        if resolution.deactivated:
            return [refused(Failure.USER_DEACTIVATED) for _ in asked]
        demands = [self._threshold.demands_of(operation) for operation in asked]
        if any(demands) and len(resolution.acting(entrance.actor).group_roles) > MAX_GROUP_ROLES:
            return [refused(Failure.TOO_MANY_GROUPS) for _ in asked]
        try:
            judged = await self._engines.ask(entrance, asked, demands, resolution)
            judged = await self._restrictions.settle(entrance.actor, judged, resolution)
        except DecisionEngineUnavailable:
            return [undecided(Failure.ENGINE_UNAVAILABLE) for _ in asked]
        verdicts = []
        for operation, (answers, policy, delegated) in zip(asked, judged, strict=True):
            shut = in_inactive_warehouse(operation, resolution)
            verdict = combine(answers, policy)
            if not delegated:
                verdict = undelegated(verdict, answers)
            verdicts.append(verdict if shut is None else closed(verdict, shut))
        return verdicts
