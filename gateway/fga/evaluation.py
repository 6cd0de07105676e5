# SPDX-License-Identifier: Apache-2.0
"""Evaluate the relationship model over given tuples, for one user at one time. Pure.

Its result equals a check of OpenFGA for the same model and tuples: `tests/integration/test_decision_differential.py`
compares both with random tuples. `gateway.fga.provenance` collects the reasons with the same walk.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")

#: The condition of tuples with an expiry (`fga_model/core.fga`).
_EXPIRY: Final = "unexpired"


class Node(NamedTuple):
    """A relation on an object. The object has a name of `gateway.fga.names`."""

    relation: str
    object: str


class HeldTuple(NamedTuple):
    """A tuple with names of `gateway.fga.names`. `until` is its expiry, None if it does not expire."""

    user: str
    relation: str
    object: str
    until: datetime | None


class UnknownRule(Exception):
    """The model has a kind of rule that this evaluation does not implement, so nothing can be decided."""


class ModelRules:
    """The rules of a model in OpenFGA's JSON form, ready for evaluations."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        types = model["type_definitions"]
        self.rules: Mapping[str, Mapping[str, Any]] = {each["type"]: each.get("relations") or {} for each in types}
        self._direct: dict[tuple[str, str], frozenset[tuple[str, str, bool, str]]] = {}
        for each in types:
            for relation, about in ((each.get("metadata") or {}).get("relations") or {}).items():
                self._direct[relation, each["type"]] = frozenset(
                    (
                        subject["type"],
                        subject.get("relation") or "",
                        "wildcard" in subject,
                        subject.get("condition") or "",
                    )
                    for subject in about.get("directly_related_user_types") or ()
                )

    def admits(self, held: HeldTuple) -> bool:
        """Return True if the model allows this kind of subject in tuples of the relation.

        Other tuples have no effect.
        """
        type, _, id = held.user.partition(":")
        id, _, relation = id.partition("#")
        condition = "" if held.until is None else _EXPIRY
        subject = (type, relation, id == "*", condition)
        return subject in self._direct.get((held.relation, held.object.partition(":")[0]), frozenset())


class Walk(Generic[Value]):
    """Walks the rules of a model for one user at the time `now`. Subclasses define the values and how they combine.

    A check that recurs within its own evaluation is False, as in OpenFGA.
    """

    def __init__(self, model: ModelRules, tuples: Iterable[HeldTuple], user: str, now: datetime) -> None:
        self._model = model
        self._user = user
        self._anyone = f"{user.partition(':')[0]}:*"
        self._on: dict[tuple[str, str], list[HeldTuple]] = {}
        for held in tuples:
            if (held.until is None or now < held.until) and model.admits(held):
                self._on.setdefault((held.relation, held.object), []).append(held)
        self._known: dict[Node, Value] = {}
        self._path: dict[Node, int] = {}
        # The lowest depth of an outer check that recurred during the current one.
        self._recurred: float = math.inf

    def value(self, relation: str, object: str) -> Value:
        """Return the value of the user's relation on the object. Raises UnknownRule."""
        node = Node(relation, object)
        if node in self._known:
            return self._known[node]
        if node in self._path:
            self._recurred = min(self._recurred, self._path[node])
            return self._recurring()
        rule = self._model.rules.get(object.partition(":")[0], {}).get(relation)
        if rule is None:
            return self._without_tuple(node)
        depth, outer, self._recurred = len(self._path), self._recurred, math.inf
        self._path[node] = depth
        try:
            result = self._rule(rule, node)
        finally:
            del self._path[node]
        if self._recurred >= depth:
            # A result that depends on an unfinished outer check is valid only within that check, so it is not kept.
            self._known[node] = result
            self._recurred = math.inf
        self._recurred = min(self._recurred, outer)
        return result

    def _rule(self, rule: Mapping[str, Any], node: Node) -> Value:
        relation, object = node
        if "this" in rule:
            return self._any(self._granted(node))
        if "computedUserset" in rule:
            return self.value(rule["computedUserset"]["relation"], object)
        if "tupleToUserset" in rule:
            edge = Node(rule["tupleToUserset"]["tupleset"]["relation"], object)
            return self._any(self._inherited(edge, rule["tupleToUserset"]["computedUserset"]["relation"]))
        if "union" in rule:
            return self._any(self._rule(child, node) for child in rule["union"]["child"])
        if "intersection" in rule:
            return self._all(self._rule(child, node) for child in rule["intersection"]["child"])
        if "difference" in rule:
            return self._without(rule["difference"]["base"], rule["difference"]["subtract"], node)
        raise UnknownRule(f"the relationship model has an unknown rule for {relation} on {object.partition(':')[0]}")

    def _granted(self, node: Node) -> Iterator[Value]:
        for held in self._on.get(node, ()):
            role, _, relation = held.user.partition("#")
            if relation:
                yield self._by(held, self.value(relation, role))
            elif held.user in (self._user, self._anyone):
                yield self._by(held, None)
        yield self._without_tuple(node)

    def _inherited(self, edge: Node, relation: str) -> Iterator[Value]:
        for held in self._on.get(edge, ()):
            yield self._by(held, self.value(relation, held.user))
        yield self._without_tuple(edge)

    @abstractmethod
    def _recurring(self) -> Value:
        """Return the value of a check within its own evaluation."""

    @abstractmethod
    def _without_tuple(self, node: Node) -> Value:
        """Return the value of a relation by further tuples than those given: there are none."""

    @abstractmethod
    def _by(self, held: HeldTuple, further: Value | None) -> Value:
        """Return the value of a tuple, combined with what its subject needs; None if its subject is the user."""

    @abstractmethod
    def _any(self, values: Iterable[Value]) -> Value:
        """Return the value of a union."""

    @abstractmethod
    def _all(self, values: Iterable[Value]) -> Value:
        """Return the value of an intersection."""

    @abstractmethod
    def _without(self, base: Mapping[str, Any], subtract: Mapping[str, Any], node: Node) -> Value:
        """Return the value of an exclusion of two rules on the same object."""


class Evaluation(Walk[bool]):
    """Evaluates checks of one user at the time `now`."""

    def holds(self, relation: str, object: str) -> bool:
        """Return True if the user has the relation on the object. Raises UnknownRule."""
        return self.value(relation, object)

    def _recurring(self) -> bool:
        return False

    def _without_tuple(self, node: Node) -> bool:
        return False

    def _by(self, held: HeldTuple, further: bool | None) -> bool:
        return further is None or further

    def _any(self, values: Iterable[bool]) -> bool:
        return any(values)

    def _all(self, values: Iterable[bool]) -> bool:
        return all(values)

    def _without(self, base: Mapping[str, Any], subtract: Mapping[str, Any], node: Node) -> bool:
        return self._rule(base, node) and not self._rule(subtract, node)
