# SPDX-License-Identifier: Apache-2.0
"""Which grants can make an object visible in a list, and what one has on all that lies in something, read off the
relationship model. Pure.

Policy authors edit the model, so this is worked out for the model that is asked by. Only what is understood is
promised: a model in which something else can show a row (a flag for everybody, a relation that is no privilege, another
edge) has no reach for that type, and then its lists ask about every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from gateway.access.list_visibility import TRAVERSE, Reach, Reaches
from gateway.access.privileges import GRANTABLE
from gateway.access.refs import TABULARS, ObjectType
from gateway.access.relations import Can
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
# A list of what lies in these is read by grants only after `can_list_everything` was refused on it.
_ASKED_FIRST: Final = frozenset({ObjectType.WAREHOUSE, ObjectType.NAMESPACE})
# The grants of these are looked at together with those of what lies in them.
_LOOKED_AT: Final = frozenset({ObjectType.SERVER, ObjectType.PROJECT})
_PRINCIPALS: Final = ({"type": "user"}, {"type": "role", "relation": "assignee"})

_PARENT: Final = "parent"
_Relation = tuple[ObjectType, str]


class _Stored(msgspec.Struct):
    authorization_model: dict[str, Any]


class FollowedReaches:
    """The reaches of the model that `client` asks by, also after another one serves.

    The log names the types whose lists ask about every row.
    """

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._known: tuple[str, Reaches, _Model] | None = None

    async def __call__(self) -> Reaches:
        """Read once for each model. Raises DecisionEngineUnavailable."""
        model_id = self._client.model_id
        if self._known is None or self._known[0] != model_id:
            stored = await self._client.get(f"/authorization-models/{model_id}", _Stored)
            found = reaches_of(stored.authorization_model)
            for type in _LISTED:
                if type not in found:
                    _log.warning("list.widened", type=type.value, model_id=model_id)
            self._known = model_id, found, _Model(stored.authorization_model)
        return self._known[1]

    async def enough(self, model_id: str, relation: Can, type: ObjectType, granted: str) -> bool:
        """Whether by this model `granted` alone gives `relation` on an object of the type: what shows it in lists, and
        what reads a column; no of anything else, and when another model serves. Raises DecisionEngineUnavailable.
        """
        if relation is Can.INCLUDE_IN_LIST:
            # Whoever hints at this has asked for the reaches, and hints at nothing where there are none.
            reach = self._known[1].get(type) if self._known is not None and self._known[0] == model_id else None
            return reach is not None and granted in reach.certain
        if (relation, type) != (Can.READ_DATA, ObjectType.COLUMN):
            return False
        await self()
        known = self._known
        return known is not None and known[0] == model_id and granted in known[2].implying(type, relation.value)

    async def inherited(self, model_id: str, type_name: str, relation: str, parent_name: str) -> str | None:
        """A relation on a `parent_name` that by this model gives `relation` on each `type_name` whose `parent` it is;
        None when there is none, or another model serves by now. Raises DecisionEngineUnavailable.
        """
        await self()
        if self._known is None or self._known[0] != model_id:
            return None
        return self._known[2].inherited(ObjectType(type_name), relation, ObjectType(parent_name))


def inherited_of(model: Mapping[str, Any], type: ObjectType, relation: str, parent: ObjectType) -> str | None:
    """As `FollowedReaches.inherited`, for a model."""
    return _Model(model).inherited(type, relation, parent)


def reaches_of(model: Mapping[str, Any]) -> Reaches:
    """The reach of each type whose rows can only be seen by grants that PostgreSQL records."""
    read = _Model(model)
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


def _inside(read: _Model) -> frozenset[str] | None:
    direct = read.walk((ObjectType.NAMESPACE, Can.LIST_EVERYTHING.value), frozenset())
    if direct is None or any(of is not ObjectType.NAMESPACE for of, _ in direct):
        return None
    return frozenset(relation for _, relation in direct)


def _by_own(read: _Model, type: ObjectType, action: Can) -> bool:
    """Whether who does not see everything in what it lies in has the action only by grants on the thing itself."""
    direct = read.walk((type, action.value), frozenset())
    return direct is not None and all(of is type for of, _ in direct)


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a relation comes about: its rewrite and the kinds of subjects that tuples may name."""

    rewrite: Mapping[str, Any]
    subjects: tuple[Mapping[str, Any], ...]


