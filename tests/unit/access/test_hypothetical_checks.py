# SPDX-License-Identifier: Apache-2.0
"""Hypothetical checks: decisions of the door about another principal, by both engines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor, ActorKind
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest, Reason
from gateway.access.nouns.authz_errors import DecisionUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.checks import BatchCheck, Check
from gateway.access.ports import Pin, Question
from gateway.access.shares.shares import Lane, principal_key
from gateway.access.tuples import Principal, PrincipalType
from tests.support.door import world
from tests.support.door.world import DoorFixture, TableResolver, request_context

ON = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
BOB = Actor.user(world.BOB_ID)
READ = HypotheticalCheck(BOB, Can.READ_DATA, ON)
DROP = HypotheticalCheck(BOB, Can.DROP, ON, {"purge": True})


async def _would(door_fixture: DoorFixture, *supposed: HypotheticalCheck) -> list[bool]:
    checks = tuple(Check(each.on, each.relation, Principal(PrincipalType.USER, world.BOB_ID)) for each in supposed)
    permit = await door_fixture.door.admit(request_context(), BatchCheck(checks))
    door_fixture.rules.calls.clear()
    door_fixture.judge.calls.clear()
    door_fixture.resolver.calls.clear()
    return await door_fixture.door.hypothetical_checks.evaluate(permit, supposed)


async def test_hypothetical_policy_checks_name_the_checked_user_in_one_call() -> None:
    door_fixture = DoorFixture()
    door_fixture.resolver.roles = ("a-role",)
    assert await _would(door_fixture, READ, DROP) == [True, True]
    (requested,) = door_fixture.rules.calls
    assert (requested.actor.id, requested.actor.kind, requested.actor.roles) == (world.BOB_ID, "user", ("a-role",))
    assert [question.operation for question in requested.questions] == ["vend_credentials", "drop_table"]
    assert requested.questions[1].facts == {"purge": True}
    assert requested.questions[0].resource.name == "orders"
    assert len(door_fixture.judge.calls) == 1


async def test_hypothetical_checks_of_another_user_omit_the_request_context() -> None:
    door_fixture = DoorFixture()
    at = request_context()
    at.user_agent, at.client_address = "trino", "10.0.0.1"
    permit = await door_fixture.door.admit(at, BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.rules.calls.clear()
    await door_fixture.door.hypothetical_checks.evaluate(permit, [READ, HypotheticalCheck(world.ALICE, Can.DROP, ON)])
    contexts = {requested.actor.id: requested.context for requested in door_fixture.rules.calls}
    assert (contexts[world.BOB_ID].user_agent, contexts[world.BOB_ID].client_address) == (None, None)
    assert (contexts[world.ALICE.id].user_agent, contexts[world.ALICE.id].client_address) == ("trino", "10.0.0.1")


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
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(
        request_context(), BatchCheck((Check(ON, Can.DROP, principal),), delegated=delegated)
    )
    door_fixture.judge.paced.clear()
    await door_fixture.door.hypothetical_checks.evaluate(permit, [READ])
    await door_fixture.door.hypothetical_checks.holds(permit, [(Can.DROP, ON)])
    await door_fixture.door.hypothetical_checks.related(permit, BOB, Can.DROP, [ObjectKey(ObjectType.TABLE, "t")])
    assert door_fixture.judge.paced == [paced] * 3


async def test_cached_answers_about_another_user_depend_on_that_users_expiries_and_time() -> None:
    """With the caller's own values, an allow would outlive the grant that it came from."""
    door_fixture, found = DoorFixture(), list[tuple[str, datetime, Pin | None]]()
    revisions = {"revision": UUID(int=1), "time_boxes": UUID(int=2)}
    later = world.NOW + timedelta(seconds=5)
    of_bob = {**revisions, "next_expiry": later + timedelta(hours=1), "now": later}

    class OfEach(TableResolver):
        async def resolve(self, refs: Sequence[Ref], caller: Actor) -> Resolution:
            known = await super().resolve(refs, caller)
            return msgspec.structs.replace(known, **(of_bob if caller == BOB else revisions))

    async def check(
        actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        found.append((actor.id, now, pin))
        return [True] * len(questions)

    door_fixture = DoorFixture(resolver=OfEach())
    permit = await door_fixture.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.judge.check = check  # type: ignore[method-assign]  # records the pins
    mine = HypotheticalCheck(permit.actor, Can.DROP, ON)
    await door_fixture.door.hypothetical_checks.evaluate(permit, [READ, mine])
    assert sorted(found) == [
        (permit.actor.id, world.NOW, Pin(UUID(int=1), UUID(int=2), None)),
        (BOB.id, later, Pin(UUID(int=1), UUID(int=2), later + timedelta(hours=1))),
    ]


async def test_either_engine_can_refuse_a_hypothetical_check() -> None:
    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda question: question.relation is not Can.DROP
    assert await _would(door_fixture, READ, DROP) == [True, False]

    class NoDrops:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            no = PolicyAnswer(allow=False, reasons=(Reason(code="x", message="No."),))
            return tuple(
                no if each.operation == "drop_table" else PolicyAnswer(allow=True) for each in request.questions
            )

    door_fixture = DoorFixture()
    door_fixture.rules.decide = NoDrops().decide  # type: ignore[method-assign]  # a substitute with other rules
    assert await _would(door_fixture, DROP, READ) == [False, True]


async def test_a_deactivated_user_is_refused_regardless_of_engine_answers() -> None:
    door_fixture, other = DoorFixture(), DoorFixture()
    permit = await door_fixture.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.resolver.validity = {**door_fixture.resolver.validity, "deactivated": True}
    mine = HypotheticalCheck(permit.actor, Can.DROP, ON)
    door_fixture.rules.calls.clear()
    door_fixture.judge.calls.clear()
    assert await door_fixture.door.hypothetical_checks.evaluate(permit, [READ, mine, DROP]) == [False, True, False]
    permit = await other.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    other.rules.calls.clear()
    other.judge.calls.clear()
    assert await other.door.hypothetical_checks.evaluate(permit, [READ, mine, DROP]) == [True, True, True]
    assert (len(door_fixture.rules.calls), len(door_fixture.judge.calls)) == (
        len(other.rules.calls),
        len(other.judge.calls),
    )


async def test_an_absent_object_is_refused_after_the_same_checks_as_a_present_one() -> None:
    door_fixture, empty = DoorFixture(), DoorFixture()
    empty.resolver.rows.clear()
    assert await _would(door_fixture, READ) == [True]
    assert await _would(empty, READ) == [False], "a deactivated user must be denied although both engines allow"
    for engine in ("rules", "judge"):
        assert len(getattr(empty, engine).calls) == len(getattr(door_fixture, engine).calls)


async def test_too_few_answers_of_an_engine_are_an_outage() -> None:
    class Silent:
        async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
            return tuple(PolicyAnswer(allow=True) for _ in request.questions[:1])

    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.rules.decide = Silent().decide  # type: ignore[method-assign]  # a substitute with other rules
    with pytest.raises(DecisionUnavailable):
        await door_fixture.door.hypothetical_checks.evaluate(permit, [READ, DROP])


async def test_a_role_is_checked_as_a_user_with_that_role_assumed() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.rules.calls.clear()
    role = Actor(kind=ActorKind.ROLE, id="", assumed_role=world.ROLE_ID)
    await door_fixture.door.hypothetical_checks.evaluate(permit, [HypotheticalCheck(role, Can.DROP, ON)])
    (requested,) = door_fixture.rules.calls
    assert (requested.actor.kind, requested.actor.id, requested.actor.assumed_role) == ("role", "", str(world.ROLE_ID))


async def test_policies_of_many_actors_wait_for_the_slots_of_other_checks() -> None:
    door_fixture, running, most = DoorFixture(), 0, 0
    allowing = door_fixture.rules.decide

    async def decide(request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return await allowing(request)

    permit = await door_fixture.door.admit(request_context(), BatchCheck((Check(ON, Can.DROP),)))
    door_fixture.rules.decide = decide  # type: ignore[method-assign]  # counts the concurrent calls
    checks = door_fixture.door.hypothetical_checks
    many = [HypotheticalCheck(Actor.user(f"oidc~{number}"), Can.DROP, ON) for number in range(20)]
    async with checks.slots[Lane.USER].slot(principal_key(permit.actor)):
        waiting = asyncio.create_task(checks.policies(permit, many))
        await asyncio.sleep(0.01)
        assert most == 0
    assert [each.allow for each in await waiting] == [True] * len(many)
    await asyncio.gather(*(checks.policies(permit, many) for _ in range(3)))
    assert most == 4
