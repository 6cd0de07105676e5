# SPDX-License-Identifier: Apache-2.0
"""A naive evaluator of the compiled relationship model by plain recursion, without code of the gateway or OpenFGA."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import Any

Tuple = tuple[str, str, str]


def the_model() -> dict[str, Any]:
    """Return the compiled model as it ships."""
    found: dict[str, Any] = json.loads(resources.files("gateway.fga").joinpath("model.json").read_text())
    return found


class Naive:
    """Tuples with their expiry (None: never), evaluated at the time `now`."""

    def __init__(self, model: Mapping[str, Any], tuples: Mapping[Tuple, datetime | None], now: datetime) -> None:
        self._rules = {each["type"]: each.get("relations") or {} for each in model["type_definitions"]}
        self._on: dict[tuple[str, str], list[str]] = {}
        for (user, relation, on), until in tuples.items():
            if until is None or now < until:
                self._on.setdefault((on, relation), []).append(user)

    def holds(self, user: str, relation: str, on: str, above: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Return True if `user` has `relation` on `on`. A check that recurs within its own evaluation is False."""
        if (relation, on) in above:
            return False
        rule = self._rules[on.split(":")[0]].get(relation)
        return rule is not None and self._rule(rule, user, relation, on, above | {(relation, on)})

    def _rule(
        self, rule: Mapping[str, Any], user: str, relation: str, on: str, above: frozenset[tuple[str, str]]
    ) -> bool:
        ((kind, what),) = rule.items()
        if kind == "this":
            return any(self._is(subject, user, above) for subject in self._on.get((on, relation), ()))
        if kind == "computedUserset":
            return self.holds(user, what["relation"], on, above)
        if kind == "tupleToUserset":
            parents = self._on.get((on, what["tupleset"]["relation"]), ())
            return any(self.holds(user, what["computedUserset"]["relation"], parent, above) for parent in parents)
        if kind == "union":
            return any(self._rule(child, user, relation, on, above) for child in what["child"])
        if kind == "intersection":
            return all(self._rule(child, user, relation, on, above) for child in what["child"])
        if kind == "difference":
            return self._rule(what["base"], user, relation, on, above) and not self._rule(
                what["subtract"], user, relation, on, above
            )
        raise AssertionError(f"the model has a rule of an unknown kind: {kind}")

    def _is(self, subject: str, user: str, above: frozenset[tuple[str, str]]) -> bool:
        if "#" in subject:
            on, relation = subject.split("#")
            return self.holds(user, relation, on, above)
        return subject == user or subject == user.split(":")[0] + ":*"
