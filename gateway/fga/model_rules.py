# SPDX-License-Identifier: Apache-2.0
"""Check a compiled model against the rules of `fga_model/README.md` and the needs of the gateway. Pure.

The tests of the package's model and `lakegate model check` use the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.access.nouns.cards import LEVELS
from gateway.access.nouns.refs import ObjectType

Model = Mapping[str, Any]

#: The level of each type in the hierarchy. A step to a type with a larger number goes down.
HEIGHT: Final[Mapping[str, int]] = {type.value: level for type, level in LEVELS.items() if type is not ObjectType.USER}

#: The only relation that accepts a wildcard subject: a flag of an object, which grants nothing.
_FLAG: Final = "managed_access"
#: The relations that `but not` may exclude: the flag of the object itself, and the flag inherited from the objects
#: above it.
_EXCLUDABLE: Final = frozenset({_FLAG, "managed_access_inheritance"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule. `type` and `relation` are its position in the model.

    Without a type it concerns the whole model, without a relation the whole type.
    """

    type: str | None
    relation: str | None
    text: str

    def __str__(self) -> str:
        at = (
            "the model" if self.type is None else self.type if self.relation is None else f"{self.type}#{self.relation}"
        )
        return f"{at} {self.text}"


def model_faults(model: Model, shipped: Model) -> list[Fault]:
    """Return the broken rules of `model`, at most one for each relation.

    `shipped` is the model of the package: it contains every relation that the gateway checks, writes or grants.
    """
    found: dict[tuple[str | None, str | None], Fault] = {}
    checks = (
        condition_faults(model, shipped),
        _type_faults(model, shipped),
        stray_wildcards(model),
        actions_of_all_users(model),
        exclusions(model, shipped),
        downward_subjects(model),
        downward_steps(model),
        assignable_actions(model),
        relation_faults(model, shipped),
    )
    for fault in (each for faults in checks for each in faults):
        found.setdefault((fault.type, fault.relation), fault)
    return list(found.values())


def subjects(model: Model, type_name: str, relation: str) -> list[Mapping[str, Any]]:
    """Return the directly assignable subject types of a relation. Raises KeyError if the model lacks the type."""
    for each in model["type_definitions"]:
        if each["type"] == type_name:
            about = ((each.get("metadata") or {}).get("relations") or {}).get(relation) or {}
            return list(about.get("directly_related_user_types") or [])
    raise KeyError(type_name)


def downward_steps(model: Model) -> list[Fault]:
    """Return a fault for every `X from Y` in which Y may lead to a type on the same level or below."""
    found = []
    for here, relation, definition in _relations(model):
        for node in _rewrites(definition):
            step = node.get("tupleToUserset")
            if step is None:
                continue
            via = step["tupleset"]["relation"]
            for parent in subjects(model, here, via):
                same = here == parent["type"] == "namespace" and via == "parent"
                plain = set(parent) == {"type"}
                if not plain or not (same or _height(parent["type"]) < _height(here)):
                    found.append(Fault(here, relation, f"goes down by {via} to {parent}"))
    return found


def downward_subjects(model: Model) -> list[Fault]:
    """Return a fault for every relation that can be assigned to a userset of another object.

    `select: [table#describe]` on a warehouse would inherit from a descendant without any `X from Y`. Only the members
    of a role are allowed.
    """
    return [
        Fault(type_name, relation, f"takes {subject['type']}#{subject['relation']}")
        for type_name, relation, _ in _relations(model)
        for subject in subjects(model, type_name, relation)
        if subject.get("relation") and (subject["type"], subject["relation"]) != ("role", "assignee")
    ]


def stray_wildcards(model: Model) -> list[Fault]:
    """Return a fault for every relation, except managed access, that allows a wildcard subject."""
    return [
        Fault(type_name, relation, "grants to all users: remove the subject with `:*`")
        for type_name, relation, _ in _relations(model)
        if relation != _FLAG and any("wildcard" in subject for subject in subjects(model, type_name, relation))
    ]


def actions_of_all_users(model: Model) -> list[Fault]:
    """Return a fault for every action that a wildcard tuple alone gives to every user.

    Managed access may only exclude users (`but not`), or restrict those of another relation (`and`).
    """
    held: set[tuple[str, str]] = set()
    known = -1
    while known != len(held):
        known = len(held)
        held |= {(here, name) for here, name, node in _relations(model) if _is_open(model, held, here, name, node)}
    return [
        Fault(here, relation, "is allowed to all users by managed_access: use it only in `but not`, or in `and`")
        for here, relation, _ in _relations(model)
        if relation.startswith("can_") and (here, relation) in held
    ]


def exclusions(model: Model, shipped: Model) -> list[Fault]:
    """Return a fault for every exclusion other than managed access, and for every change to the inheritance of managed
    access.

    A new grant must not take a right away: cached allows stay valid after it, and the expiry of credentials is searched
    on the assumption that rights are only lost with time. Managed access is a flag whose changes end cached allows.
    """
    original = {(here, relation): definition for here, relation, definition in _relations(shipped)}
    found = []
    for here, relation, definition in _relations(model):
        if relation in _EXCLUDABLE and definition != original.get((here, relation)):
            found.append(Fault(here, relation, "must be as in Lakegate's model"))
        for node in _rewrites(definition):
            excluded = {
                each["computedUserset"]["relation"]
                for each in _rewrites((node.get("difference") or {}).get("subtract"))
                if "computedUserset" in each
            }
            if others := sorted(excluded - _EXCLUDABLE):
                found.append(Fault(here, relation, f"excludes {others[0]}: `but not` may exclude only managed access"))
    return found


