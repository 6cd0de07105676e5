# SPDX-License-Identifier: Apache-2.0
"""Hypothetical checks: decisions of the door about another principal, by both engines."""

from __future__ import annotations

import pytest

from gateway.access.actor import Actor, ActorKind
from gateway.access.authz_errors import DecisionUnavailable
from gateway.access.hypothetical_evaluation import HypotheticalCheck
from gateway.access.operations.checks import BatchCheck, Check
from gateway.access.policy import PolicyAnswer, PolicyRequest, Reason
from gateway.access.refs import ObjectKey, ObjectType, Table, TabularRef
from gateway.access.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from tests.access import world
from tests.access.world import House, request_context

ON = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
BOB = Actor.user(world.BOB_ID)
READ = HypotheticalCheck(BOB, Can.READ_DATA, ON)
DROP = HypotheticalCheck(BOB, Can.DROP, ON, {"purge": True})


async def _would(house: House, *supposed: HypotheticalCheck) -> list[bool]:
    checks = tuple(Check(each.on, each.relation, Principal(PrincipalType.USER, world.BOB_ID)) for each in supposed)
    permit = await house.door.admit(request_context(), BatchCheck(checks))
    house.rules.asked.clear()
    house.judge.asked.clear()
    house.resolver.asked.clear()
    return await house.door.hypothetical_checks.would(permit, supposed)


async def test_hypothetical_policy_checks_name_the_checked_user_in_one_call() -> None:
    house = House()
    house.resolver.roles = ("a-role",)
    assert await _would(house, READ, DROP) == [True, True]
    (asked,) = house.rules.asked
    assert (asked.actor.id, asked.actor.kind, asked.actor.roles) == (world.BOB_ID, "user", ("a-role",))
    assert [question.operation for question in asked.questions] == ["vend_credentials", "drop_table"]
    assert asked.questions[1].facts == {"purge": True}
    assert asked.questions[0].resource.name == "orders"
    assert len(house.judge.asked) == 1


async def test_hypothetical_checks_of_another_user_omit_the_request_context() -> None:
    house = House()
    at = request_context()
    at.user_agent, at.client_address = "trino", "10.0.0.1"
    permit = await house.door.admit(at, BatchCheck((Check(ON, Can.DROP),)))
    house.rules.asked.clear()
    await house.door.hypothetical_checks.would(permit, [READ, HypotheticalCheck(world.ALICE, Can.DROP, ON)])
    told = {asked.actor.id: asked.context for asked in house.rules.asked}
    assert (told[world.BOB_ID].user_agent, told[world.BOB_ID].client_address) == (None, None)
    assert (told[world.ALICE.id].user_agent, told[world.ALICE.id].client_address) == ("trino", "10.0.0.1")


@pytest.mark.threat("LG-DIS-19")
@pytest.mark.parametrize(
    ("principal", "delegated", "paced"),
    [
        (Principal(PrincipalType.USER, world.BOB_ID), True, False),
        (Principal(PrincipalType.USER, world.BOB_ID), False, True),
        (None, True, True),  # every caller may do so in checks about themselves
        (None, False, True),
    ],
)
async def test_only_checks_about_another_principal_skip_pacing(
    principal: Principal | None, delegated: bool, paced: bool
) -> None:
    house = House()
    permit = await house.door.admit(
        request_context(), BatchCheck((Check(ON, Can.DROP, principal),), delegated=delegated)
    )
    house.judge.paced.clear()
    await house.door.hypothetical_checks.would(permit, [READ])
    await house.door.hypothetical_checks.holds(permit, [(Can.DROP, ON)])
    await house.door.hypothetical_checks.related(permit, BOB, Can.DROP, [ObjectKey(ObjectType.TABLE, "t")])
    assert house.judge.paced == [paced] * 3


async def test_either_engine_can_refuse_a_hypothetical_check() -> None:
    house = House()
    house.judge.answer = lambda question: question.relation is not Can.DROP
    assert await _would(house, READ, DROP) == [True, False]

    class NoDrops:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            no = PolicyAnswer(allow=False, reasons=(Reason(code="x", message="No."),))
            return tuple(
                no if each.operation == "drop_table" else PolicyAnswer(allow=True) for each in request.questions
            )

    house = House()
    house.rules.decide = NoDrops().decide  # type: ignore[method-assign]  # a substitute with other rules
    assert await _would(house, DROP, READ) == [False, True]


async def test_a_deactivated_user_is_refused_regardless_of_engine_answers() -> None:
    house, other = House(), House()
    permit = await house.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    house.resolver.standing = {**house.resolver.standing, "deactivated": True}
    mine = HypotheticalCheck(permit.actor, Can.DROP, ON)
    house.rules.asked.clear()
    house.judge.asked.clear()
    assert await house.door.hypothetical_checks.would(permit, [READ, mine, DROP]) == [False, True, False]
    permit = await other.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    other.rules.asked.clear()
    other.judge.asked.clear()
    assert await other.door.hypothetical_checks.would(permit, [READ, mine, DROP]) == [True, True, True]
    assert (len(house.rules.asked), len(house.judge.asked)) == (len(other.rules.asked), len(other.judge.asked))


async def test_an_absent_object_is_refused_after_the_same_checks_as_a_present_one() -> None:
    house, empty = House(), House()
    empty.resolver.rows.clear()
    assert await _would(house, READ) == [True]
    assert await _would(empty, READ) == [False], "a deactivated user must be denied although both engines allow"
    for engine in ("rules", "judge"):
        assert len(getattr(empty, engine).asked) == len(getattr(house, engine).asked)


async def test_too_few_answers_of_an_engine_are_an_outage() -> None:
    class Silent:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            return tuple(PolicyAnswer(allow=True) for _ in request.questions[:1])

    house = House()
    permit = await house.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    house.rules.decide = Silent().decide  # type: ignore[method-assign]  # a substitute with other rules
    with pytest.raises(DecisionUnavailable):
        await house.door.hypothetical_checks.would(permit, [READ, DROP])


async def test_a_role_is_checked_as_a_user_with_that_role_assumed() -> None:
    house = House()
    permit = await house.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    house.rules.asked.clear()
    role = Actor(kind=ActorKind.ROLE, id="", assumed_role=world.ROLE_ID)
    await house.door.hypothetical_checks.would(permit, [HypotheticalCheck(role, Can.DROP, ON)])
    (asked,) = house.rules.asked
    assert (asked.actor.kind, asked.actor.id, asked.actor.assumed_role) == ("role", "", str(world.ROLE_ID))
