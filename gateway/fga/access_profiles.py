# SPDX-License-Identifier: Apache-2.0
"""Evaluate an action for many principals at once: principals with equal tuples form a profile, which is evaluated once.

The analysis of the model selects the grants that can matter, so that only these are read. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gateway.access.nouns.refs import ObjectType
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules, UnknownRule
from gateway.fga.model_analysis import ParsedModel

#: The user of every profile. `user_object` encodes `=`, so no real user has this name.
PROFILE_USER: Final = "user:profile="

Relation = tuple[ObjectType, str]


@dataclass(frozen=True, slots=True)
class Relevance:
    """The direct relations on which a relation depends.

    - `direct`: the relations whose tuples can change the result, on the object and on its containers.
    - `combines`: True if a principal can have the relation by several tuples of which no single one gives it.
    """

    direct: frozenset[Relation]
    combines: bool


def relevance_of(model: ParsedModel, type: ObjectType, relation: str) -> Relevance:
    """Return the direct relations on which `relation` on objects of the type depends. Raises UnknownRule."""
    search = _Search(model)
    search.visit((type, relation))
    return Relevance(frozenset(search.direct), search.combines)


class _Search:
    """Collects the direct relations that are reachable from a relation."""

    def __init__(self, model: ParsedModel) -> None:
        self._model = model
        self._seen: set[Relation] = set()
        self.direct: set[Relation] = set()
        self.combines = False

    def visit(self, at: Relation) -> None:
        """Add the direct relations on which the relation `at` depends."""
        if at in self._seen:
            return
        self._seen.add(at)
        rule = self._model.rule(*at)
        if rule is not None:
            self._rewrite(rule.rewrite, at)

    def _rewrite(self, rewrite: Mapping[str, Any], at: Relation) -> None:
        (kind,) = (key for key, value in rewrite.items() if value is not None)
        inner = rewrite[kind]
        match kind:
            case "this":
                self.direct.add(at)
            case "computedUserset":
                self.visit((at[0], inner["relation"]))
            case "union" | "intersection":
                self.combines = self.combines or kind == "intersection"
                for child in inner["child"]:
                    self._rewrite(child, at)
            case "difference":
                self._rewrite(inner["base"], at)
                excluded = _Search(self._model)
                excluded._rewrite(inner["subtract"], at)
                self.direct |= excluded.direct
                self.combines = self.combines or excluded.combines or any(map(self._is_held, excluded.direct))
            case "tupleToUserset":
                edge = self._model.rule(at[0], inner["tupleset"]["relation"])
                for subject in () if edge is None else edge.subjects:
                    if subject["type"] in set(ObjectType):
                        self.visit((ObjectType(subject["type"]), inner["computedUserset"]["relation"]))
            case _:
                raise UnknownRule(f"the relationship model has an unknown rule for {at[1]} on {at[0]}")

    def _is_held(self, at: Relation) -> bool:
        """Return True if tuples of the relation can differ between principals. Those of a flag name all users."""
        rule = self._model.rule(*at)
        return rule is not None and any(each.get("wildcard") is None for each in rule.subjects)


class Profiles:
    """Evaluates one relation on one object for profiles: sets of tuples whose user is PROFILE_USER.

    `structure` are the tuples that all profiles share, such as edges and flags.
    """

    def __init__(
        self, model: ModelRules, structure: Iterable[HeldTuple], relation: str, object: str, now: datetime
    ) -> None:
        self._model = model
        self.structure = tuple(structure)
        self._relation = relation
        self._object = object
        self._now = now
        self._known: dict[frozenset[HeldTuple], bool] = {}

    def holds(self, tuples: frozenset[HeldTuple]) -> bool:
        """Return True if a user with these tuples has the relation. Raises UnknownRule."""
        known = self._known.get(tuples)
        if known is None:
            evaluation = Evaluation(self._model, (*self.structure, *tuples), PROFILE_USER, self._now)
            known = self._known[tuples] = evaluation.holds(self._relation, self._object)
        return known

    def reason(self, tuples: frozenset[HeldTuple], rank: Callable[[HeldTuple], Any]) -> Sequence[HeldTuple]:
        """Return a minimal part of `tuples` with which the relation holds: without any of its tuples it does not.

        Tuples with a higher `rank` are left out first, so the result has those with the lowest ranks.
        """
        left = frozenset(tuples)
        for each in sorted(tuples, key=rank, reverse=True):
            fewer = left - {each}
            if self.holds(fewer):
                left = fewer
        return sorted(left, key=rank)
