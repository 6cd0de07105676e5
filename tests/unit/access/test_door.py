# SPDX-License-Identifier: Apache-2.0
"""The door: its checks are equal for present and absent objects, and no failure allows a request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.authz_errors import NotAuthenticated
from gateway.access.nouns.refs import UNUSED_ID, ObjectKey, ObjectType, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.grants import READ_ASSIGNMENTS
from gateway.access.operations.server import GetHealth
from gateway.access.operations.tables import CreateTable, DropTable, ListTables, LoadTable, TableExists
from gateway.access.ports import Pin, Question
from gateway.iceberg.codec import decode
from gateway.iceberg.errors import BadRequestException, CatalogError
from gateway.iceberg.wire import CreateTableRequest
from gateway.obligations.kinds import CredentialLife
from gateway.obligations.merging import Obligations
from tests.support.door import world
from tests.support.door.world import DENIED, DoorFixture, Judge, MemoryAudit, request_context

(_READ_TABLE_ASSIGNMENTS,) = (each for each in READ_ASSIGNMENTS if each.__name__ == "ReadTableAssignments")

LOAD, VEND, DROP = LoadTable(world.TABLE), VendCredentials(world.TABLE), DropTable(world.TABLE)
CREATE = CreateTable(
    world.NAMESPACE, decode(b'{"name": "t", "schema": {"type": "struct", "fields": []}}', CreateTableRequest)
)
KEYS = VendCreationCredentials(world.NAMESPACE, "t")

SEES = Can.INCLUDE_IN_LIST


def only(*relations: Can) -> Judge:
    """Return relationships in which every user has exactly these relations on everything."""
    return Judge(lambda question: question.relation in relations)


async def refusal(door_fixture: DoorFixture, operation: Operation) -> CatalogError:
    """Return the refusal of `operation`; check that it leaves no permit and no audit builder."""
    at = request_context()
    with pytest.raises(CatalogError) as raised:
        await door_fixture.door.admit(at, operation)
    assert (at.admitted, at.pending_audits) == (set(), [])
    return raised.value


# ---- absent and invisible ----


@pytest.mark.threat("LG-DIS-01")
@pytest.mark.parametrize(
    "operation", [LOAD, DROP, VEND, TableExists(world.TABLE), ListTables(world.NAMESPACE), CREATE, KEYS]
)
async def test_absent_and_invisible_objects_give_the_same_response_and_checks(operation: Operation) -> None:
    invisible, absent = DoorFixture(judge=only()), DoorFixture(judge=only())
    absent.resolver.rows.clear()
    first, second = await refusal(invisible, operation), await refusal(absent, operation)
    assert (type(first), first.message, first.detail) == (type(second), second.message, second.detail)
    assert first.code == 404
    requested, stood_in = invisible.judge.calls, absent.judge.calls
    assert [[q.relation for q in each] for each in requested] == [[q.relation for q in each] for each in stood_in]
    assert {q.object.id[:24] for each in stood_in for q in each} == {UNUSED_ID[:24]}
    assert len(invisible.rules.calls) == len(absent.rules.calls) == 1
    assert len(invisible.resolver.calls) == len(absent.resolver.calls) == 1
    assert [len(door_fixture.audit.buffered) for door_fixture in (invisible, absent)] == [1, 1]


async def test_the_audit_records_the_reason_that_the_response_hides() -> None:
    invisible, absent = DoorFixture(judge=only()), DoorFixture(judge=only())
    absent.resolver.rows.clear()
    await refusal(invisible, LOAD)
    await refusal(absent, LOAD)
    [[seen], [gone]] = [
        [d for r in door_fixture.audit.buffered for d in r.decisions] for door_fixture in (invisible, absent)
    ]
    assert (seen.outcome, seen.failure) == ("hidden", "CannotSeeResource")
    assert (gone.outcome, gone.failure) == ("hidden", "ResourceNotFound")
    assert seen.resources[0].id == str(world.TABLE_ID)
    assert gone.resources[0].id is None


async def test_an_allow_on_the_placeholder_id_does_not_reveal_an_absent_object() -> None:
    """Absent objects stay hidden even if a caller holds a relation on the placeholder id."""
    door_fixture = DoorFixture()
    door_fixture.resolver.rows.clear()
    assert (await refusal(door_fixture, LOAD)).code == 404


async def test_a_policy_reason_is_shown_only_to_callers_with_visibility() -> None:
    blind, seeing = DoorFixture(judge=only()), DoorFixture(judge=only(SEES, Can.DROP))
    blind.rules.answer = seeing.rules.answer = DENIED
    assert "closed" not in (await refusal(blind, DROP)).message
    error = await refusal(seeing, DROP)
    assert (error.code, "The house is closed." in error.message) == (403, True)


async def test_visibility_does_not_permit_the_operation() -> None:
    assert (await refusal(DoorFixture(judge=only(SEES)), DROP)).code == 403


async def test_a_holder_of_the_demanded_relation_sees_the_object() -> None:
    """`manage_grants` gives access to the grants of an otherwise invisible object."""
    door_fixture = DoorFixture(judge=only(Can.READ_ASSIGNMENTS))
    operation = _READ_TABLE_ASSIGNMENTS(TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID))
    await door_fixture.door.admit(request_context(), operation)
    assert (await refusal(DoorFixture(judge=only(Can.READ_ASSIGNMENTS)), LOAD)).code == 404


# ---- failures ----


class Broken:
    """A decision engine that returns the same wrong value for every check."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> Any:
        return self._given(len(questions))

    async def decide(self, request: PolicyRequest) -> Any:
        return self._given(len(request.questions))

    def _given(self, number: int) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer(number)


