# SPDX-License-Identifier: Apache-2.0
"""Compare witnesses and repairs with brute force over all subsets of small random worlds.

The other evaluator is plain recursion without code of the gateway (`tests/support/rows/naive.py`).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.provenance import repairs_of, witnesses_of
from tests.support.model_edits import Edited
from tests.support.rows.naive import the_model
from tests.support.rows.provenance_checks import all_repairs, all_witnesses, holds, offered_in, reasons_of
from tests.support.rows.provenance_worlds import ALICE, EDGES, NOW, RELATIONS, random_variant, random_world, worlds


def _relation(name: str) -> dict[str, Any]:
    return {"computedUserset": {"relation": name}}


def _variants() -> dict[str, dict[str, Any]]:
    """Return the shipped model, and two in which exclusions and intersections have other exclusions in their terms."""
    both = {"intersection": {"child": [_relation("selects"), _relation("modifies")]}}
    unowned = {"difference": {"base": both, "subtract": _relation("ownership")}}
    either = {"difference": {"base": _relation("describes"), "subtract": both}}
    return {
        "shipped": the_model(),
        "unowned": Edited().rule("table", "can_read_data", unowned).rule("table", "can_drop", either).model,
        "members": Edited().rule("table", "can_move", {"union": {"child": [both, _relation("manages_grants")]}}).model,
    }


VARIANTS = _variants()


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=120)
@given(world=worlds, relation=st.sampled_from(RELATIONS))
def test_witnesses_are_the_minimal_reasons_by_brute_force(variant: str, world: list[HeldTuple], relation: str) -> None:
    model = VARIANTS[variant]
    found, was_cut = witnesses_of(ModelRules(model), [*EDGES, *world], ALICE, NOW, relation, "table:t")
    assert not was_cut
    given_ones = {frozenset(each.facts - set(EDGES)) for each in found}
    assert given_ones == all_witnesses(model, world, relation)
    assert len(given_ones) == len(found)
    assert bool(found) is holds(model, [*EDGES, *world], relation)
    assert [len(each.facts) for each in found] == sorted(len(each.facts) for each in found)
    for each in found:
        assert each.until == min((fact.until for fact in each.facts if fact.until is not None), default=None)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=120)
@given(world=worlds, candidates=worlds, relation=st.sampled_from(RELATIONS))
def test_repairs_are_the_minimal_effective_grants_by_brute_force(
    variant: str, world: list[HeldTuple], candidates: list[HeldTuple], relation: str
) -> None:
    model = VARIANTS[variant]
    offered = offered_in(world, candidates)
    found, was_cut = repairs_of(ModelRules(model), [*EDGES, *world], set(offered), ALICE, NOW, relation, "table:t")
    assert not was_cut
    assert set(found) == all_repairs(model, world, offered, relation)
    assert len(set(found)) == len(found)


def test_a_witness_names_the_flags_that_must_stay_absent() -> None:
    owned = HeldTuple(ALICE, "ownership", "table:t", None)
    (witness,), _ = witnesses_of(ModelRules(the_model()), [*EDGES, owned], ALICE, NOW, "manages_grants", "table:t")
    flags = {each.object for each in witness.absent if each.relation == "managed_access"}
    assert flags == {"namespace:n", "warehouse:w"}


def test_many_ways_are_cut_and_stay_minimal() -> None:
    roles = [f"role:{number}" for number in range(90)]
    world = [HeldTuple(ALICE, "assignee", role, None) for role in roles]
    world += [HeldTuple(f"{role}#assignee", "select", "table:t", None) for role in roles]
    found, was_cut = witnesses_of(ModelRules(the_model()), [*EDGES, *world], ALICE, NOW, "can_read_data", "table:t")
    assert was_cut
    assert {len(each.facts) for each in found} == {2}


def test_cut_witnesses_count_in_the_whole_world() -> None:
    """Without the flag of managed access, ownership alone would give the right to grant."""
    roles = [f"role:{number}" for number in range(90)]
    passes = HeldTuple(ALICE, "pass_grants", "table:t", None)
    world = [passes, HeldTuple("user:*", "managed_access", "namespace:n", None)]
    world += [HeldTuple(ALICE, "assignee", role, None) for role in roles]
    world += [HeldTuple(f"{role}#assignee", "ownership", "table:t", None) for role in roles]
    found, was_cut = witnesses_of(ModelRules(the_model()), [*EDGES, *world], ALICE, NOW, "can_grant_select", "table:t")
    assert was_cut
    assert found
    assert all(passes in each.facts for each in found)


@pytest.mark.parametrize("number", range(60, 76))
def test_witnesses_under_random_rules_are_minimal(number: int) -> None:
    """With exclusions of grants, not each minimal set is found, but each witness is one."""
    rnd = random.Random(number)
    model = random_variant(rnd, excludes_grants=True)
    for _ in range(20):
        world, relation = random_world(rnd), rnd.choice(RELATIONS)
        reasons = reasons_of(ModelRules(model), world, (), relation)
        by_force = all_witnesses(model, world, relation)
        found = {each - set(EDGES) for each in reasons.witnesses}
        assert found <= by_force
        assert bool(found) is bool(by_force)
