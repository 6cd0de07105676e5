# SPDX-License-Identifier: Apache-2.0
"""Find the values of callers that rules cannot tell apart, so that one evaluation answers for many callers. Pure.

A field of the caller is replaced only if each rule that reads it compares it for equality with constants or policy
data. Two values that are not among these constants then have the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.opa.replay_records import Recorded
from gateway.opa.syntax import Module, calls, constant_path

_ACTOR: Final = ("input", "actor")
_DATA: Final = ("data", "policy_data")
_MEMBER: Final = ("internal", "member_2")
_COMPARES: Final = {("equal",), ("neq",), ("eq",), _MEMBER}
#: Names of operators in a syntax tree. A rule or an import of such a name replaces the operator.
_OPERATORS: Final = {each[0] for each in _COMPARES}
_SCALARS: Final = {"string", "number", "boolean", "null"}
_COLLECTIONS: Final = {"array", "set"}


class _Frame(msgspec.Struct):
    actor: dict[str, Any]
    context: msgspec.Raw


@dataclass(frozen=True, slots=True)
class CallerEquivalence:
    """Strings in these fields of the caller are replaced by `other` unless rules or policy data name them.

    `replaceable` is None if a rule reads the whole caller; then nothing is replaced. Else it maps each field that rules
    read to True if they only compare it. Fields without an entry are not read.
    """

    replaceable: Mapping[str, bool] | None
    named: Set[str]
    other: str

    def representative(self, frame: bytes) -> bytes:
        """Return the frame of a caller that has the same answers to all questions."""
        if self.replaceable is None:
            return frame
        given = msgspec.json.decode(frame, type=_Frame)
        for name, value in given.actor.items():
            if isinstance(value, str) and value not in self.named and self.replaceable.get(name, True):
                given.actor[name] = self.other
        return msgspec.json.encode(given)


def caller_equivalence(modules: Sequence[Module], policy_data: Sequence[Any]) -> CallerEquivalence:
    """Return which callers these policies cannot tell apart. `policy_data` are the decoded files `data.json`."""
    named = {each for module in modules for each in _strings(module.rules, in_tree=True)}
    named.update(each for each in _strings(list(policy_data), in_tree=False))
    return CallerEquivalence(_replaceable(modules), named, max(named, key=len, default="") + "-")


def merged(recorded: Sequence[Recorded], equivalence: CallerEquivalence) -> tuple[list[Recorded], list[int]]:
    """Return (the questions to evaluate, sorted by frame; for each recorded one the index of the question for it)."""
    frames: dict[bytes, bytes] = {}
    keys: list[tuple[bytes, bytes]] = []
    for each in recorded:
        if each.frame not in frames:
            frames[each.frame] = equivalence.representative(each.frame)
        keys.append((frames[each.frame], each.question))
    order = {key: index for index, key in enumerate(sorted(set(keys)))}
    return [Recorded(frame, question, "", "") for frame, question in order], [order[key] for key in keys]


def _replaceable(modules: Sequence[Module]) -> dict[str, bool] | None:
    """Return for each field of the caller that rules read True if they only compare it; None if it cannot be known."""
    reads: dict[str, int] = {}
    compared: dict[str, int] = {}
    for module in modules:
        if module.package[:1] == _DATA[1:] or _replaces_operators(module) or _has_with(module.rules):
            return None
        paths = [constant_path(parts) for parts in module.references() if _is_input(parts[0])]
        whole = any(len(path) < 2 or (path[1] == "actor" and len(path) == 2) for path in paths)
        if whole or len(paths) != sum(map(_is_input, _nodes([module.tree.get("imports") or [], module.rules]))):
            return None
        for path in paths:
            if path[:2] == _ACTOR:
                reads[path[2]] = reads.get(path[2], 0) + 1
        for name in _compared(module):
            compared[name] = compared.get(name, 0) + 1
    return {name: count == compared.get(name) for name, count in reads.items()}


def _compared(module: Module) -> Iterator[str]:
    """Yield the field of the caller in each comparison with a constant or with policy data."""
    for function, arguments in calls(module.rules):
        operator = constant_path(function)
        if operator not in _COMPARES or len(arguments) != 2:
            continue
        for field, value in (arguments, arguments[::-1]) if operator != _MEMBER else (arguments,):
            parts = field["value"] if field.get("type") == "ref" else []
            if parts and constant_path(parts)[:2] == _ACTOR and len(parts) == 3 and _is_constant(value):
                yield constant_path(parts)[2]


def _is_constant(term: Mapping[str, Any]) -> bool:
    """Return True for a constant, a list or set of constants, and a reference to policy data."""
    if term["type"] == "ref":
        return constant_path(term["value"])[:2] == _DATA
    if term["type"] in _COLLECTIONS:
        return all(each["type"] in _SCALARS for each in term["value"])
    return term["type"] in _SCALARS


def _replaces_operators(module: Module) -> bool:
    heads = [rule["head"]["ref"][0]["value"] for rule in module.rules]
    imports = module.tree.get("imports") or []
    aliases = [each.get("alias") or each["path"]["value"][-1]["value"] for each in imports]
    return not _OPERATORS.isdisjoint([*heads, *aliases])


def _is_input(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "var" and node["value"] == "input"


def _has_with(tree: Any) -> bool:
    return any(isinstance(node, dict) and "with" in node for node in _nodes(tree))


def _strings(tree: Any, *, in_tree: bool) -> Iterator[str]:
    for node in _nodes(tree):
        if isinstance(node, str) and not in_tree:
            yield node
        elif in_tree and isinstance(node, dict) and node.get("type") == "string" and isinstance(node["value"], str):
            yield node["value"]


def _nodes(tree: Any) -> Iterator[Any]:
    """Yield all nodes of a decoded JSON document. Names of fields are not nodes."""
    yield tree
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