DOWN = DecisionEngineUnavailable("down")
ALLOW = PolicyAnswer(allow=True)


@pytest.mark.threat("LG-DEC-19")
@pytest.mark.parametrize(("operation", "code"), [(LOAD, 503), (VEND, 503), (DROP, 429), (CREATE, 429)])
@pytest.mark.parametrize(
    ("relationships", "policies"),
    [
        (Broken(DOWN), None),
        (None, Broken(DOWN)),
        (Broken(DOWN), Broken(DOWN)),
        (Broken(lambda number: [True] * (number - 1)), None),
        (Broken(lambda number: [True] * (number + 1)), None),
        (Broken(lambda number: []), None),
        (None, Broken(lambda number: ())),
        (None, Broken(lambda number: (ALLOW,) * (number + 1))),
    ],
    ids=[
        "openfga down",
        "opa down",
        "both down",
        "one answer missing",
        "one answer too many",
        "no answers",
        "no policy answers",
        "one policy answer too many",
    ],
)
async def test_no_failure_of_a_decision_engine_allows_a_request(
    operation: Operation, code: int, relationships: Any, policies: Any
) -> None:
    door_fixture = DoorFixture()
    door_fixture.judge = relationships or door_fixture.judge
    door_fixture.rules = policies or door_fixture.rules
    error = await refusal(door_fixture, operation)
    assert (error.code, error.type) == (code, "AuthorizationBackendError")
    [record] = door_fixture.audit.buffered
    assert (record.outcome, record.decisions[0].failure) == ("unavailable", "InternalAuthorizationError")


async def test_the_engine_that_failed_is_the_cause_of_the_refusal() -> None:
    door_fixture = DoorFixture()
    door_fixture.judge = Broken(DOWN)  # type: ignore[assignment]
    assert (await refusal(door_fixture, LOAD)).__cause__ is DOWN


@pytest.mark.parametrize("truthy", [1, "yes", "false", [False], object(), {"allowed": True}])
async def test_a_truthy_value_other_than_true_is_not_an_allow(truthy: Any) -> None:
    door_fixture = DoorFixture()
    door_fixture.judge = Broken(lambda number: [truthy] * number)  # type: ignore[assignment]  # an invalid answer of an adapter
    assert (await refusal(door_fixture, LOAD)).code == 404


async def test_an_unexpected_engine_error_does_not_allow_a_request() -> None:
    door_fixture = DoorFixture()
    door_fixture.judge = Broken(ZeroDivisionError())  # type: ignore[assignment]  # an invalid answer of an adapter
    at = request_context()
    with pytest.raises(BaseExceptionGroup) as raised:
        await door_fixture.door.admit(at, LOAD)
    assert raised.group_contains(ZeroDivisionError)
    assert (at.admitted, door_fixture.audit.buffered) == (set(), [])


async def test_a_check_with_an_invalid_id_fails_with_its_own_error() -> None:
    """A user id that exceeds the limit of OpenFGA is a 400 for the caller, not a server fault."""
    door_fixture = DoorFixture()
    door_fixture.judge = Broken(BadRequestException("The id is too long."))  # type: ignore[assignment]  # an invalid answer of an adapter
    error = await refusal(door_fixture, LOAD)
    assert (error.code, error.message) == (400, "The id is too long.")


