# SPDX-License-Identifier: Apache-2.0
"""The door, the only code that decides operations: it queries OpenFGA and OPA, mints permits, and audits decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from gateway.access.audit.audit_facts import Judged, record_of
from gateway.access.audit.audit_record import AuditRecord
from gateway.access.decisions.decision import (
    Decision,
    Failure,
    all_of,
    closed,
    combine,
    enforced,
    refused,
    undecided,
    undelegated,
)
from gateway.access.decisions.definer_views import owner_of
from gateway.access.decisions.grant_expiry import ExpiryCache, GrantExpiry
from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.decisions.policy import PolicyAnswer, PolicyQuestion
from gateway.access.dependency_errors import AuditUnavailable, DecisionEngineUnavailable
from gateway.access.door._mint import mint
from gateway.access.door.engines import Engines, policy_question
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.door.permit import Permit
from gateway.access.door.preconditions import Preconditions
from gateway.access.door.questions import in_inactive_warehouse, key_of, refs_of
from gateway.access.door.refusals import refusal_of
from gateway.access.door.request_context import Assumption, DefinerView, RequestContext
from gateway.access.nouns.authz_errors import (
    MAX_GROUP_ROLES,
    AssumeRoleForbidden,
    InvalidAssumeRoleId,
    audit_unavailable,
    expiring_right,
    unavailable,
)
from gateway.access.nouns.refs import ObjectKey, Ref, ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedView
from gateway.access.nouns.role import ResolvedRole, RoleActionForbidden, RoleNotFound, RoleRef
from gateway.access.operation import Durability, Operation
from gateway.access.operations.steps import AssumeRole, ReadThroughView
from gateway.access.ports import AuditSink, Observer, Policies, Relationships, Resolver
from gateway.access.restrictions.column_restrictions import ColumnRestrictions, GrantedColumns
from gateway.access.restrictions.data_restrictions import DataRestrictions
from gateway.iceberg.errors import CatalogError, ForbiddenException
from gateway.obligations.binding import PolicyProblem
from gateway.spans import annotate, known_trace_id, spanned

Op = TypeVar("Op", bound=Operation)
Extra = TypeVar("Extra", bound=Operation)

#: A time after the end of any grant (`gateway.features.grants.grant_requests.LAST_END`).
_FOR_EVER = datetime(9000, 1, 1, tzinfo=UTC)

#: Errors that are answers of the door, not failures.
_REFUSALS = (CatalogError,)

_DURABILITY_ORDER = (Durability.BUFFERED, Durability.BEFORE_ANSWER, Durability.WITH_CHANGE)


class Door:
    """The door: decides every operation.

    Permits are minted for allowed decisions only, and the latch sends no success response without a permit. All
    collaborators report a failure by an exception, and nothing in this class turns an exception into an allow.

    With `read_only`, operations that pause in maintenance are refused (`Operation.pauses`). `hypothetical_checks`
    evaluates decisions for other principals. `expiries` caches the expiries of grants behind credentials; with None
    they are not cached. `alert` receives data policies that could not be applied as written, or that test other claims
    than `kept_claims`.
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
        expiries: ExpiryCache | None = None,
        alert: Callable[[Sequence[PolicyProblem]], None] | None = None,
        kept_claims: frozenset[str] | None = None,
    ) -> None:
        self._resolver = resolver
        self._preconditions = Preconditions(read_only=read_only)
        self._engines = Engines(relationships, policies, observer)
        self._grant_expiry = GrantExpiry(resolver, self._engines, expiries)
        columns = GrantedColumns(resolver, self._engines)
        self._restrictions = ColumnRestrictions(self._engines, columns)
        self._data = DataRestrictions(resolver, self._engines, alert, kept_claims)
        self._audit = audit
        self._observer = observer
        self.hypothetical_checks = HypotheticalChecks(resolver, self._engines, columns, self._data)

    def pauses(self, operation: type[Operation]) -> bool:
        """Return True if read-only maintenance refuses the operation (`Preconditions.pauses`)."""
        return self._preconditions.pauses(operation)

    def require_not_paused(self, operation: type[Operation]) -> None:
        """Raise the error of read-only maintenance if it refuses the operation (`Preconditions.require_not_paused`)."""
        self._preconditions.require_not_paused(operation)

    async def admit(self, context: RequestContext, operation: Op) -> Permit[Op]:
        """Return the permit for `operation`.

        Raises the refusal, a CatalogError with status 401, 403, 404, 429 or 503.
        """
        permit, _ = await self.admit_with(context, operation, None)
        return permit

    @spanned(
        "door.admit", lambda _self, _context, operation, _: {"lakegate.operation": operation.name()}, refusals=_REFUSALS
    )
    async def admit_with(
        self, context: RequestContext, operation: Op, extra: Extra | None
    ) -> tuple[Permit[Op], Permit[Extra] | None]:
        """Return the permit for `operation`, and the permit for `extra`, which is None if `extra` is None or refused.

        Both are decided in one round. A refusal of `operation` is raised as in `admit`.
        """
        context.trace_id = known_trace_id()
        operations: tuple[Operation, ...] = (operation,) if extra is None else (operation, extra)
        self._preconditions.require(context, operations)
        resolution, decisions, groups = await self._judge(context, operations)
        context.record_location(resolution)
        record = record_of(context, operations, decisions, groups, resolution)
        if not decisions[0].allowed:
            raise self._refuse(context, operation, decisions[0], record)
        if context.recorded_success is not None:
            context.recorded_success.require_same(refs_of(operations), resolution)
        pending_audit = self._open_pending_audit(record, operations, decisions, operation)
        context.pending_audits.append(pending_audit)
        context.admitted.add(type(operation))
        permit = self._mint(context, operation, decisions[0], resolution, pending_audit)
        if extra is None or not decisions[1].allowed:
            return permit, None
        context.admitted.add(type(extra))
        return permit, self._mint(context, extra, decisions[1], resolution, pending_audit)

    async def assume(self, context: RequestContext, role: RoleRef, *, project: str | None = None) -> None:
        """Let the caller of `context` act as a role for the rest of the request, in the role's project only.

        `project` is the project that the request names, if any. Raises InvalidAssumeRoleId for an unknown or invisible
        role, AssumeRoleForbidden, and the errors of `admit`.

        An engine that acts for a user gets no refusal here: otherwise it could learn the members of a role by naming
        users and roles. The request continues without rights. Its response is the one for a member of a role without
        rights (LG-DEC-20).
        """
        operation = AssumeRole(role)
        try:
            permit = await self.admit(context, operation)
            assumed = permit.row(role, ResolvedRole)
            if project not in (None, assumed.project_id):
                raise AssumeRoleForbidden(
                    "The role in x-assume-role belongs to another project than the request. Use a role of the "
                    "request's project."
                )
        except (RoleNotFound, ForbiddenException) as refused:
            if context.actor.engine is not None:
                context.act_without_rights()
                return
            if isinstance(refused, RoleNotFound):
                raise InvalidAssumeRoleId(f"The role {role.role_id} in x-assume-role does not exist.") from None
            if isinstance(refused, RoleActionForbidden):
                raise AssumeRoleForbidden(refused.message) from None
            raise
        context.act_as(permit.actor, operation, assumed, permit.resolution.caller_roles)

    async def pass_through(self, context: RequestContext, views: Sequence[ViewRef]) -> None:
        """Admit reading through these views, the outermost first. The caller has a token of a trusted engine.

        The caller must be able to read the first view. The rights of a view's owner decide about the objects directly
        below this view. Below a view without an owner the caller's own rights decide, even if an outer view has an
        owner. Raises AmbiguousViewOwner, and the errors of `admit`.
        """
        for view in views:
            operation = ReadThroughView(view)
            permit = await self.admit(context, operation)
            row = permit.view(view)
            excerpt = (await self._resolver.excerpts([row.id])).get(row.id)
            if excerpt is None:
                raise operation.hidden(view)
            context.pass_through(operation, owner_of(row, excerpt, context.actor))

    async def visible(
        self,
        permit: Permit[Operation],
        relation: Can,
        objects: Sequence[ObjectKey],
        by: Sequence[str | None] = (),
    ) -> list[bool]:
        """Return, for each of `objects` in order, whether the caller of `permit` has `relation` on it.

        It filters lists. `by` has a hint (`Question.by`) or None for each object. Raises the refusal for an outage, so
        that no list is incomplete.
        """
        return await self.hypothetical_checks.related(permit, permit.actor, relation, objects, by)

    async def first_expiry(
        self, permit: Permit[Operation], until: datetime, *, last_resolution: Resolution | None = None
    ) -> datetime | None:
        """Return the first time up to `until` at which the caller loses a relation of `permit`; None if there is none.

        Credentials must not outlive the grants behind them. For credentials, pass the `last_resolution` of the last
        decision, because the permit may have been decided again. Then the result may be cached
        (`GrantExpiry.first_for_credentials`). Raises the refusal for an outage.
        """
        try:
            if last_resolution is not None:
                return await self._grant_expiry.first_for_credentials(permit, until, last_resolution)
            return await self._grant_expiry.first(permit, until, permit.resolution)
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def require_endless(self, permit: Permit[Operation], relation: Can, on: Ref) -> None:
        """Raise ForbiddenException if the caller's right to `relation` on `on` expires.

        Changes that make inherited rights permanent call it: a caller must not create permanent rights by an expiring
        one. Raises LookupError if the caller of `permit` does not hold the relation, and the refusal for an outage.
        """
        if not permit.holds(relation, on):
            raise LookupError(f"{type(permit.operation).__name__} was not admitted by {relation} on {on!r}")
        try:
            ends = await self._grant_expiry.first(permit, _FOR_EVER, permit.resolution, [(relation, on)])
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        if ends is not None:
            raise expiring_right(permit.actor, permit.operation.name(), on, relation, ends)

    async def require_endless_membership(self, permit: Permit[Operation], role_id: str, ref: Ref) -> None:
        """Raise ForbiddenException, about the object `ref`, if the caller's membership in the role expires."""
        try:
            ends = await self._grant_expiry.membership(permit, role_id, _FOR_EVER)
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        if ends is not None:
            raise expiring_right(permit.actor, permit.operation.name(), ref, Can.ASSUME, ends)

    async def _judge(
        self, context: RequestContext, operations: Sequence[Operation]
    ) -> tuple[Resolution, list[Decision], list[list[Judged]]]:
        """Return (the resolution, the decision on each operation, the decisions on the parts of each operation)."""
        started = time.perf_counter()
        assumption = context.assumption
        resolution = await self._resolver.resolve(refs_of(operations), context.actor)
        own_roles = resolution.caller_roles
        resolution = resolution.seen_by(context.actor, assumption.roles if assumption is not None else ())
        parts = [tuple(each.parts()) or (each,) for each in operations]
        flat = list(chain.from_iterable(parts))
        questions = [policy_question(each, resolution) for each in flat]
        verdicts = iter(await self._decide(context, flat, questions, resolution, own_roles))
        unused = iter(questions)
        groups = [list(map(Judged, some, verdicts, unused)) for some in parts]
        decisions = [all_of([each.decision for each in group]) for group in groups]
        self._observer.decision_took("total", time.perf_counter() - started)
        for each, decision in zip(operations, decisions, strict=True):
            annotate({"lakegate.outcome": decision.outcome, "lakegate.determined_by": decision.determined_by})
            self._observer.decided(
                operation=each.name(), outcome=decision.outcome, determined_by=decision.determined_by
            )
        return resolution, decisions, groups

    async def _decide_again(
        self, context: RequestContext, operation: Operation, before: Resolution, decision: Decision
    ) -> Resolution:
        """Decide an admitted operation again, because rights may have been revoked since. Return the new resolution.

        Raises the refusal. Raises the error of an outage, so that clients retry, if less is allowed than before: names
        mean other objects, a relation is lost, or obligations differ. A caller that acts as a role must still be a
        member of the role.
        """
        for definer_view in context.definer_views:
            await self._revalidate_view(context, definer_view)
        if context.assumption is not None:
            await self._revalidate_assumption(context, context.assumption)
        resolution, decisions, groups = await self._judge(context, (operation,))
        if not decisions[0].allowed:
            record = record_of(context, (operation,), decisions, groups, resolution)
            raise self._refuse(context, operation, decisions[0], record)
        moved = any(key_of(ref, resolution) != key_of(ref, before) for ref in refs_of((operation,)))
        less = not decisions[0].held >= decision.held or decisions[0].obligations != decision.obligations
        if moved or less:
            raise unavailable(operation.is_catalog_mutation())
        return resolution

    async def _revalidate_view(self, context: RequestContext, definer_view: DefinerView) -> None:
        """Check again that the caller may read through the view. Raises the refusal.

        Raises the error of an outage, so that clients retry, if the view was dropped or has another owner.
        """
        operations = (definer_view.operation,)
        if definer_view.assumption is not None:
            await self._revalidate_assumption(context, definer_view.assumption)
        before = replace(context, actor=definer_view.actor, assumption=definer_view.assumption, definer_views=[])
        resolution, decisions, groups = await self._judge(before, operations)
        if not decisions[0].allowed:
            record = record_of(before, operations, decisions, groups, resolution)
            raise self._refuse(before, definer_view.operation, decisions[0], record)
        view = resolution.get(definer_view.operation.view)
        if not isinstance(view, ResolvedView):
            raise unavailable(False)
        excerpt = (await self._resolver.excerpts([view.id])).get(view.id)
        if excerpt is None or owner_of(view, excerpt, definer_view.actor) != definer_view.owner:
            raise unavailable(False)

    async def _revalidate_assumption(self, context: RequestContext, assumption: Assumption) -> None:
        """Check again that the caller may act as the role. Raises the refusal."""
        operations = (assumption.operation,)
        before = replace(context, actor=assumption.actor, assumption=None)
        resolution, decisions, groups = await self._judge(before, operations)
        if not decisions[0].allowed:
            record = record_of(before, operations, decisions, groups, resolution)
            raise self._refuse(before, assumption.operation, decisions[0], record)

    def _mint(
        self, context: RequestContext, operation: Op, decision: Decision, resolution: Resolution, audit: PendingAudit
    ) -> Permit[Op]:
        return mint(
            operation,
            actor=resolution.acting(context.actor),
            decision=decision,
            resolution=resolution,
            pending_audit=audit,
            request_id=context.request_id,
            claim=context.claim,
            definer_views=tuple(context.definer_views),
            deadline=context.deadline,
            revalidate=partial(self._decide_again, context, operation, resolution, decision),
            standing=partial(self.hypothetical_checks.policy_standing, operation, context.actor),
        )

    def _refuse(
        self, context: RequestContext, operation: Operation, decision: Decision, record: AuditRecord
    ) -> CatalogError:
        try:
            self._audit.buffer(record)
        except AuditUnavailable as full:
            return audit_unavailable(full, operation.is_catalog_mutation())
        return refusal_of(context, operation, decision, record.id)

    def _open_pending_audit(
        self, record: AuditRecord, operations: Sequence[Operation], decisions: Sequence[Decision], operation: Operation
    ) -> PendingAudit:
        allowed = [each.durability for each, decision in zip(operations, decisions, strict=True) if decision.allowed]
        durability = max(allowed, key=_DURABILITY_ORDER.index)
        try:
            return PendingAudit(record, durability, self._audit)
        except AuditUnavailable as full:
            raise audit_unavailable(full, operation.is_catalog_mutation()) from full

    async def _decide(
        self,
        context: RequestContext,
        operations: Sequence[Operation],
        questions: Sequence[PolicyQuestion],
        resolution: Resolution,
        own_roles: Sequence[str],
    ) -> list[Decision]:
        if all(operation.is_public() for operation in operations):
            allow = PolicyAnswer(allow=True)
            return [combine((), allow) for _ in operations]
        if resolution.deactivated:
            return [refused(Failure.USER_DEACTIVATED) for _ in operations]
        demands = [self._preconditions.demands_of(operation) for operation in operations]
        if any(demands) and len(resolution.acting(context.actor).group_roles) > MAX_GROUP_ROLES:
            return [refused(Failure.TOO_MANY_GROUPS) for _ in operations]
        try:
            judged = await self._engines.judge(context, operations, demands, questions, resolution)
            judged = await self._restrictions.settle(context.actor, judged, resolution)
            judged = await self._data.settle(context.actor, operations, judged, resolution, own_roles)
        except DecisionEngineUnavailable as outage:
            return [undecided(Failure.ENGINE_UNAVAILABLE, outage) for _ in operations]
        verdicts = []
        for operation, (answers, policy, undelegated_by) in zip(operations, judged, strict=True):
            shut = in_inactive_warehouse(operation, resolution)
            verdict = enforced(combine(answers, policy), operation.enforced_at(), answers)
            if undelegated_by is not None:
                verdict = undelegated(verdict, answers, undelegated_by)
            verdicts.append(verdict if shut is None else closed(verdict, shut))
        return verdicts
