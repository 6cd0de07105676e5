# SPDX-License-Identifier: Apache-2.0
"""Combine the results of OpenFGA and OPA into one decision. Pure.

Anything but a clear yes of both is a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.demand import Demand
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.obligations.application import EnforcementPoint, unenforced
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import NO_OBLIGATIONS, Obligations


class Outcome(StrEnum):
    """The outcome of a decision."""

    ALLOWED = "allowed"
    HIDDEN = "hidden"
    """The answer is that for an absent object."""
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"


class DeterminedBy(StrEnum):
    """The engine whose result determined the outcome."""

    OPENFGA = "openfga"
    OPA = "opa"
    BOTH = "both"
    NONE = "none"


class Failure(StrEnum):
    """The true reason of a refusal, for the audit. The response may hide it."""

    RESOURCE_NOT_FOUND = "ResourceNotFound"
    CANNOT_SEE_RESOURCE = "CannotSeeResource"
    ACTION_FORBIDDEN = "ActionForbidden"
    DENIED_BY_POLICY = "DeniedByPolicy"
    WAREHOUSE_INACTIVE = "WarehouseNotActive"
    NOT_DELEGATED = "EngineLacksDelegate"
    OUTSIDE_LIMITS = "OutsideDelegateLimits"
    RESTRICTED = "RestrictedWithoutEnforcer"
    UNENFORCED = "ObligationWithoutEnforcer"
    TOO_MANY_GROUPS = "TooManyGroups"
    USER_DEACTIVATED = "UserDeactivated"
    ENGINE_UNAVAILABLE = "InternalAuthorizationError"


@dataclass(frozen=True, slots=True)
class DelegationRefusal:
    """The reason why an engine may not act for the caller: the failure and, for the audit, the limit that refuses
    it.
    """

    failure: Failure
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class DemandAnswer:
    """The result of checking one demand.

    `row` is None if the object is absent. `visible` is True if the caller may see that the object exists, and `holds`
    if the caller has the demanded relation. `partly` is True if the caller has only the column-level relation. In that
    case `restriction` is set if an enforcer acts for the caller. `policies` is the effect of data policies on the
    object, None if no policy applies to it.
    """

    demand: Demand
    row: Resolved | None
    visible: bool
    holds: bool
    partly: bool = False
    restriction: ReadableColumns | None = None
    policies: PolicyVerdict | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one operation.

    `held` are the demanded relations that the caller has, required or optional. `obligations` come from column grants,
    data policies and guardrails; None for a refusal without any. `policies` are the effects of data policies, at most
    one for each object. `outage` is the error of the engine that could not decide; commands print it.
    """

    outcome: Outcome
    determined_by: DeterminedBy
    failure: Failure | None = None
    refused: Demand | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Obligations | None = None
    held: frozenset[tuple[Can, Ref]] = frozenset()
    policies: tuple[PolicyVerdict, ...] = ()
    outage: Exception | None = field(default=None, compare=False)

    @property
    def allowed(self) -> bool:
        """True only if both engines allow the operation."""
        return self.outcome is Outcome.ALLOWED


def combine(answers: Sequence[DemandAnswer], policy: PolicyAnswer) -> Decision:
    """Return the decision: allowed if every required demand holds, at least in part, and the policies allow.

    Of the required demands that fail, the first in the order of the operation determines the result. If an object is
    absent or invisible, the response hides it, whatever else holds. Only callers that see the object receive the
    reasons of policies.
    """
    reasons = tuple(f"{reason.code}: {reason.message}" for reason in policy.reasons)
    denied_too = DeterminedBy.OPENFGA if policy.allow else DeterminedBy.BOTH
    for answer in answers:
        if not answer.demand.required:
            continue
        if answer.row is None:
            return Decision(Outcome.HIDDEN, denied_too, Failure.RESOURCE_NOT_FOUND, answer.demand)
        if not answer.visible:
            return Decision(Outcome.HIDDEN, denied_too, Failure.CANNOT_SEE_RESOURCE, answer.demand)
    for answer in answers:
        if answer.demand.required and not answer.holds and answer.restriction is None:
            failure = Failure.RESTRICTED if answer.partly else Failure.ACTION_FORBIDDEN
            return Decision(Outcome.FORBIDDEN, denied_too, failure, answer.demand)
    if not policy.allow:
        first = next((answer.demand for answer in answers if answer.demand.required), None)
        return Decision(Outcome.FORBIDDEN, DeterminedBy.OPA, Failure.DENIED_BY_POLICY, first, reasons)
    held = frozenset((a.demand.relation, a.demand.on) for a in answers if a.row is not None and a.visible and a.holds)
    columns = Obligations.of(*(a.restriction for a in answers if a.restriction is not None))
    verdicts = tuple({a.policies.object_id: a.policies for a in answers if a.policies is not None}.values())
    data = Obligations.of(*(each.restrictions for each in verdicts if each.restrictions is not None))
    partly = {(a.demand.restricted, a.demand.on) for a in answers if a.restriction is not None and a.demand.restricted}
    return Decision(
        Outcome.ALLOWED,
        DeterminedBy.BOTH if answers else DeterminedBy.OPA,
        policy_reasons=reasons,
        obligations=policy.obligations.merged(columns, data),
        held=held | partly,
        policies=verdicts,
    )


