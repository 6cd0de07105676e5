# SPDX-License-Identifier: Apache-2.0
"""Expectations about the witnesses and repairs of a small world, by brute force and as checks of an engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.provenance import repairs_of, witnesses_of
from tests.support.rows.naive import Naive
from tests.support.rows.provenance_worlds import ALICE, EDGES, NOW

TABLE = "table:t"


@dataclass(frozen=True)
class Expected:
    """A set of tuples, and whether it alone must give the relation. `part` names it in messages."""

    tuples: Sequence[HeldTuple]
    holds: bool
    part: str


@dataclass(frozen=True)
class Reasons:
    """The witnesses and repairs of a world, and True if some were left out."""

    witnesses: Sequence[frozenset[HeldTuple]]
    repairs: Sequence[frozenset[HeldTuple]]
    was_cut: bool


def offered_in(world: Sequence[HeldTuple], candidates: Iterable[HeldTuple]) -> list[HeldTuple]:
    """Return the candidates whose tuples the world does not have."""
    taken = {each[:3] for each in world}
    return [each for each in candidates if each[:3] not in taken]


def reasons_of(rules: ModelRules, world: Sequence[HeldTuple], offered: Iterable[HeldTuple], relation: str) -> Reasons:
    """Return the reasons for the relation of the user on the table. Repairs are those of a no only."""
    facts = [*EDGES, *world]
    witnesses, some_left_out = witnesses_of(rules, facts, ALICE, NOW, relation, TABLE)
    found = [each.facts for each in witnesses]
    if found:
        return Reasons(found, (), some_left_out)
    repairs, was_cut = repairs_of(rules, facts, set(offered), ALICE, NOW, relation, TABLE)
    return Reasons((), repairs, was_cut)


def expectations(
    model: Mapping[str, Any], world: Sequence[HeldTuple], reasons: Reasons, relation: str
) -> list[Expected]:
    """Return what an engine must answer if the reasons are sound, minimal and effective.

    Without one of its facts, a witness alone must not give the relation. A witness may hold a fact only because of an
    exclusion of another fact. Then the rest must lose the relation together with that other fact.
    """
    facts = [*EDGES, *world]
    found = [Expected(facts, bool(reasons.witnesses), "world")]
    for witness in reasons.witnesses:
        found.append(Expected(list(witness), True, "witness"))
        for fewer in without_each(witness):
            refused: Sequence[HeldTuple] = fewer
            if holds(model, fewer, relation):
                left_out = next(iter(witness - set(fewer)))
                refused = _refused_superset(model, fewer, [each for each in facts if each != left_out], relation)
            found.append(Expected(refused, False, "witness without a fact"))
    for repair in reasons.repairs:
        found.append(Expected([*facts, *repair], True, "repair"))
        found += [Expected([*facts, *fewer], False, "repair without a grant") for fewer in without_each(repair)]
    return found


def without_each(facts: Iterable[HeldTuple]) -> list[list[HeldTuple]]:
    """Return the sets without one of their facts."""
    some = sorted(facts, key=lambda each: each[:3])
    return [[each for each in some if each != left_out] for left_out in some]


def holds(model: Mapping[str, Any], tuples: Iterable[HeldTuple], relation: str) -> bool:
    """Return the result of the naive evaluator for the tuples alone."""
    return Naive(model, {each[:3]: each.until for each in tuples}, NOW).holds(ALICE, relation, TABLE)


def _refused_superset(
    model: Mapping[str, Any], facts: Sequence[HeldTuple], world: Sequence[HeldTuple], relation: str
) -> Sequence[HeldTuple]:
    """Return the smallest superset of `facts` in `world` without the relation; `facts` if each superset has it."""
    further = [each for each in world if each not in facts]
    for some in subsets(further):
        if not holds(model, [*facts, *some], relation):
            return [*facts, *some]
    return facts


def subsets(facts: Sequence[HeldTuple]) -> Iterator[frozenset[HeldTuple]]:
    """Yield all subsets, smallest first."""
    for size in range(len(facts) + 1):
        yield from map(frozenset, itertools.combinations(facts, size))


def minimal_sets(sets: Iterable[frozenset[HeldTuple]]) -> set[frozenset[HeldTuple]]:
    """Return the sets that contain no other of the sets."""
    found: list[frozenset[HeldTuple]] = []
    for each in sorted(sets, key=len):
        if not any(other <= each for other in found):
            found.append(each)
    return set(found)


def all_witnesses(model: Mapping[str, Any], world: Sequence[HeldTuple], relation: str) -> set[frozenset[HeldTuple]]:
    """Return the minimal subsets that give the relation, and that no further tuple of the world takes away again.

    The edges are in each subset, and left out of the result.
    """
    robust: dict[frozenset[HeldTuple], bool] = {}
    for some in sorted(subsets(world), key=len, reverse=True):
        further = all(robust[some | {each}] for each in world if each not in some)
        robust[some] = further and holds(model, [*EDGES, *some], relation)
    return minimal_sets(some for some, yes in robust.items() if yes)


def all_repairs(
    model: Mapping[str, Any], world: Sequence[HeldTuple], offered: Sequence[HeldTuple], relation: str
) -> set[frozenset[HeldTuple]]:
    """Return the minimal subsets of the candidates that give the relation together with the world."""
    return minimal_sets(some for some in subsets(offered) if holds(model, [*EDGES, *world, *some], relation))
