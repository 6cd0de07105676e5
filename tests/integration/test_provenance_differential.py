# SPDX-License-Identifier: Apache-2.0
"""Ask the real OpenFGA about the witnesses and repairs of random worlds.

Each witness gives the relation, and no longer without any one of its facts. Each repair gives it together with the
world, and no longer without any one of its grants. The worlds are those of `tests/unit/fga/test_provenance.py`, which
compares with brute force. `LAKEGATE_TEST_WORLDS` sets their number.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.fga.client import FgaClient
from gateway.fga.confirmation import Confirmations
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.model import push_model
from gateway.fga.provenance import repairs_of, witnesses_of
from tests.support.rows.naive import the_model
from tests.support.rows.provenance_worlds import ALICE, EDGES, NOW, RELATIONS, worlds
from tests.support.servers.openfga_server import KEY, endpoint

pytestmark = pytest.mark.generated

__all__ = ["endpoint"]  # a fixture

TABLE = "table:t"
WORLDS = int(os.environ.get("LAKEGATE_TEST_WORLDS", "60"))
RULES = ModelRules(the_model())


def _without_each(facts: Iterable[HeldTuple]) -> list[list[HeldTuple]]:
    some = sorted(facts, key=lambda each: each[:3])
    return [[each for each in some if each != left_out] for left_out in some]


async def _differences(
    confirmations: Confirmations, drawn: Sequence[HeldTuple], candidates: Sequence[HeldTuple], relation: str
) -> list[str]:
    """Return the sets of tuples about which OpenFGA and the provenance differ."""
    facts = [*EDGES, *drawn]
    witnesses, _ = witnesses_of(RULES, facts, ALICE, NOW, relation, TABLE)
    taken = {each[:3] for each in drawn}
    offered = {each for each in candidates if each[:3] not in taken}
    repairs, _ = repairs_of(RULES, facts, offered, ALICE, NOW, relation, TABLE)
    expected: list[tuple[list[HeldTuple], bool, str]] = [(facts, bool(witnesses), "world")]
    for witness in witnesses:
        expected.append((list(witness.facts), True, "witness"))
        expected += [(fewer, False, "witness without a fact") for fewer in _without_each(witness.facts)]
    for repair in repairs if not witnesses else []:
        expected.append(([*facts, *repair], True, "repair"))
        expected += [([*facts, *fewer], False, "repair without a grant") for fewer in _without_each(repair)]
    answers = await confirmations.alone([some for some, _, _ in expected], ALICE, relation, TABLE, NOW)
    return [what for answer, (_, yes, what) in zip(answers, expected, strict=True) if answer is not yes]


def test_openfga_confirms_each_witness_and_repair_and_that_they_are_minimal(endpoint: str) -> None:
    with asyncio.Runner() as runner:
        written = runner.run(push_model(endpoint, KEY, "provenance"))
        client = FgaClient(endpoint, KEY, written.store_id, written.model_id, timeout_s=20)
        confirmations = Confirmations(client)

        @settings(max_examples=WORLDS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(facts=worlds, candidates=worlds, relation=st.sampled_from(RELATIONS))
        def compare(facts: list[HeldTuple], candidates: list[HeldTuple], relation: str) -> None:
            assert runner.run(_differences(confirmations, facts, candidates, relation)) == []

        try:
            compare()
        finally:
            runner.run(client.aclose())
