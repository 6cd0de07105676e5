# SPDX-License-Identifier: Apache-2.0
"""Combining what OpenFGA and OPA said into one verdict. Pure; everything that is not a clear yes is a no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.access.demand import Demand
from gateway.access.policy import Obligations, PolicyAnswer, strictest
from gateway.access.refs import Ref
from gateway.access.relations import Can
from gateway.access.resolved import Resolved


class Outcome(StrEnum):
    """How an operation was decided."""

    ALLOWED = "allowed"
    HIDDEN = "hidden"
    """Answered as if the object did not exist."""
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"


class DeterminedBy(StrEnum):
    """Which engine's answer made the outcome what it is."""

    OPENFGA = "openfga"
    OPA = "opa"
    BOTH = "both"
    NONE = "none"


class Failure(StrEnum):
    """The true reason of a refusal, for the audit; the answer may hide it."""

    RESOURCE_NOT_FOUND = "ResourceNotFound"
    CANNOT_SEE_RESOURCE = "CannotSeeResource"
    ACTION_FORBIDDEN = "ActionForbidden"
    DENIED_BY_POLICY = "DeniedByPolicy"
    NOT_AUTHENTICATED = "NotAuthenticated"
    WAREHOUSE_INACTIVE = "WarehouseNotActive"
    NOT_DELEGATED = "EngineLacksDelegate"
    RESTRICTED = "RestrictedWithoutEnforcer"
    TOO_MANY_GROUPS = "TooManyGroups"
    USER_DEACTIVATED = "UserDeactivated"
    ENGINE_UNAVAILABLE = "InternalAuthorizationError"


@dataclass(frozen=True, slots=True)
class Restriction:
    """What of a table may be read, and what an engine is told to hold back: the field ids of columns of the current
    schema, never none, and the member `read-restrictions` of a load's answer (empty when nothing is left to hold back).
    Both were made of the document at `metadata_location`; they are compared without it.
    """

    fields: frozenset[int]
    told: bytes
    metadata_location: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class DemandAnswer:
    """What is known about one demand: the row (None if absent), whether the caller sees it, whether the relation
    holds, or else `partly` the one that serves under a `restriction`, which is there when an engine is trusted with it.
    """

    demand: Demand
    row: Resolved | None
    visible: bool
    holds: bool
    partly: bool = False
    restriction: Restriction | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One operation's verdict. `held` are the demands that hold, required or merely asked; `restrictions` what some of
    them hold under.
    """

    outcome: Outcome
    determined_by: DeterminedBy
    failure: Failure | None = None
    refused: Demand | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Obligations | None = None
    held: frozenset[tuple[Can, Ref]] = frozenset()
    restrictions: tuple[tuple[Ref, Restriction], ...] = ()

    @property
    def allowed(self) -> bool:
        """True only for a clear yes of everybody who was asked."""
        return self.outcome is Outcome.ALLOWED


def combine(answers: Sequence[DemandAnswer], policy: PolicyAnswer) -> Decision:
    """Allowed when every required demand holds and the policies allow.

    The first required demand that fails decides what the caller is told, in the order the operation lists them: an
    object that is absent or invisible is hidden whatever else holds; policies are told of only to callers who see the
    object.
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
    restrictions = {a.demand.on: a.restriction for a in answers if a.restriction is not None}
    partly = {(a.demand.restricted, a.demand.on) for a in answers if a.restriction is not None and a.demand.restricted}
    return Decision(
        Outcome.ALLOWED,
        DeterminedBy.BOTH if answers else DeterminedBy.OPA,
        policy_reasons=reasons,
        obligations=policy.obligations,
        held=held | partly,
        restrictions=tuple(restrictions.items()),
    )


def all_of(decisions: Sequence[Decision]) -> Decision:
    """The verdict on what consists of several: the first refusal, or allowed with the strictest obligations of all."""
    for decision in decisions:
        if not decision.allowed:
            return decision
    by = {decision.determined_by for decision in decisions}
    return Decision(
        Outcome.ALLOWED,
        by.pop() if len(by) == 1 else DeterminedBy.BOTH,
        policy_reasons=tuple(dict.fromkeys(reason for each in decisions for reason in each.policy_reasons)),
        obligations=strictest([each.obligations for each in decisions if each.obligations is not None]),
        held=frozenset().union(*(each.held for each in decisions)),
        restrictions=tuple({ref: one for each in decisions for ref, one in each.restrictions}.items()),
    )


def closed(decision: Decision, demand: Demand) -> Decision:
    """The verdict on what lies in a warehouse that is not active: it is not there, and who would have been told more
    is told why.
    """
    if decision.outcome in (Outcome.HIDDEN, Outcome.UNAVAILABLE):
        return decision
    return Decision(Outcome.HIDDEN, DeterminedBy.NONE, Failure.WAREHOUSE_INACTIVE, demand)


def undelegated(decision: Decision, answers: Sequence[DemandAnswer]) -> Decision:
    """The verdict on what an engine asks for in the name of somebody it may not act for there: nothing is there.

    Whatever the user may see: else an engine could learn by naming one user after another what exists in warehouses
    that it has nothing to do with.
    """
    if decision.outcome in (Outcome.HIDDEN, Outcome.UNAVAILABLE):
        return decision
    first = next((answer.demand for answer in answers if answer.demand.required), None)
    outcome = Outcome.FORBIDDEN if first is None else Outcome.HIDDEN
    return Decision(outcome, DeterminedBy.OPENFGA, Failure.NOT_DELEGATED, first)


def refused(failure: Failure) -> Decision:
    """The verdict on a caller who is refused whatever it is that is asked for: one who brings more than can be asked
    about, or who was deactivated.
    """
    return Decision(Outcome.FORBIDDEN, DeterminedBy.NONE, failure)


def undecided(failure: Failure) -> Decision:
    """The verdict when nobody could decide: a refusal that says so."""
    return Decision(Outcome.UNAVAILABLE, DeterminedBy.NONE, failure)