def all_of(decisions: Sequence[Decision]) -> Decision:
    """Return the decision on several parts.

    It is the first refusal; if there is none, an allow with the strictest obligations of all parts.
    """
    if len(decisions) == 1:
        return decisions[0]
    for decision in decisions:
        if not decision.allowed:
            return decision
    by = {decision.determined_by for decision in decisions}
    return Decision(
        Outcome.ALLOWED,
        by.pop() if len(by) == 1 else DeterminedBy.BOTH,
        policy_reasons=tuple(dict.fromkeys(reason for each in decisions for reason in each.policy_reasons)),
        obligations=NO_OBLIGATIONS.merged(*(each.obligations for each in decisions if each.obligations is not None)),
        held=frozenset().union(*(each.held for each in decisions)),
        policies=tuple({each.object_id: each for decision in decisions for each in decision.policies}.values()),
    )


def enforced(
    decision: Decision, enforcement_point: EnforcementPoint | None, answers: Sequence[DemandAnswer]
) -> Decision:
    """Return the decision. Turn it into a refusal if it has an obligation that nothing enforces at `enforcement_point`.

    Data policies need an enforcer wherever the caller may read data. A caller that may only describe a table loads it
    without an enforcer: `gateway.features.tables.tables` then leaves out what reveals data.
    """
    if not decision.allowed or enforcement_point is None:
        return decision
    first = next((answer.demand for answer in answers if answer.demand.required), None)
    restricting = [each for each in decision.policies if each.restricts]
    if enforcement_point is EnforcementPoint.DESCRIBE or (
        enforcement_point is EnforcementPoint.LOAD and not _reads(decision)
    ):
        restricting = []
    if any(not each.trusted and not each.inexpressible for each in restricting):
        return Decision(
            Outcome.FORBIDDEN, DeterminedBy.OPENFGA, Failure.RESTRICTED, first, obligations=decision.obligations
        )
    why = next((each.reason for each in restricting if each.inexpressible), None)
    if why is None and decision.obligations is not None:
        why = unenforced(decision.obligations, enforcement_point)
    if why is None:
        return decision
    return Decision(
        Outcome.FORBIDDEN, DeterminedBy.OPA, Failure.UNENFORCED, first, (why,), obligations=decision.obligations
    )


def _reads(decision: Decision) -> bool:
    """Return True if the decision lets the caller read data of a table, completely or in part."""
    return any(relation in (Can.READ_DATA, Can.READ_COLUMNS) for relation, _ in decision.held)


def closed(decision: Decision, demand: Demand) -> Decision:
    """Return the refusal for an object in an inactive warehouse.

    A caller that sees the object gets WarehouseNotActive; for others the object is hidden. The audit records the
    inactive warehouse as the reason, unless the object is hidden from the caller anyway. A decision that an engine
    could not make stays unavailable.
    """
    if decision.outcome in (Outcome.HIDDEN, Outcome.UNAVAILABLE):
        return decision
    return Decision(Outcome.HIDDEN, DeterminedBy.NONE, Failure.WAREHOUSE_INACTIVE, demand)


def undelegated(decision: Decision, answers: Sequence[DemandAnswer], refusal: DelegationRefusal) -> Decision:
    """Return the refusal for an engine that may not act for the user on the object: the object is hidden.

    The response does not depend on the user's rights. Otherwise an engine could name users to learn which objects exist
    in warehouses that it has no delegation for. An operation without a required demand is forbidden instead.
    """
    if decision.outcome in (Outcome.HIDDEN, Outcome.UNAVAILABLE):
        return decision
    first = next((answer.demand for answer in answers if answer.demand.required), None)
    outcome = Outcome.FORBIDDEN if first is None else Outcome.HIDDEN
    # FORBIDDEN gets no limit: a 403 contains the reasons, which would tell the engine that the user is an
    # administrator.
    limit = () if first is None or refusal.limit is None else (refusal.limit,)
    return Decision(outcome, DeterminedBy.OPENFGA, refusal.failure, first, limit)


def refused(failure: Failure) -> Decision:
    """Return the refusal of any operation of a caller that has too many groups, or is deactivated."""
    return Decision(Outcome.FORBIDDEN, DeterminedBy.NONE, failure)


def undecided(failure: Failure, outage: Exception | None = None) -> Decision:
    """Return the refusal of an operation that could not be decided because of the error `outage` of an engine."""
    return Decision(Outcome.UNAVAILABLE, DeterminedBy.NONE, failure, outage=outage)
