# SPDX-License-Identifier: Apache-2.0
"""Two worlds that differ only in facts that the asker may not read give the same answers, in content, order and count.

A decision itself is no secret of an asker that may ask for it. So answers are compared where the decisions are equal.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.support.stack.redacted_worlds import ACTIONS, explanations, facts, place, rights, what_can, who_can
from tests.support.stack.world import World

PAIRS = int(os.environ.get("LAKEGATE_TEST_WORLDS", "6"))


@pytest.mark.threat("LG-DIS-01")
@pytest.mark.parametrize("seed", range(PAIRS))
def test_hidden_facts_change_no_answer(world: World, seed: int) -> None:
    rnd = random.Random(seed)
    of = place(world, rnd)
    readable, first, second = facts(rnd, of)
    of.change("writes", readable | first)
    explained, lists, objects = explanations(of), {each: who_can(of, each) for each in ACTIONS}, what_can(of)
    may = {each: rights(of, each) for each in ACTIONS}
    of.change("writes", second - first)
    of.change("deletes", first - second)
    about = f"asker reads {sorted(of.readable)}; {sorted(readable)}; {sorted(first)} or {sorted(second)}"
    later = explanations(of)
    may_later = {each: rights(of, each) for each in ACTIONS}
    for action in ACTIONS:
        if explained[action]["decision"] == later[action]["decision"]:
            assert explained[action] == later[action], about
        if may[action] == may_later[action]:
            assert lists[action] == who_can(of, action), about
    if [explained[each]["decision"] for each in ACTIONS] == [later[each]["decision"] for each in ACTIONS]:
        assert objects == what_can(of), about
    of.change("deletes", readable | second)
