# SPDX-License-Identifier: Apache-2.0
"""Derive from the relationship model which grants, on an object or its containers, are enough or needed for a relation.

A grant that is enough is one whose relation is a plain list of users and roles in the model. `sufficient` follows
unions and edges to the container and nothing else, so a definition with an exclusion, an intersection or another
condition than an expiry never makes a grant sufficient. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.access.door.list_visibility import TRAVERSE
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import TABULARS, ObjectType
from gateway.fga.model_analysis import ParsedModel, Rule, is_granted

#: The relations from an object to its container.
_EDGES: Final = frozenset({"parent", "project", "server"})
_EXPIRY: Final = "unexpired"

#: The types of objects to which users can request access.
REQUESTABLE: Final = (
    ObjectType.PROJECT,
    ObjectType.WAREHOUSE,
    ObjectType.NAMESPACE,
    ObjectType.ROLE,
    ObjectType.TAG,
    ObjectType.DATA_POLICY,
    *sorted(TABULARS),
)

_Privileges = frozenset[str]


@dataclass(frozen=True, slots=True)
class DecidingGrants:
    """The grants that decide about a relation on an object: one set of privileges for the object and for each
    container.

    A holder of one of the `sufficient` grants has the relation. A principal without any of the `necessary` grants does
    not have it; `necessary` is None if a principal can have the relation in another way.
    """

    sufficient: tuple[_Privileges, ...]
    necessary: tuple[_Privileges, ...] | None


def deciding_grants(model: ParsedModel, relation: str, levels: Sequence[ObjectType]) -> DecidingGrants | None:
    """Return the grants that decide about `relation` on an object of the type `levels[0]`.

    The other `levels` are the types of its containers, from its own container upwards. Return None for an unknown
    relation. Return None also if roles can have members that are not recorded: then the members of a role with a grant
    are not known.
    """
    if model.rule(levels[0], relation) is None:
        return None
    if not model.members_are_recorded() or not members_only_add(model):
        return None
    bound = _necessary(model, levels, 0, relation, frozenset())
    necessary = None
    if bound is not None:
        necessary = tuple(frozenset(name for at, name in bound if at == level) for level in range(len(levels)))
    return DecidingGrants(_sufficient(model, relation, levels), necessary)


def grants_that_give(model: ParsedModel, relations: Collection[str]) -> frozenset[tuple[str, str]] | None:
    """Return the (object type, privilege) of all grants of which a principal needs at least one to have a relation.

    They are grants on an object that can be requested, or on one of its containers. Return None if a principal can have
    a relation in another way.
    """
    found: set[tuple[str, str]] = set()
    for type in REQUESTABLE:
        levels = levels_above(type)
        for relation in relations:
            if model.rule(type, relation) is None:
                continue
            deciding = deciding_grants(model, relation, levels)
            if deciding is None or deciding.necessary is None:
                return None
            found |= {
                (level.value, name) for level, some in zip(levels, deciding.necessary, strict=True) for name in some
            }
    return frozenset(found)


def levels_above(type: ObjectType) -> list[ObjectType]:
    """Return the type and those of its containers, from its own container upwards, with one nested namespace."""
    levels = [type]
    while parents := CARDS[levels[-1]].parents:
        nested = levels[-1] in parents and levels[-2:] != [levels[-1]] * 2
        levels.append(levels[-1] if nested else next(each for each in parents if each is not levels[-1]))
    return levels


def members_only_add(model: ParsedModel) -> bool:
    """Return True if the memberships of roles are unions without exceptions, so that members of a member role are
    members too.
    """
    for name in model.implying(ObjectType.ROLE, "assignee"):
        rule = model.rule(ObjectType.ROLE, name)
        if rule is None or not _is_union_of_members(rule.rewrite) or not _expires_only(rule):
            return False
    return True


def _is_union_of_members(rewrite: Mapping[str, Any]) -> bool:
    (kind,) = (key for key, value in rewrite.items() if value is not None)
    if kind == "union":
        return all(_is_union_of_members(child) for child in rewrite["union"]["child"])
    return kind in ("this", "computedUserset")


def _expires_only(rule: Rule) -> bool:
    return all(each.get("condition") in (None, "", _EXPIRY) for each in rule.subjects)


def _sufficient(model: ParsedModel, relation: str, levels: Sequence[ObjectType]) -> tuple[_Privileges, ...]:
    found = []
    relations = {relation}
    for level, type in enumerate(levels):
        implying = set().union(*(model.implying(type, each) for each in relations))
        rules = {name: rule for name in implying if (rule := model.rule(type, name)) is not None}
        found.append(
            frozenset(name for name, rule in rules.items() if is_granted((type, name), rule) and _expires_only(rule))
        )
        above = levels[level + 1] if level + 1 < len(levels) else None
        relations = set()
        for rule in rules.values():
            relations.update(_inherited(model, rule.rewrite, type, above))
    return tuple(found)


def _inherited(model: ParsedModel, rewrite: Mapping[str, Any], type: ObjectType, above: ObjectType | None) -> list[str]:
    """Return the relations on the container each of which alone implies this rewrite."""
    if above is None:
        return []
    if rewrite.get("union") is not None:
        return [name for child in rewrite["union"]["child"] for name in _inherited(model, child, type, above)]
    inherits = rewrite.get("tupleToUserset")
    if inherits is None or inherits["tupleset"]["relation"] not in _EDGES:
        return []
    edge = model.rule(type, inherits["tupleset"]["relation"])
    return [inherits["computedUserset"]["relation"]] if edge is not None and _leads_to(edge, above) else []


def _leads_to(edge: Rule, above: ObjectType) -> bool:
    """Return True if a tuple of this edge, without a condition, can lead from an object to a container of the type."""
    plain = (
        each["type"] == above.value
        and not any(each.get(key) for key in ("relation", "condition"))
        and each.get("wildcard") is None
        for each in edge.subjects
    )
    return list(edge.rewrite) == ["this"] and any(plain)


def _necessary(
    model: ParsedModel,
    levels: Sequence[ObjectType],
    level: int,
    relation: str,
    open_ones: frozenset[tuple[int, str]],
) -> frozenset[tuple[int, str]] | None:
    """Return (level, privilege) of all grants of which a principal needs at least one; None if there are other ways."""
    if (level, relation) in open_ones:
        return frozenset()
    rule = model.rule(levels[level], relation)
    if rule is None:
        return frozenset()
    return _necessary_for(model, levels, level, relation, rule, rule.rewrite, open_ones | {(level, relation)})


def _necessary_for(
    model: ParsedModel,
    levels: Sequence[ObjectType],
    level: int,
    relation: str,
    rule: Rule,
    rewrite: Mapping[str, Any],
    open_ones: frozenset[tuple[int, str]],
) -> frozenset[tuple[int, str]] | None:
    def each_of(children: Sequence[Mapping[str, Any]]) -> list[frozenset[tuple[int, str]] | None]:
        return [_necessary_for(model, levels, level, relation, rule, child, open_ones) for child in children]

    (kind,) = (key for key, value in rewrite.items() if value is not None)
    inner = rewrite[kind]
    if kind == "this":
        # PostgreSQL has no row for `traverse`: it is derived from grants on the contents.
        recorded = is_granted((levels[level], relation), rule) and relation != TRAVERSE
        return frozenset({(level, relation)}) if recorded else None
    if kind == "computedUserset":
        return _necessary(model, levels, level, inner["relation"], open_ones)
    if kind == "union":
        return _all_of(each_of(inner["child"]))
    if kind == "intersection":
        # An intersection needs each of its sides, so the grants of one side are a valid bound.
        return min((side for side in each_of(inner["child"]) if side is not None), key=len, default=None)
    if kind == "difference":
        return each_of([inner["base"]])[0]
    edge = model.rule(levels[level], inner["tupleset"]["relation"]) if kind == "tupleToUserset" else None
    if edge is None or inner["tupleset"]["relation"] not in _EDGES or list(edge.rewrite) != ["this"]:
        return None
    if level + 1 == len(levels):
        return None
    if not any(each["type"] == levels[level + 1].value for each in edge.subjects):
        return None
    return _necessary(model, levels, level + 1, inner["computedUserset"]["relation"], open_ones)


def _all_of(
    ways: Sequence[frozenset[tuple[int, str]] | None],
) -> frozenset[tuple[int, str]] | None:
    known = [way for way in ways if way is not None]
    return frozenset().union(*known) if len(known) == len(ways) else None
