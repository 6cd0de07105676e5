# SPDX-License-Identifier: Apache-2.0
"""Evaluate two models for one profile: the relations that a principal holds on an object and on its containers.

Principals and objects with equal profiles have equal rights, so each distinct profile is evaluated once. The result
covers the object, and objects below it on which the principal holds nothing more. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from gateway.access.nouns.refs import ObjectType
from gateway.access.tuples import MANAGED_ACCESS
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules
from gateway.fga.implications import EDGES, plain_parents
from gateway.fga.model_analysis import ParsedModel

NESTED: Final = 2
"""The number of namespaces below an object for which its contents are evaluated separately."""

_USER: Final = "user:u"
_ROLE: Final = "role:r"
_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATER: Final = _NOW + timedelta(days=1)


class Step(NamedTuple):
    """One object of a path. `old` and `new` are the relations that the principal holds directly in each model.

    `flagged` is true under managed access.
    """

    type: ObjectType
    old: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    flagged: bool = False


Profile = tuple[Step, ...]
"""The path from the root down to the object."""


class Change(NamedTuple):
    """The actions that only the new model gives, and those that only the old model gives."""

    gained: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


NOTHING: Final = Change()


class Effect(NamedTuple):
    """The change on the object, and by kind on objects below it without further grants.

    A kind is a type. If the change depends on the number of namespaces between, `table` stands for the nearest tables,
    and `table+1` for those below one more namespace.
    """

    own: Change
    below: tuple[tuple[str, Change], ...]

    @property
    def empty(self) -> bool:
        """Return True if nothing changes."""
        return self.own == NOTHING and not self.below


class Held(NamedTuple):
    """A relation that is held directly on the step `level` of a profile."""

    level: int
    relation: str


class ProfileDiff:
    """Compares two models. `compared` are the actions to compare, by type; `ModelDiff` names those that can differ."""

    def __init__(
        self, old: Mapping[str, Any], new: Mapping[str, Any], compared: Mapping[ObjectType, Iterable[str]]
    ) -> None:
        self._rules = ModelRules(old), ModelRules(new)
        self._compared = {type: sorted(relations) for type, relations in compared.items()}
        self._parents = _parents(ParsedModel(old), ParsedModel(new))
        self._known: dict[Profile, Effect] = {}
        self._held: dict[tuple[Profile, str, bool], bool] = {}
        self._trees: dict[ObjectType, list[_Below]] = {}

    @property
    def evaluated(self) -> int:
        """Return the number of distinct profiles that were evaluated."""
        return len(self._known)

    def effect(self, profile: Profile) -> Effect:
        """Return what changes for a principal with this profile. Raises UnknownRule."""
        if profile not in self._known:
            self._known[profile] = self._evaluated(profile)
        return self._known[profile]

    def holds(self, profile: Profile, relation: str, *, new: bool) -> bool:
        """Return True if a principal with this profile has the relation on its object. Raises UnknownRule."""
        key = profile, relation, new
        if key not in self._held:
            on = _name(profile, len(profile) - 1)
            self._held[key] = self._evaluation(profile, new).holds(relation, on)
        return self._held[key]

    def witness(self, profile: Profile, kind: str, relation: str, *, gained: bool) -> tuple[Held, ...]:
        """Return minimal relations of the profile that give the action in the new model, or in the old one if it is
        lost.

        `kind` is "" for the object itself, else a kind of `Effect.below`. Raises UnknownRule.
        """
        kept = [Held(n, name) for n, step in enumerate(profile) for name in sorted(step.new if gained else step.old)]
        for each in list(kept):
            fewer = [other for other in kept if other != each]
            if self._holds(profile, fewer, kind, relation, gained):
                kept = fewer
        return tuple(kept)

    def reachable(self, type: ObjectType) -> frozenset[str]:
        """Return the types that can be below an object of the type."""
        return frozenset(each.type.value for each in self._below(type))

    def _holds(self, profile: Profile, held: list[Held], kind: str, relation: str, gained: bool) -> bool:
        only = [frozenset(each.relation for each in held if each.level == n) for n in range(len(profile))]
        left = tuple(Step(step.type, names, names, step.flagged) for step, names in zip(profile, only, strict=True))
        below = {each.kind: each.name for each in self._below(profile[-1].type)}
        on = below[kind] if kind else _name(profile, len(profile) - 1)
        return self._evaluation(left, gained).holds(relation, on)

    def _evaluated(self, profile: Profile) -> Effect:
        old, new = self._evaluation(profile, False), self._evaluation(profile, True)

        def change(type: ObjectType, on: str) -> Change:
            relations = self._compared.get(type, ())
            pairs = [(each, old.holds(each, on), new.holds(each, on)) for each in relations]
            return Change(
                frozenset(each for each, was, becomes in pairs if becomes and not was),
                frozenset(each for each, was, becomes in pairs if was and not becomes),
            )

        by_type: dict[ObjectType, dict[str, Change]] = {}
        for each in self._below(profile[-1].type):
            by_type.setdefault(each.type, {})[each.kind] = change(each.type, each.name)
        below: dict[str, Change] = {}
        for type, kinds in by_type.items():
            below |= kinds if len(set(kinds.values())) > 1 else {type.value: next(iter(kinds.values()))}
        kept = tuple(sorted((kind, each) for kind, each in below.items() if each != NOTHING))
        return Effect(change(profile[-1].type, _name(profile, len(profile) - 1)), kept)

    def _evaluation(self, profile: Profile, new: bool) -> Evaluation:
        rules = self._rules[new]
        tuples = [HeldTuple(_USER, "assignee", _ROLE, None)]
        for n, step in enumerate(profile):
            on = _name(profile, n)
            if n:
                edge = self._parents[step.type][profile[n - 1].type]
                tuples.append(HeldTuple(_name(profile, n - 1), edge, on, None))
            if step.flagged:
                tuples.append(HeldTuple("user:*", MANAGED_ACCESS, on, None))
            tuples += [_admitted(rules, each, on) for each in (step.new if new else step.old)]
        last = _name(profile, len(profile) - 1)
        tuples += [HeldTuple(each.parent or last, each.edge, each.name, None) for each in self._below(profile[-1].type)]
        return Evaluation(rules, tuples, _USER, _NOW)

    def _below(self, type: ObjectType) -> Sequence[_Below]:
        """Return one object of each kind below an object of the type, containers first."""
        if type not in self._trees:
            self._trees[type] = _tree(self._parents, type)
        return self._trees[type]


class _Below(NamedTuple):
    """An object below the last one of a profile. Its parent is that one if `parent` is empty."""

    type: ObjectType
    kind: str
    parent: str
    edge: str

    @property
    def name(self) -> str:
        return f"{self.type.value}:{self.kind}"


_Parents = Mapping[ObjectType, Mapping[ObjectType, str]]


def _tree(parents: _Parents, top: ObjectType) -> list[_Below]:
    found: list[_Below] = []
    waiting: list[tuple[ObjectType, str, int]] = [(top, "", 0)]
    while waiting:
        above, parent, nested = waiting.pop(0)
        for type, edges in parents.items():
            inside = nested + (type is ObjectType.NAMESPACE)
            # A column without a grant has no edge to its table, and what holds for it is asked on the table.
            if above not in edges or type is ObjectType.COLUMN or inside > NESTED:
                continue
            before = sum(each.type is type for each in found)
            kind = f"{type.value}+{before}" if before else type.value
            found.append(_Below(type, kind, parent, edges[above]))
            waiting.append((type, found[-1].name, inside))
    return found


def _parents(*models: ParsedModel) -> _Parents:
    """Return the edge from each type to each type of container."""
    found: dict[ObjectType, dict[ObjectType, str]] = {}
    for model in models:
        for type in ObjectType:
            for edge in EDGES:
                for parent in plain_parents(model, type, edge) or ():
                    found.setdefault(type, {})[parent] = edge
    return found


def _admitted(rules: ModelRules, relation: str, on: str) -> HeldTuple:
    """Return a tuple of the relation with a kind of subject that the model admits."""
    kinds = [HeldTuple(user, relation, on, end) for user in (_USER, f"{_ROLE}#assignee") for end in (None, _LATER)]
    return next((each for each in kinds if rules.admits(each)), kinds[0])


def _name(profile: Profile, level: int) -> str:
    return f"{profile[level].type.value}:{level}"
