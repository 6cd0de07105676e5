# SPDX-License-Identifier: Apache-2.0
"""Analyze the relationship model: which grants make objects visible in lists, and which relations objects inherit.

A list then reads only rows with such a grant. Policy authors can change the model, so the analysis reads the model that
checks use now. It is conservative: if anything but a recorded grant can make rows of a type visible, lists of this type
check every row. Examples are a wildcard tuple, a relation that is not a privilege, and an unknown edge. Pure, except
for reading the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from gateway.access.door.list_visibility import TRAVERSE, Reach, Reaches
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.refs import TABULARS, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.tuples import READ_COLUMNS
from gateway.fga.client import FgaClient

_log = structlog.get_logger("fga.reach")

_LISTED: Final = (
    ObjectType.PROJECT,
    ObjectType.WAREHOUSE,
    ObjectType.NAMESPACE,
    ObjectType.TABLE,
    ObjectType.VIEW,
    ObjectType.GENERIC_TABLE,
)
_CONTAINERS: Final = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})
# The contents of these types are listed by grants only after `can_list_everything` on the container was denied.
_CHECKED_FIRST: Final = frozenset({ObjectType.WAREHOUSE, ObjectType.NAMESPACE})
# Lists consider the grants on objects of these types together with the grants on their contents.
_LOOKED_AT: Final = frozenset({ObjectType.SERVER, ObjectType.PROJECT})
_PRINCIPALS: Final = ({"type": "user"}, {"type": "role", "relation": "assignee"})

_PARENT: Final = "parent"
_Relation = tuple[ObjectType, str]


class _Stored(msgspec.Struct):
    authorization_model: dict[str, Any]


class FollowedReaches:
    """The reaches of the model that `client` uses. They are computed again when the client uses another model.

    A log event names each type whose lists check every row.
    """

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._known: tuple[str, Reaches, ParsedModel] | None = None

    async def __call__(self) -> Reaches:
        """Return the reaches, computed once for each model.

        Raises DecisionEngineUnavailable if the model cannot be read.
        """
        model_id = self._client.model_id
        if self._known is None or self._known[0] != model_id:
            stored = await self._client.get(f"/authorization-models/{model_id}", _Stored)
            found = reaches_of(stored.authorization_model)
            for type in _LISTED:
                if type not in found:
                    _log.warning("list.widened", type=type.value, model_id=model_id)
            self._known = model_id, found, ParsedModel(stored.authorization_model)
        return self._known[1]

    async def model(self, model_id: str) -> ParsedModel | None:
        """Return the model with this id; None if checks use another model now.

        Raises DecisionEngineUnavailable if the model cannot be read.
        """
        await self()
        known = self._known
        return known[2] if known is not None and known[0] == model_id else None

    async def enough(self, model_id: str, relation: Can, type: ObjectType, granted: str) -> bool:
        """Return True if in this model the relation `granted` alone implies `relation` on an object of the type.

        Only visibility in lists and reading a column are analyzed. The result is False for other relations, and if
        checks use another model now. Raises DecisionEngineUnavailable if the model cannot be read.
        """
        if relation is Can.INCLUDE_IN_LIST:
            # Callers get such hints from the reaches, so the reaches were read before. Without a reach there is no
            # hint.
            reach = self._known[1].get(type) if self._known is not None and self._known[0] == model_id else None
            return reach is not None and granted in reach.certain
        if (relation, type) != (Can.READ_DATA, ObjectType.COLUMN):
            return False
        await self()
        known = self._known
        return known is not None and known[0] == model_id and granted in known[2].implying(type, relation.value)

    async def inherited(self, model_id: str, type_name: str, relation: str, parent_name: str) -> str | None:
        """Return a relation on a parent that in this model implies `relation` on all its children of a type.

        `type_name` is the type of the children, `parent_name` that of the parent. Return None if there is no such
        relation, or if checks use another model now. Raises DecisionEngineUnavailable if the model cannot be read.
        """
        await self()
        if self._known is None or self._known[0] != model_id:
            return None
        return self._known[2].inherited(ObjectType(type_name), relation, ObjectType(parent_name))


def inherited_of(model: Mapping[str, Any], type: ObjectType, relation: str, parent: ObjectType) -> str | None:
    """Return the result of `FollowedReaches.inherited` for this model."""
    return ParsedModel(model).inherited(type, relation, parent)


def reaches_of(model: Mapping[str, Any]) -> Reaches:
    """Return the reach of each type whose rows only grants that PostgreSQL records can make visible."""
    read = ParsedModel(model)
    if not read.members_are_recorded():
        return {}
    found = {}
    for type in _LISTED:
        direct = read.walk((type, Can.INCLUDE_IN_LIST.value), frozenset())
        if direct is None:
            continue
        own = {relation for of, relation in direct if of is type}
        found[type] = Reach(
            own=frozenset(own - {TRAVERSE}),
            below=TRAVERSE in own,
            above=frozenset(relation for of, relation in direct if of is not type),
            certain=frozenset(read.implying(type, Can.INCLUDE_IN_LIST.value) & own),
            inside=_inside(read) if type is ObjectType.NAMESPACE else None,
            tasks=type in TABULARS and _by_own(read, type, Can.GET_TASKS),
        )
    return found


def _inside(read: ParsedModel) -> frozenset[str] | None:
    direct = read.walk((ObjectType.NAMESPACE, Can.LIST_EVERYTHING.value), frozenset())
    if direct is None or any(of is not ObjectType.NAMESPACE for of, _ in direct):
        return None
    return frozenset(relation for _, relation in direct)


def _by_own(read: ParsedModel, type: ObjectType, action: Can) -> bool:
    """Return True if a caller that does not see the whole container can have the action only by a grant on the
    object.
    """
    direct = read.walk((type, action.value), frozenset())
    return direct is not None and all(of is type for of, _ in direct)


@dataclass(frozen=True, slots=True)
class Rule:
    """The definition of a relation: its rewrite, and the kinds of subjects that its tuples may have."""

    rewrite: Mapping[str, Any]
    subjects: tuple[Mapping[str, Any], ...]


class ParsedModel:
    """The relations of a model, in the form that the analysis uses."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        self._rules: dict[tuple[str, str], Rule] = {}
        for each in model["type_definitions"]:
            about = (each.get("metadata") or {}).get("relations") or {}
            for relation, rewrite in (each.get("relations") or {}).items():
                subjects = (about.get(relation) or {}).get("directly_related_user_types") or ()
                self._rules[each["type"], relation] = Rule(rewrite, tuple(subjects))

    def rule(self, type: ObjectType, relation: str) -> Rule | None:
        """Return the definition of a relation; None if the type does not have it."""
        return self._rules.get((type.value, relation))

    def members_are_recorded(self) -> bool:
        """Return True if a role gets members only by recorded grants on it.

        Then PostgreSQL knows all roles of a caller.
        """
        direct = self.walk((ObjectType.ROLE, "assignee"), frozenset())
        return direct is not None and direct <= {(ObjectType.ROLE, each.value) for each in GRANTABLE[ObjectType.ROLE]}

    def walk(self, at: _Relation, above: frozenset[_Relation]) -> frozenset[_Relation] | None:
        """Return relations that are granted, of which a principal needs at least one to have the relation `at`.

        Return None if a principal can have `at` in another way. `above` are the relations whose analysis is in
        progress.
        """
        if at in above:
            return frozenset()
        rule = self._rules.get((at[0].value, at[1]))
        return None if rule is None else self._rewrite(rule.rewrite, at, rule, above | {at})

    def _rewrite(
        self, rewrite: Mapping[str, Any], at: _Relation, rule: Rule, above: frozenset[_Relation]
    ) -> frozenset[_Relation] | None:
        (kind,) = (key for key, value in rewrite.items() if value is not None)
        rewrite_rule = rewrite[kind]
        if kind == "this":
            return frozenset({at}) if is_granted(at, rule) else None
        if kind == "computedUserset":
            return self.walk((at[0], rewrite_rule["relation"]), above)
        if kind == "union":
            return _all_of([self._rewrite(child, at, rule, above) for child in rewrite_rule["child"]])
        if kind == "intersection":
            # An intersection needs each of its sides, so the relations of one side are a valid bound.
            sides = [self._rewrite(child, at, rule, above) for child in rewrite_rule["child"]]
            return next((side for side in sides if side is not None), None)
        if kind == "difference":
            return self._rewrite(rewrite_rule["base"], at, rule, above)
        if kind == "tupleToUserset":
            return self._from_above(rewrite_rule, at, above)
        return None

    def _from_above(
        self, rewrite_rule: Mapping[str, Any], at: _Relation, above: frozenset[_Relation]
    ) -> frozenset[_Relation] | None:
        edge = self._rules.get((at[0].value, rewrite_rule["tupleset"]["relation"]))
        if edge is None or list(edge.rewrite) != ["this"]:
            return None
        ways: list[frozenset[_Relation] | None] = []
        for subject in edge.subjects:
            relation = rewrite_rule["computedUserset"]["relation"]
            if (subject["type"], relation) not in self._rules:
                continue
            try:
                parent = ObjectType(subject["type"])
            except ValueError:
                return None
            if parent in _CHECKED_FIRST and relation in self.implying(parent, Can.LIST_EVERYTHING.value):
                continue
            ways.append(self.walk((parent, relation), above) if parent in _LOOKED_AT else None)
        return _all_of(ways)

    def inherited(self, type: ObjectType, relation: str, parent: ObjectType) -> str | None:
        """Return a relation on the parent that alone implies `relation`; None if there is none.

        It is in a term `… from parent` of the definition, within unions only.
        """
        edge = self._rules.get((type.value, _PARENT))
        if edge is None or list(edge.rewrite) != ["this"] or not any(_only(s, parent) for s in edge.subjects):
            return None
        arms: set[str] = set()
        for name in self.implying(type, relation):
            arms.update(_from_parent(self._rules[type.value, name].rewrite))
        # Only one relation is checked, so take the one that most others imply: `describes`, not `audits`.
        known = sorted(arm for arm in arms if (parent.value, arm) in self._rules)
        return max(known, key=lambda arm: len(self.implying(parent, arm)), default=None)

    def implying(self, type: ObjectType, relation: str) -> set[str]:
        """Return the relations of the type each of which alone implies `relation`, including `relation` itself."""
        found: set[str] = set()
        open_ones = [relation]
        while open_ones:
            name = open_ones.pop()
            rule = self._rules.get((type.value, name))
            if rule is not None and name not in found:
                found.add(name)
                open_ones += _alternatives(rule.rewrite)
        return found