@pytest.mark.parametrize("down", ["judge", "rules"])
async def test_an_outage_of_one_engine_does_not_wait_for_the_other(down: str) -> None:
    requested, gone = asyncio.Event(), asyncio.Event()

    class Endless:
        async def __call__(self, *_: Any, **__: Any) -> Any:
            requested.set()
            try:
                await asyncio.sleep(60)
            finally:
                gone.set()

        check = decide = __call__

    class Failing:
        async def __call__(self, *_: Any, **__: Any) -> Any:
            await requested.wait()
            raise DOWN

        check = decide = __call__

    door_fixture = DoorFixture()
    door_fixture.judge = Failing() if down == "judge" else Endless()  # type: ignore[assignment]  # an invalid answer of an adapter
    door_fixture.rules = Failing() if down == "rules" else Endless()  # type: ignore[assignment]  # an invalid answer of an adapter
    async with asyncio.timeout(30):
        assert (await refusal(door_fixture, LOAD)).code == 503
    assert gone.is_set()


async def test_both_engines_are_called_concurrently() -> None:
    both = asyncio.Barrier(2)

    class Meeting:
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            await both.wait()
            return [True] * len(questions)

        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            await both.wait()
            return (ALLOW,) * len(request.questions)

    door_fixture = DoorFixture()
    door_fixture.judge = door_fixture.rules = Meeting()  # type: ignore[assignment]  # it is both
    async with asyncio.timeout(30):
        permit = await door_fixture.door.admit(request_context(), LOAD)
    assert permit.operation == LOAD


# ---- the audit ----


@pytest.mark.parametrize(("operation", "code"), [(LOAD, 503), (ListTables(world.NAMESPACE), 503)])
async def test_an_operation_without_an_audit_record_is_refused(operation: Operation, code: int) -> None:
    door_fixture = DoorFixture(audit=MemoryAudit(full=True))
    assert (await refusal(door_fixture, operation)).code == code


async def test_a_refusal_without_an_audit_record_discloses_nothing_about_the_object() -> None:
    answers = []
    for judge in (only(), only(SEES)):
        answers.append(await refusal(DoorFixture(audit=MemoryAudit(full=True), judge=judge), DROP))
    assert {(error.code, error.message) for error in answers} == {(429, answers[0].message)}


async def test_reads_settle_when_buffered_and_changes_only_when_durable() -> None:
    door_fixture = DoorFixture()
    for operation, settled in ((LOAD, True), (VEND, False), (DROP, False)):
        at = request_context()
        permit = await door_fixture.door.admit(at, operation)
        assert permit.pending_audit.settled is settled
        assert at.may_answer(frozenset({type(operation)})) is settled
    assert [record.operation for record in door_fixture.audit.buffered] == ["load_table"]


async def test_the_strictest_durability_of_the_allowed_operations_applies() -> None:
    door_fixture = DoorFixture()
    permit, keys = await door_fixture.door.admit_with(request_context(), LOAD, VEND)
    assert keys is not None
    assert permit.pending_audit is keys.pending_audit
    assert not permit.pending_audit.settled
    refused = DoorFixture(judge=only(SEES, Can.GET_METADATA))
    permit, keys = await refused.door.admit_with(request_context(), LOAD, VEND)
    assert keys is None
    assert permit.pending_audit.settled, "a load without credentials must not wait for the audit"


# ---- two operations in one round ----


async def test_a_refused_optional_operation_leaves_the_required_one_allowed() -> None:
    door_fixture, at = DoorFixture(judge=only(SEES, Can.GET_METADATA)), request_context()
    permit, keys = await door_fixture.door.admit_with(at, LOAD, VEND)
    assert permit.operation is LOAD
    assert keys is None
    assert at.admitted == {LoadTable}
    assert not at.may_answer(frozenset({VendCredentials}))
    [record] = door_fixture.audit.buffered
    assert [(each.operation, each.outcome) for each in record.decisions] == [
        ("load_table", "allowed"),
        ("vend_credentials", "forbidden"),
    ]


async def test_a_policy_may_refuse_only_the_credentials() -> None:
    class KeepKeys:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            return tuple(PolicyAnswer(allow=question.operation != "vend_credentials") for question in request.questions)

    door_fixture = DoorFixture()
    door_fixture.rules = KeepKeys()  # type: ignore[assignment]  # another policy
    permit, keys = await door_fixture.door.admit_with(request_context(), LOAD, VEND)
    assert permit.operation is LOAD
    assert keys is None


async def test_the_required_operation_decides_regardless_of_the_optional_one() -> None:
    door_fixture = DoorFixture(judge=only(Can.READ_DATA))
    with pytest.raises(CatalogError) as raised:
        await door_fixture.door.admit_with(request_context(), LOAD, VEND)
    assert raised.value.code == 404


async def test_two_operations_need_one_round_of_checks() -> None:
    door_fixture = DoorFixture()
    await door_fixture.door.admit_with(request_context(), CREATE, KEYS)
    assert len(door_fixture.resolver.calls) == len(door_fixture.judge.calls) == len(door_fixture.rules.calls) == 1
    assert len(door_fixture.judge.calls[0]) == len(set(door_fixture.judge.calls[0])), "no check may be sent twice"
    assert [question.operation for question in door_fixture.rules.calls[0].questions] == [
        "create_table",
        "vend_creation_credentials",
    ]


