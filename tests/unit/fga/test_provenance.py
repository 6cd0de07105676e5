# SPDX-License-Identifier: Apache-2.0
"""Compare witnesses and repairs with brute force over all subsets of small random worlds.

The other evaluator is plain recursion without code of the gateway (`tests/support/rows/naive.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.provenance import repairs_of, witnesses_of
from tests.support.model_edits import Edited
from tests.support.rows.naive import Naive, the_model
from tests.support.rows.provenance_worlds import ALICE, EDGES, NOW, RELATIONS, worlds


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


def _yes(model: dict[str, Any], facts: Iterable[HeldTuple], relation: str) -> bool:
    tuples = {each[:3]: each.until for each in (*EDGES, *facts)}
    return Naive(model, tuples, NOW).holds(ALICE, relation, "table:t")


def _subsets(facts: list[HeldTuple]) -> Iterator[frozenset[HeldTuple]]:
    for size in range(len(facts) + 1):
        yield from map(frozenset, itertools.combinations(facts, size))


def _minimal(sets: Iterable[frozenset[HeldTuple]]) -> set[frozenset[HeldTuple]]:
    found: list[frozenset[HeldTuple]] = []
    for each in sorted(sets, key=len):
        if not any(other <= each for other in found):
            found.append(each)
    return set(found)


def _reasons(model: dict[str, Any], world: list[HeldTuple], relation: str) -> set[frozenset[HeldTuple]]:
    """Return the minimal subsets that give the relation, and that no further tuple of the world takes away again."""
    robust: dict[frozenset[HeldTuple], bool] = {}
    for some in sorted(_subsets(world), key=len, reverse=True):
        further = all(robust[some | {each}] for each in world if each not in some)
        robust[some] = further and _yes(model, some, relation)
    return _minimal(some for some, yes in robust.items() if yes)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=120)
@given(world=worlds, relation=st.sampled_from(RELATIONS))
def test_witnesses_are_the_minimal_reasons_by_brute_force(variant: str, world: list[HeldTuple], relation: str) -> None:
    model = VARIANTS[variant]
    found, was_cut = witnesses_of(ModelRules(model), [*EDGES, *world], ALICE, NOW, relation, "table:t")
    assert not was_cut
    given_ones = {frozenset(each.facts - set(EDGES)) for each in found}
    assert given_ones == _reasons(model, world, relation)
    assert len(given_ones) == len(found)
    assert bool(found) is _yes(model, world, relation)
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
    taken = {each[:3] for each in world}
    offered = [each for each in candidates if each[:3] not in taken]
    found, was_cut = repairs_of(ModelRules(model), [*EDGES, *world], set(offered), ALICE, NOW, relation, "table:t")
    assert not was_cut
    effective = [some for some in _subsets(offered) if _yes(model, [*world, *some], relation)]
    assert set(found) == _minimal(effective)
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
