# SPDX-License-Identifier: Apache-2.0
"""The comparison of two models agrees with the evaluation of both on small worlds."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.fga.compiled import compiled_model, same_model, without_empties
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules
from gateway.fga.implications import MAX_TERMS, Literal, TooComplex, all_of, negated, primes
from gateway.fga.model_diff import Fact, Implication, acknowledge, compare_models
from gateway.fga.model_rules import downward_steps
from tests.support.model_edits import Edited, above, computed, edited_models

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SHIPPED = compiled_model()
RULES = ModelRules(SHIPPED)
CHAIN = ("column", "table", "namespace", "namespace+1", "warehouse", "project", "server")
EDGES = {"column": "parent", "table": "parent", "namespace": "parent", "namespace+1": "parent", "warehouse": "project"}
EDGES |= {"project": "server"}
FLAGGED = ("namespace", "namespace+1", "warehouse")
TARGETS = ("column", "table", "namespace", "warehouse", "project")


def named(label: str) -> str:
    return f"{label.partition('+')[0]}:{label}"


SHORT = tuple(each for each in CHAIN if each != "namespace+1")


def path(chain: Sequence[str]) -> list[HeldTuple]:
    return [HeldTuple(named(up), EDGES[low], named(low), None) for low, up in itertools.pairwise(chain)]


def holds(model: ModelRules, facts: Iterable[Fact], relation: str, on: str, chain: Sequence[str] = CHAIN) -> bool:
    held = [HeldTuple("user:*" if each.relation == "managed_access" else "user:u", each.relation, named(each.on), None)
            for each in facts if each.holds]  # fmt: skip
    return Evaluation(model, [*path(chain), *held], "user:u", NOW).holds(relation, named(on))


def _facts() -> list[Fact]:
    found = []
    for label in CHAIN:
        about = next(each for each in SHIPPED["type_definitions"] if each["type"] == label.partition("+")[0])
        relations = (about.get("metadata") or {}).get("relations") or {}
        found += [
            Fact(label, name)
            for name, each in relations.items()
            if each.get("directly_related_user_types") and name not in ("parent", "project", "server")
        ]
    return found


FACTS = _facts()


def test_equal_models_have_no_difference() -> None:
    diff = compare_models(SHIPPED, SHIPPED)
    assert (diff.widened, diff.narrowed) == ((), ())
    assert acknowledge(diff, None).exact


def test_empty_values_of_a_stored_model_make_no_difference() -> None:
    stored = copy.deepcopy(SHIPPED)
    for each in stored["type_definitions"]:
        for about in ((each.get("metadata") or {}).get("relations") or {}).values():
            for subject in about.get("directly_related_user_types") or ():
                subject.setdefault("condition", "")
                subject.setdefault("relation", "")
    model = without_empties(stored)
    assert downward_steps(stored) and not downward_steps(model)
    assert same_model(model, SHIPPED)
    assert (compare_models(SHIPPED, model).widened, compare_models(model, SHIPPED).widened) == ((), ())


def test_added_implication_is_reported_at_each_level() -> None:
    after = Edited().also("namespace", "selects", computed("create")).model
    found = {str(each) for each in compare_models(SHIPPED, after).widened}
    assert {
        "table#can_read_data <- namespace#create",
        "table#can_read_data <- namespace+1#create",
        "table#can_grant_select <- table#pass_grants and namespace#create",
    } <= found
    assert not any("warehouse#create" in each for each in found)
    assert compare_models(after, SHIPPED).widened == ()
    assert {str(each) for each in compare_models(after, SHIPPED).narrowed} == found


def test_dropped_exclusion_widens() -> None:
    arms = [computed("manage_grants"), computed("ownership"), above("manages_grants")]
    after = Edited().rule("table", "manages_grants", {"union": {"child": arms}}).model
    assert Implication("table", "can_grant_select", (Fact("table", "ownership"),)) in (
        compare_models(SHIPPED, after).widened
    )


def test_new_kind_of_subject_widens() -> None:
    after = Edited().subject("table", "select", {"type": "user", "wildcard": {}}).model
    assert [str(each) for each in compare_models(SHIPPED, after).widened] == ["table#select accepts user:*"]


def test_changed_condition_widens() -> None:
    after = Edited()
    after.model["conditions"]["unexpired"]["expression"] = "true"
    assert [str(each) for each in compare_models(SHIPPED, after.model).widened] == ["condition#unexpired accepts true"]


def test_acknowledgement_must_list_exactly_what_widens() -> None:
    diff = compare_models(SHIPPED, Edited().also("table", "can_drop", computed("selects")).model)
    lines = [str(each) for each in diff.widened]
    assert lines
    assert acknowledge(diff, ["# for the cleanup job", "", *lines]).exact
    assert acknowledge(diff, lines[1:]).missing == (lines[0],)
    assert acknowledge(diff, [*lines, "table#can_drop <- table#describe"]).stale == (
        "table#can_drop <- table#describe",
    )
    assert not acknowledge(diff, None).exact


def test_too_large_formula_is_an_error() -> None:
    sides = [frozenset({frozenset({Literal(0, f"{side}.{each}", True)}) for each in range(400)}) for side in range(4)]
    with pytest.raises(TooComplex):
        all_of(sides)
    assert MAX_TERMS > 1_000


terms = st.frozensets(st.builds(Literal, st.just(0), st.sampled_from("abcd"), st.booleans()), max_size=3)


@given(st.frozensets(terms, max_size=5))
def test_primes_and_negation_have_the_truth_table_of_the_formula(formula: frozenset[frozenset[Literal]]) -> None:
    consistent = frozenset(each for each in formula if len({literal.relation for literal in each}) == len(each))
    prime, opposite = primes(consistent), negated(consistent)
    for values in itertools.product((True, False), repeat=4):
        world = dict(zip("abcd", values, strict=True))
        truth = [any(all(world[x.relation] is x.holds for x in term) for term in each)
                 for each in (consistent, prime, opposite)]  # fmt: skip
        assert truth[0] == truth[1] != truth[2]
    for term in prime:
        for literal in term:
            weaker = term - {literal}
            free = [name for name in "abcd" if name not in {each.relation for each in weaker}]
            worlds = (
                {**dict(zip(free, values, strict=True)), **{each.relation: each.holds for each in weaker}}
                for values in itertools.product((True, False), repeat=len(free))
            )
            assert not all(any(all(w[x.relation] is x.holds for x in t) for t in consistent) for w in worlds)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_diff_agrees_with_evaluation_of_both_models(data: st.DataObject) -> None:
    """In a random world, a right that only one model gives has an implication whose facts hold in that world."""
    after = data.draw(edited_models())
    diff, rules = compare_models(SHIPPED, after), ModelRules(after)
    for _ in range(6):
        world = data.draw(st.sets(st.sampled_from(FACTS), max_size=5))
        for type in TARGETS:
            for relation in _actions(type):
                was, becomes = (holds(model, world, relation, type) for model in (RULES, rules))
                if was != becomes:
                    side = diff.widened if becomes else diff.narrowed
                    assert any(
                        (each.type, each.relation) == (type, relation) and _true_in(each, world) for each in side
                    ), (relation, type, sorted(world))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(edited_models())
def test_each_reported_implication_has_a_world(after: Mapping[str, Any]) -> None:
    rules = ModelRules(after)
    for each in (each for each in compare_models(SHIPPED, after).widened if each.type in TARGETS):
        given = [fact for fact in each.facts if fact.holds]
        flags = [Fact(label, "managed_access") for label in FLAGGED]
        free = [flag for flag in flags if Fact(flag.on, flag.relation, False) not in each.facts]
        worlds = ([*given, *chosen] for size in range(len(free) + 1) for chosen in itertools.combinations(free, size))
        assert any(
            holds(rules, world, each.relation, each.type, chain)
            and not holds(RULES, world, each.relation, each.type, chain)
            for world in worlds
            for chain in (CHAIN, SHORT)
        ), each


def _actions(type: str) -> list[str]:
    relations = next(each for each in SHIPPED["type_definitions"] if each["type"] == type)["relations"]
    return [each for each in relations if each.startswith("can_")]


def _true_in(implication: Implication, world: set[Fact]) -> bool:
    """Return True if the facts of an implication hold in the world."""
    return all((Fact(fact.on, fact.relation) in world) is fact.holds for fact in implication.facts)