def is_granted(at: _Relation, rule: Rule) -> bool:
    """Return True if all tuples of this relation are grants to users and roles, or follow from such grants."""
    type, relation = at
    kinds = [{key: each[key] for key in ("type", "relation", "wildcard") if each.get(key)} for each in rule.subjects]
    # A wildcard is an empty object, so only its presence counts.
    if any("wildcard" in each and each["wildcard"] is not None for each in rule.subjects):
        return False
    recorded = (
        relation in GRANTABLE.get(type, ())
        or (relation == TRAVERSE and type in _CONTAINERS)
        or (relation == READ_COLUMNS and type is ObjectType.TABLE)
    )
    return recorded and all(kind in _PRINCIPALS for kind in kinds)


def _alternatives(rewrite: Mapping[str, Any]) -> list[str]:
    if rewrite.get("computedUserset") is not None:
        return [rewrite["computedUserset"]["relation"]]
    if rewrite.get("union") is not None:
        return [name for child in rewrite["union"]["child"] for name in _alternatives(child)]
    return []


def _from_parent(rewrite: Mapping[str, Any]) -> list[str]:
    rewrite_rule = rewrite.get("tupleToUserset")
    if rewrite_rule is not None:
        return [rewrite_rule["computedUserset"]["relation"]] if rewrite_rule["tupleset"]["relation"] == _PARENT else []
    if rewrite.get("union") is not None:
        return [name for child in rewrite["union"]["child"] for name in _from_parent(child)]
    return []


def _only(subject: Mapping[str, Any], parent: ObjectType) -> bool:
    """Return True if this kind of subject is an object of the type `parent`, without a condition."""
    return (
        subject["type"] == parent.value
        and not any(subject.get(key) for key in ("relation", "condition"))
        and subject.get("wildcard") is None
    )


def _all_of(ways: list[frozenset[_Relation] | None]) -> frozenset[_Relation] | None:
    known = [way for way in ways if way is not None]
    return frozenset().union(*known) if len(known) == len(ways) else None