async def test_obligations_apply_only_to_their_own_operation() -> None:
    class Shorten:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            return tuple(
                PolicyAnswer(allow=True, obligations=Obligations.of(CredentialLife(900 + index)))
                for index, _ in enumerate(request.questions)
            )

    door_fixture = DoorFixture()
    door_fixture.rules = Shorten()  # type: ignore[assignment]  # another policy
    permit, keys = await door_fixture.door.admit_with(request_context(), LOAD, VEND)
    assert keys is not None
    assert (permit.obligations, keys.obligations) == (
        Obligations.of(CredentialLife(900)),
        Obligations.of(CredentialLife(901)),
    )


# ---- permits ----


async def test_an_optional_demand_does_not_decide_admission() -> None:
    reader = await DoorFixture(judge=only(SEES, Can.READ_DATA)).door.admit(request_context(), VEND)
    writer = await DoorFixture(judge=only(SEES, Can.READ_DATA, Can.WRITE_DATA)).door.admit(request_context(), VEND)
    assert not reader.holds(Can.WRITE_DATA, world.TABLE)
    assert writer.holds(Can.WRITE_DATA, world.TABLE)
    assert not writer.holds(Can.DROP, world.TABLE), "a right that was not checked must not be held"


async def test_a_public_operation_causes_no_checks() -> None:
    door_fixture = DoorFixture()
    await door_fixture.door.admit(request_context(Actor.anonymous()), GetHealth())
    assert (door_fixture.judge.calls, door_fixture.rules.calls) == ([], [])


async def test_a_request_without_a_token_causes_no_lookup() -> None:
    door_fixture = DoorFixture()
    for operation in (LOAD, DROP):
        with pytest.raises(NotAuthenticated):
            await door_fixture.door.admit(request_context(Actor.anonymous()), operation)
    with pytest.raises(NotAuthenticated):
        await door_fixture.door.admit_with(request_context(Actor.anonymous()), GetHealth(), VEND)
    assert (door_fixture.resolver.calls, door_fixture.judge.calls, door_fixture.audit.buffered) == ([], [], [])


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from([SEES, Can.GET_METADATA, Can.READ_DATA, Can.WRITE_DATA, Can.DROP])),
    st.booleans(),
    st.booleans(),
)
async def test_no_combination_of_engine_answers_allows_more_than_granted(
    held: set[Can], there: bool, allowed: bool
) -> None:
    door_fixture = DoorFixture(judge=only(*held))
    door_fixture.rules.answer = PolicyAnswer(allow=allowed)
    if not there:
        door_fixture.resolver.rows.clear()
    for operation, needs in ((LOAD, Can.GET_METADATA), (VEND, Can.READ_DATA), (DROP, Can.DROP)):
        try:
            permit: object = await door_fixture.door.admit(request_context(), operation)
        except CatalogError:
            permit = None
        assert (permit is not None) is (there and allowed and needs in held)


# ---- lists ----


@pytest.mark.threat("LG-DIS-12")
async def test_a_filtered_list_keeps_its_order_and_is_complete_or_fails() -> None:
    keys = [ObjectKey(ObjectType.TABLE, str(uuid4())) for _ in range(5)]
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), ListTables(world.NAMESPACE))
    door_fixture.judge.answer = lambda question: keys.index(question.object) % 2 == 0
    assert await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, keys) == [True, False, True, False, True]
    requested = len(door_fixture.judge.calls)
    assert await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, []) == []
    assert len(door_fixture.judge.calls) == requested, "an empty list must cause no check"
    door_fixture.judge = Broken(DOWN)  # type: ignore[assignment]  # a substitute that fails
    with pytest.raises(CatalogError) as raised:
        await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, keys)
    assert raised.value.code == 503


@pytest.mark.parametrize(
    "broken", [lambda n: [True] * (n - 1), lambda n: [True] * (n + 1), lambda n: ["yes"] * n, lambda n: [1] * n]
)
async def test_a_filter_rejects_a_wrong_number_of_answers_and_truthy_values(broken: Any) -> None:
    keys = [ObjectKey(ObjectType.TABLE, str(uuid4())) for _ in range(3)]
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), ListTables(world.NAMESPACE))
    door_fixture.judge = Broken(broken)  # type: ignore[assignment]  # an invalid answer of an adapter
    try:
        seen = await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, keys)
    except CatalogError as refused:
        assert refused.code == 503
    else:
        assert seen == [False] * 3
