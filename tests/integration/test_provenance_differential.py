# SPDX-License-Identifier: Apache-2.0
"""Ask the real OpenFGA about the witnesses and repairs of random worlds.

Each witness gives the relation, and no longer without any one of its facts. Each repair gives it together with the
world, and no longer without any one of its grants. The worlds are those of `tests/unit/fga/test_provenance.py`, which
compares with brute force. `LAKEGATE_TEST_WORLDS` sets their number.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.fga.client import FgaClient
from gateway.fga.confirmation import Confirmations
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.model import push_model
from tests.support.rows.naive import the_model
from tests.support.rows.provenance_checks import TABLE, expectations, offered_in, reasons_of
from tests.support.rows.provenance_worlds import ALICE, NOW, RELATIONS, worlds
from tests.support.servers.openfga_server import KEY, endpoint

pytestmark = pytest.mark.generated

__all__ = ["endpoint"]  # a fixture

WORLDS = int(os.environ.get("LAKEGATE_TEST_WORLDS", "60"))
MODEL = the_model()
RULES = ModelRules(MODEL)


async def _differences(
    confirmations: Confirmations, drawn: Sequence[HeldTuple], candidates: Sequence[HeldTuple], relation: str
) -> list[str]:
    """Return the sets of tuples about which OpenFGA and the provenance differ."""
    reasons = reasons_of(RULES, drawn, offered_in(drawn, candidates), relation)
    expected = expectations(MODEL, drawn, reasons, relation)
    worlds = [each.tuples for each in expected]
    answers = await confirmations.alone(worlds, ALICE, relation, TABLE, NOW, asker=Actor.user("oidc~alice"))
    return [each.part for answer, each in zip(answers, expected, strict=True) if answer is not each.holds]


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
