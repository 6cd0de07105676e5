# SPDX-License-Identifier: Apache-2.0
"""Hypothetical checks: a guardrail that filters or masks refuses unless the use case applies the restrictions."""

from __future__ import annotations

from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.nouns.relations import Can
from gateway.obligations.data_policies import BoundPolicy
from gateway.obligations.guardrail_policies import GUARDRAIL
from tests.support.door import world
from tests.support.door.data_restrictions import LOAD, by_engine
from tests.support.door.guardrail_restrictions import MASKING, guarded
from tests.support.door.world import request_context


async def test_a_check_is_refused_unless_its_use_case_applies_the_masks() -> None:
    house = guarded(MASKING)
    door = house.door
    permit = await door.admit(request_context(by_engine()), LOAD)
    check = HypotheticalCheck(permit.actor, Can.READ_DATA, world.TABLE)
    assert await door.hypothetical_checks.evaluate(permit, [check]) == [False]
    stated: dict[int, tuple[BoundPolicy, ...]] = {}
    assert await door.hypothetical_checks.evaluate(permit, [check], stated) == [True]
    assert [each.policy.id for each in stated[0]] == [GUARDRAIL]
    verdicts = await door.hypothetical_checks.policy_verdicts(
        permit, [(permit.actor, world.TABLE, stated[0]), (permit.actor, world.TABLE, ())]
    )
    assert [None if each is None else each.restricts for each in verdicts] == [True, None]


async def test_a_check_on_another_object_than_a_table_is_refused() -> None:
    door = guarded(MASKING).door
    permit = await door.admit(request_context(by_engine()), LOAD)
    check = HypotheticalCheck(permit.actor, Can.LIST_TABLES, world.NAMESPACE)
    stated: dict[int, tuple[BoundPolicy, ...]] = {}
    assert await door.hypothetical_checks.evaluate(permit, [check], stated) == [False]
    assert stated == {}
