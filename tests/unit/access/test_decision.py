# SPDX-License-Identifier: Apache-2.0
"""Combination of answers: every required demand on a visible object, and the policies, must allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.decisions.decision import Decision, DemandAnswer, DeterminedBy, Failure, Outcome, combine, undecided
from gateway.access.decisions.policy import PolicyAnswer, Reason
from gateway.access.demand import Demand
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.door._mint import mint
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.door.permit import Permit
from gateway.access.door.refusals import refusal_of
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Durability
from gateway.access.operations.tables import LoadTable
from gateway.obligations.kinds import NoVending
from gateway.obligations.merging import Obligations
from tests.support.door import world
from tests.support.rows.audit_records import allowed_record

demand_answers = st.builds(
    DemandAnswer,
    demand=st.builds(
        Demand,
        relation=st.sampled_from([Can.DROP, Can.GET_METADATA, Can.READ_DATA]),
        on=st.sampled_from([world.TABLE, world.NAMESPACE, world.WAREHOUSE]),
        required=st.booleans(),
    ),
    row=st.sampled_from([None, world.table_row, world.inner_row]),
    visible=st.booleans(),
    holds=st.booleans(),
)
policies = st.builds(
    PolicyAnswer,
    allow=st.booleans(),
    reasons=st.lists(st.builds(Reason, code=st.just("late"), message=st.text(max_size=5)), max_size=2).map(tuple),
    obligations=st.sampled_from([Obligations(), Obligations.of(NoVending())]),
)


def _is_yes(answer: DemandAnswer) -> bool:
    return answer.row is not None and answer.visible and answer.holds


@pytest.mark.threat("LG-DEC-17")
@given(st.lists(demand_answers, max_size=5), policies)
def test_a_request_is_allowed_only_if_every_required_demand_and_policy_allows_it(
    answers: list[DemandAnswer], policy: PolicyAnswer
) -> None:
    decision = combine(answers, policy)
    required = [answer for answer in answers if answer.demand.required]
    assert decision.allowed is (policy.allow and all(_is_yes(answer) for answer in required))
    assert decision.outcome in (Outcome.ALLOWED, Outcome.HIDDEN, Outcome.FORBIDDEN)
    assert (decision.failure is None) is decision.allowed
    assert (decision.obligations is not None) is decision.allowed


@given(st.lists(demand_answers, max_size=5), policies)
def test_one_absent_or_invisible_object_hides_the_whole_refusal(
    answers: list[DemandAnswer], policy: PolicyAnswer
) -> None:
    decision = combine(answers, policy)
    unseen = [a.demand for a in answers if a.demand.required and (a.row is None or not a.visible)]
    assert (decision.outcome is Outcome.HIDDEN) is bool(unseen)
    if unseen:
        assert decision.refused == unseen[0]
        assert decision.policy_reasons == (), "policy reasons must be hidden from callers without visibility"


@given(st.lists(demand_answers, max_size=5), policies)
def test_a_decision_holds_only_the_demands_that_were_allowed(answers: list[DemandAnswer], policy: PolicyAnswer) -> None:
    decision = combine(answers, policy)
    clear = {(answer.demand.relation, answer.demand.on) for answer in answers if _is_yes(answer)}
    assert decision.held == (clear if decision.allowed else frozenset())


@given(st.lists(demand_answers, max_size=4), policies, st.permutations(range(4)))
def test_the_verdict_does_not_depend_on_the_order_of_demands(
    answers: list[DemandAnswer], policy: PolicyAnswer, order: list[int]
) -> None:
    shuffled = [answers[index] for index in order if index < len(answers)]
    assert combine(shuffled, policy).outcome is combine(answers, policy).outcome


def _answer(*, row: bool = True, visible: bool = True, holds: bool = True) -> DemandAnswer:
    return DemandAnswer(Demand(Can.DROP, world.TABLE), world.table_row if row else None, visible, holds)


@pytest.mark.parametrize(
    ("answer", "policy", "outcome", "failure", "by"),
    [
        (_answer(), True, Outcome.ALLOWED, None, DeterminedBy.BOTH),
        (_answer(row=False), True, Outcome.HIDDEN, Failure.RESOURCE_NOT_FOUND, DeterminedBy.OPENFGA),
        (_answer(visible=False), True, Outcome.HIDDEN, Failure.CANNOT_SEE_RESOURCE, DeterminedBy.OPENFGA),
        (_answer(holds=False), True, Outcome.FORBIDDEN, Failure.ACTION_FORBIDDEN, DeterminedBy.OPENFGA),
        (_answer(), False, Outcome.FORBIDDEN, Failure.DENIED_BY_POLICY, DeterminedBy.OPA),
        (_answer(row=False), False, Outcome.HIDDEN, Failure.RESOURCE_NOT_FOUND, DeterminedBy.BOTH),
        (_answer(holds=False), False, Outcome.FORBIDDEN, Failure.ACTION_FORBIDDEN, DeterminedBy.BOTH),
    ],
)
def test_the_decision_records_the_true_failure_and_its_engine(
    answer: DemandAnswer, policy: bool, outcome: Outcome, failure: Failure | None, by: DeterminedBy
) -> None:
    decision = combine([answer], PolicyAnswer(allow=policy))
    assert (decision.outcome, decision.failure, decision.determined_by) == (outcome, failure, by)


def test_a_missing_answer_is_a_refusal() -> None:
    decision = undecided(Failure.ENGINE_UNAVAILABLE)
    assert not decision.allowed
    assert decision.outcome is Outcome.UNAVAILABLE


def test_the_engine_that_failed_is_named_to_commands_and_not_to_callers() -> None:
    outage = DecisionEngineUnavailable("OPA rejected the gateway's token")
    refusal = refusal_of(
        RequestContext(actor=world.ALICE, request_id="r"),
        LoadTable(world.TABLE),
        undecided(Failure.ENGINE_UNAVAILABLE, outage),
    )
    assert refusal.__cause__ is outage and "OPA" not in refusal.message


# ---- permits ----


def _pending_audit() -> PendingAudit:
    record = allowed_record(world.TABLE_ID, world.NOW, request_id="r")
    return PendingAudit(record, Durability.WITH_CHANGE, world.MemoryAudit())


def _minted(decision: Decision) -> Permit[LoadTable]:
    return mint(
        LoadTable(world.TABLE),
        actor=world.ALICE,
        decision=decision,
        resolution=Resolution(rows={}, now=world.NOW),
        pending_audit=_pending_audit(),
        request_id="r",
    )


def test_a_permit_cannot_be_constructed_directly() -> None:
    with pytest.raises(TypeError, match="comes from Door.admit"):
        Permit()
    with pytest.raises(TypeError):
        Permit(LoadTable(world.TABLE))  # type: ignore[call-arg]  # the forbidden call


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.ALLOWED])
def test_a_refused_decision_cannot_be_minted(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match=f"the decision has the outcome {outcome}"):
        _minted(Decision(outcome, DeterminedBy.NONE))


def test_a_permit_is_immutable() -> None:
    permit = _minted(Decision(Outcome.ALLOWED, DeterminedBy.BOTH))
    for name in ("operation", "actor", "obligations", "extra"):
        with pytest.raises(AttributeError):
            setattr(permit, name, None)


def test_a_permit_holds_nothing_that_was_not_decided() -> None:
    permit = _minted(Decision(Outcome.ALLOWED, DeterminedBy.BOTH))
    assert not permit.holds(Can.GET_METADATA, world.TABLE)
    with pytest.raises(LookupError, match="LoadTable was not admitted on"):
        permit.table(world.TABLE)
    with pytest.raises(LookupError):
        permit.warehouse(world.WAREHOUSE)