class _Model:
    def __init__(self, model: Mapping[str, Any]) -> None:
        self._rules: dict[tuple[str, str], _Rule] = {}
        for each in model["type_definitions"]:
            about = (each.get("metadata") or {}).get("relations") or {}
            for relation, rewrite in (each.get("relations") or {}).items():
                subjects = (about.get(relation) or {}).get("directly_related_user_types") or ()
                self._rules[each["type"], relation] = _Rule(rewrite, tuple(subjects))

    def members_are_recorded(self) -> bool:
        """Whether one is in a role by a recorded grant on that role only: so the roles of a caller are known."""
        direct = self.walk((ObjectType.ROLE, "assignee"), frozenset())
        return direct is not None and direct <= {(ObjectType.ROLE, each.value) for each in GRANTABLE[ObjectType.ROLE]}

    def walk(self, at: _Relation, above: frozenset[_Relation]) -> frozenset[_Relation] | None:
        """The granted relations without one of which nobody has `at`; None when there are other ways to have it."""
        if at in above:
            return frozenset()
        rule = self._rules.get((at[0].value, at[1]))
        return None if rule is None else self._rewrite(rule.rewrite, at, rule, above | {at})

    def _rewrite(
        self, rewrite: Mapping[str, Any], at: _Relation, rule: _Rule, above: frozenset[_Relation]
    ) -> frozenset[_Relation] | None:
        (kind,) = (key for key, value in rewrite.items() if value is not None)
        what = rewrite[kind]
        if kind == "this":
            return frozenset({at}) if _is_granted(at, rule) else None
        if kind == "computedUserset":
            return self.walk((at[0], what["relation"]), above)
        if kind == "union":
            return _all_of([self._rewrite(child, at, rule, above) for child in what["child"]])
        if kind == "intersection":
            # Who has all of them has each of them.
            sides = [self._rewrite(child, at, rule, above) for child in what["child"]]
            return next((side for side in sides if side is not None), None)
        if kind == "difference":
            return self._rewrite(what["base"], at, rule, above)
        if kind == "tupleToUserset":
            return self._from_above(what, at, above)
        return None

    def _from_above(
        self, what: Mapping[str, Any], at: _Relation, above: frozenset[_Relation]
    ) -> frozenset[_Relation] | None:
        edge = self._rules.get((at[0].value, what["tupleset"]["relation"]))
        if edge is None or list(edge.rewrite) != ["this"]:
            return None
        ways: list[frozenset[_Relation] | None] = []
        for subject in edge.subjects:
            relation = what["computedUserset"]["relation"]
            if (subject["type"], relation) not in self._rules:
                continue
            try:
                parent = ObjectType(subject["type"])
            except ValueError:
                return None
            if parent in _ASKED_FIRST and relation in self.implying(parent, Can.LIST_EVERYTHING.value):
                continue
            ways.append(self.walk((parent, relation), above) if parent in _LOOKED_AT else None)
        return _all_of(ways)

    def inherited(self, type: ObjectType, relation: str, parent: ObjectType) -> str | None:
        """A relation on the parent that alone gives `relation` here: an arm `… from parent` of nothing but unions."""
        edge = self._rules.get((type.value, _PARENT))
        if edge is None or list(edge.rewrite) != ["this"] or not any(_only(s, parent) for s in edge.subjects):
            return None
        arms: set[str] = set()
        for name in self.implying(type, relation):
            arms.update(_from_parent(self._rules[type.value, name].rewrite))
        return min((arm for arm in arms if (parent.value, arm) in self._rules), default=None)

    def implying(self, type: ObjectType, relation: str) -> set[str]:
        """The relations of the type of which each alone gives `relation`, itself among them."""
        found: set[str] = set()
        open_ones = [relation]
        while open_ones:
            name = open_ones.pop()
            rule = self._rules.get((type.value, name))
            if rule is not None and name not in found:
                found.add(name)
                open_ones += _alternatives(rule.rewrite)
        return found


def _is_granted(at: _Relation, rule: _Rule) -> bool:
    """Whether tuples of this relation come from grants (or are derived from them) and name principals one by one."""
    type, relation = at
    kinds = [{key: each[key] for key in ("type", "relation", "wildcard") if each.get(key)} for each in rule.subjects]
    # A wildcard is an empty object, which is there or not.
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
    what = rewrite.get("tupleToUserset")
    if what is not None:
        return [what["computedUserset"]["relation"]] if what["tupleset"]["relation"] == _PARENT else []
    if rewrite.get("union") is not None:
        return [name for child in rewrite["union"]["child"] for name in _from_parent(child)]
    return []


def _only(subject: Mapping[str, Any], parent: ObjectType) -> bool:
    """Whether the edge's subjects of this kind are objects of the type, under no condition."""
    return (
        subject["type"] == parent.value
        and not any(subject.get(key) for key in ("relation", "condition"))
        and subject.get("wildcard") is None
    )


def _all_of(ways: list[frozenset[_Relation] | None]) -> frozenset[_Relation] | None:
    known = [way for way in ways if way is not None]
    return frozenset().union(*known) if len(known) == len(ways) else None