def assignable_actions(model: Model) -> list[Fault]:
    """Return a fault for every action (`can_*`) that can be granted.

    Actions must be computed: only privileges are granted.
    """
    return [
        Fault(type_name, relation, "is an action and cannot be granted: compute it from other relations")
        for type_name, relation, _ in _relations(model)
        if relation.startswith("can_") and subjects(model, type_name, relation)
    ]


def condition_faults(model: Model, shipped: Model) -> list[Fault]:
    """Return a fault for each condition that differs from the package's.

    The gateway stores and sends the parameters of `unexpired`.
    """
    here, there = (_conditions(each) for each in (model, shipped))
    return [
        Fault(None, f"condition {name}", f"must have exactly the condition {name} of Lakegate's model")
        if name in there
        else Fault(None, f"condition {name}", f"has the condition {name}, for which the gateway sends no values")
        for name in sorted({*here, *there})
        if here.get(name) != there.get(name)
    ]


def relation_faults(model: Model, shipped: Model) -> list[Fault]:
    """Return a fault for each relation whose absence or change breaks the gateway.

    They are relations that the gateway checks and the model lacks, and changed or added assignable relations. The
    gateway writes and removes the tuples of the assignable relations. A tuple of another relation would escape the
    audit log, revocation and reconciliation.
    """
    mine = {(type_name, relation): definition for type_name, relation, definition in _relations(model)}
    types = {each["type"] for each in model["type_definitions"]}
    found = []
    for type_name, relation, definition in _relations(shipped):
        takes = _as_set(subjects(shipped, type_name, relation))
        if type_name not in types or not (takes or relation.startswith("can_")):
            continue
        if (type_name, relation) not in mine:
            found.append(Fault(type_name, relation, "is missing, and the gateway requires it"))
        elif takes and _as_set(subjects(model, type_name, relation)) != takes:
            found.append(Fault(type_name, relation, f"must accept exactly the subjects [{', '.join(sorted(takes))}]"))
        elif takes and mine[type_name, relation] != definition:
            found.append(Fault(type_name, relation, "can be granted and must not be computed: change the derived ones"))
    known = {(type_name, relation) for type_name, relation, _ in _relations(shipped)}
    for type_name, relation in mine:
        added = (type_name, relation) not in known or not subjects(shipped, type_name, relation)
        if added and subjects(model, type_name, relation):
            found.append(
                Fault(type_name, relation, "cannot be granted by the gateway: compute it from existing relations")
            )
    return found


def _type_faults(model: Model, shipped: Model) -> list[Fault]:
    here, there = ({each["type"] for each in each_model["type_definitions"]} for each_model in (model, shipped))
    missing = [Fault(name, None, "is missing, and the gateway requires this type") for name in sorted(there - here)]
    return missing + [
        Fault(name, None, "is a type that the gateway does not have: remove it") for name in sorted(here - there)
    ]


def _relations(model: Model) -> Iterator[tuple[str, str, Any]]:
    """Yield (type, relation, definition) of every relation."""
    for each in model["type_definitions"]:
        for relation, definition in (each.get("relations") or {}).items():
            yield each["type"], relation, definition


def _is_open(model: Model, held: set[tuple[str, str]], here: str, relation: str, node: Mapping[str, Any]) -> bool:
    """Return True if a wildcard tuple alone satisfies `node`. `held` are the relations for which this is already known.

    Exclusions by `but not` are ignored: the other users would still get the right.
    """
    match node:
        case {"this": _}:
            return any("wildcard" in subject for subject in subjects(model, here, relation))
        case {"computedUserset": {"relation": other}}:
            return (here, other) in held
        case {"tupleToUserset": {"tupleset": {"relation": via}, "computedUserset": {"relation": other}}}:
            return any((parent["type"], other) in held for parent in subjects(model, here, via))
        case {"union": {"child": children}}:
            return any(_is_open(model, held, here, relation, each) for each in children)
        case {"intersection": {"child": children}}:
            return all(_is_open(model, held, here, relation, each) for each in children)
        case {"difference": {"base": base}}:
            return _is_open(model, held, here, relation, base)
    return False


def _rewrites(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object inside of the definition of a relation."""
    if isinstance(node, Mapping):
        yield node
        for value in node.values():
            yield from _rewrites(value)
    elif isinstance(node, list):
        for value in node:
            yield from _rewrites(value)


def _height(type_name: str) -> int:
    """Return the level of a type in the hierarchy. An unknown type is below all others."""
    return HEIGHT.get(type_name, max(HEIGHT.values()) + 1)


def _as_set(found: list[Mapping[str, Any]]) -> set[str]:
    """Return subject types in the notation of `.fga` files."""
    return {
        each["type"]
        + (f"#{each['relation']}" if each.get("relation") else "")
        + (":*" if "wildcard" in each else "")
        + (f" with {each['condition']}" if each.get("condition") else "")
        for each in found
    }


def _conditions(model: Model) -> dict[str, tuple[str, Any]]:
    return {
        name: (each["expression"], each.get("parameters")) for name, each in (model.get("conditions") or {}).items()
    }
