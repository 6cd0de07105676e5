# SPDX-License-Identifier: Apache-2.0
"""Evaluate all actions of one user on many objects, and on everything in a container. Pure.

A right on everything in a container is evaluated on a stand-in: an object of each type in it that no tuple but the edge
to the container mentions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from gateway.access.nouns.cards import ACTIONS, CARDS
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.fga.access_profiles import PROFILE_USER
from gateway.fga.answer_checks import ActiveModel
from gateway.fga.evaluation import Evaluation, HeldTuple
from gateway.fga.model_analysis import ParsedModel
from gateway.fga.relationships import object_name

_Names = dict[ObjectType, str]

#: The types that objects of each type contain directly.
_CHILDREN: Final[Mapping[ObjectType, tuple[ObjectType, ...]]] = {
    type: tuple(each for each, card in CARDS.items() if type in card.parents) for type in ObjectType
}


@dataclass(frozen=True, slots=True)
class HeldOn:
    """The actions on an object, and those on everything in it, by type. Types without actions are left out."""

    actions: frozenset[Can]
    contents: Mapping[ObjectType, frozenset[Can]]


def equal_actions(model: ParsedModel, type: ObjectType, only: Can | None = None) -> list[tuple[Can, ...]]:
    """Return the actions on objects of a type, in groups that the model defines by the same relation.

    With `only`, return this action alone, if the type has it.
    """
    groups: dict[str, list[Can]] = {}
    for action in sorted(ACTIONS[type]) if only is None else ACTIONS[type] & {only}:
        groups.setdefault(_defined_by(model, type, action.value), []).append(action)
    return [tuple(each) for each in groups.values()]


def _defined_by(model: ParsedModel, type: ObjectType, relation: str) -> str:
    """Return the relation that a chain of definitions by another relation alone ends with."""
    seen: set[str] = set()
    while relation not in seen:
        seen.add(relation)
        rule = model.rule(type, relation)
        other = None if rule is None else rule.rewrite.get("computedUserset")
        if other is None:
            break
        relation = other["relation"]
    return relation


def flags_matter(model: ParsedModel) -> bool:
    """Return True if a flag of a container can change an action on contents on which the user has no tuple.

    In the shipped model, the flag of managed access only takes something from owners of the contents themselves.
    """
    search = _FlagSearch(model)
    return any(search.finds((type, action.value)) for type in ObjectType for action in ACTIONS[type])


class _FlagSearch:
    """Searches definitions for uses of flags, whose tuples name all users."""

    def __init__(self, model: ParsedModel) -> None:
        self._model = model
        self._seen: set[tuple[ObjectType, str]] = set()

    def finds(self, at: tuple[ObjectType, str]) -> bool:
        """Return True if the relation `at` uses a flag otherwise than to take away a relation of the object itself."""
        if at in self._seen:
            return False
        self._seen.add(at)
        rule = self._model.rule(*at)
        return rule is not None and self._uses(rule.rewrite, at)

    def _uses(self, rewrite: Mapping[str, Any], at: tuple[ObjectType, str]) -> bool:
        (kind,) = (key for key, value in rewrite.items() if value is not None)
        inner = rewrite[kind]
        match kind:
            case "this":
                rule = self._model.rule(*at)
                return rule is not None and any(each.get("wildcard") is not None for each in rule.subjects)
            case "computedUserset":
                return self.finds((at[0], inner["relation"]))
            case "difference":
                own = self._is_own(inner["base"], at)
                return self._uses(inner["base"], at) or (not own and self._uses(inner["subtract"], at))
            case "tupleToUserset":
                edge = self._model.rule(at[0], inner["tupleset"]["relation"])
                above = [] if edge is None else [each["type"] for each in edge.subjects]
                wanted = inner["computedUserset"]["relation"]
                return any(self.finds((ObjectType(each), wanted)) for each in above if each in set(ObjectType))
            case _:
                return any(self._uses(child, at) for child in inner["child"])

    def _is_own(self, rewrite: Mapping[str, Any], at: tuple[ObjectType, str]) -> bool:
        """Return True if only tuples on the object itself give the rewrite."""
        if rewrite.get("computedUserset") is not None:
            relation = (at[0], rewrite["computedUserset"]["relation"])
            rule = self._model.rule(*relation)
            return rule is not None and self._is_own(rule.rewrite, relation)
        return rewrite.get("this") is not None


class HeldActions:
    """The actions of PROFILE_USER by some tuples. `only` limits them to one action.

    `containers` are the objects in which actions on contents are evaluated.
    """

    def __init__(
        self,
        model: ActiveModel,
        tuples: Iterable[HeldTuple],
        containers: Iterable[ObjectKey],
        now: datetime,
        only: Can | None = None,
    ) -> None:
        self._model = model
        self._only = only
        self._stand_ins: dict[ObjectKey, _Names] = {}
        edges: list[HeldTuple] = []
        for each in containers:
            names: _Names = {}
            _place(each.type, object_name(each), names, edges)
            self._stand_ins[each] = names
        self._evaluation = Evaluation(model.rules, (*tuples, *edges), PROFILE_USER, now)
        self._groups: dict[ObjectType, list[tuple[Can, ...]]] = {}

    @cached_property
    def _known(self) -> dict[str, frozenset[Can]]:
        return {}

    def groups(self, type: ObjectType) -> Sequence[tuple[Can, ...]]:
        """Return the actions on objects of the type, in groups of which a user has all or none."""
        if type not in self._groups:
            self._groups[type] = equal_actions(self._model.parsed, type, self._only)
        return self._groups[type]

    def on(self, key: ObjectKey) -> HeldOn:
        """Return the actions on an object and its contents. Raises UnknownRule."""
        contents = self._contents(key)
        return HeldOn(self._actions(key.type, object_name(key)), contents)

    def inherited(self, type: ObjectType, container: ObjectKey) -> HeldOn:
        """Return the actions on an object of the type in a container on which the user has no tuple.

        Raises UnknownRule.
        """
        contents = self._contents(container)
        below = _below(type)
        return HeldOn(contents.get(type, frozenset()), {each: some for each, some in contents.items() if each in below})

    def _contents(self, key: ObjectKey) -> dict[ObjectType, frozenset[Can]]:
        found = {type: self._actions(type, name) for type, name in self._stand_ins.get(key, {}).items()}
        return {type: actions for type, actions in found.items() if actions}

    def _actions(self, type: ObjectType, name: str) -> frozenset[Can]:
        if name not in self._known:
            held = (group for group in self.groups(type) if self._evaluation.holds(group[0].value, name))
            self._known[name] = frozenset(action for group in held for action in group)
        return self._known[name]


def _place(type: ObjectType, name: str, names: _Names, edges: list[HeldTuple]) -> None:
    """Add a stand-in of each type below an object, with the edges between them."""
    for child in _CHILDREN[type]:
        if child in names:
            continue
        names[child] = f"{child}:in={name.replace(':', '=')}"
        edges.append(HeldTuple(name, CARDS[child].edge, names[child], None))
        _place(child, names[child], names, edges)


def _below(type: ObjectType) -> set[ObjectType]:
    found: set[ObjectType] = set()
    left = list(_CHILDREN[type])
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += _CHILDREN[each]
    return found
