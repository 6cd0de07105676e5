# SPDX-License-Identifier: Apache-2.0
"""Compare the answers of two sets of policies to recorded decisions, and group those that differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from gateway.opa.decider import WireAnswer
from gateway.opa.replay_records import WHOLE, Recorded
from gateway.opa.syntax import Module, calls, constant_path

_TIME: Final = ("input", "context", "time")


class Difference(msgspec.Struct, frozen=True, order=True):
    """A kind of difference: what happens now, the operation, and the codes of the denials before or after.

    `kind` is `allow` (was denied), `deny` (was allowed), `weaker` or `stricter` (other obligations), or `error` (the
    new policies fail). A difference widens access if it is `allow` or `weaker`.
    """

    kind: str
    operation: str
    detail: tuple[str, ...] = ()

    @property
    def widens(self) -> bool:
        return self.kind in ("allow", "weaker")

    def __str__(self) -> str:
        return " ".join([self.kind, self.operation, *self.detail])


Answers = tuple[WireAnswer | None, WireAnswer | None]
"""The answers of the old and the new policies. An answer is None if the policies fail."""


class Group(msgspec.Struct):
    """The number of recorded decisions with a difference, one of them, and the ids of their callers if recorded."""

    difference: Difference
    count: int
    example: str
    principals: set[str]


def read_inputs(modules: Sequence[Module]) -> frozenset[str]:
    """Return the names of all fields that rules can read, with `WHOLE` for the whole input or its whole context."""
    found: set[str] = set()
    for module in modules:
        found.update(_strings(module.rules))
        for parts in module.references():
            path = constant_path(parts)
            if path[:1] == ("input",) and (len(path) == 1 or (path[1] == "context" and len(path) == 2)):
                found.add(WHOLE)
    return frozenset(found)


def time_is_only_parsed(modules: Sequence[Module]) -> bool:
    """Return True if rules read the time of a request only as the argument of `time.parse_rfc3339_ns`.

    Then an evaluation with an invalid time fails exactly if it reads the time. All other evaluations do not depend on
    it.
    """
    reads = parses = 0
    for module in modules:
        reads += sum(each == "time" for each in _strings(module.rules))
        for parts, arguments in calls(module.rules):
            if constant_path(parts) == ("time", "parse_rfc3339_ns") and arguments:
                parses += arguments[0].get("type") == "ref" and constant_path(arguments[0]["value"]) == _TIME
    return reads == parses and WHOLE not in read_inputs(modules)


def difference(operation: str, old: WireAnswer | None, new: WireAnswer | None) -> Difference | None:
    """Return how the answers differ; None if they do not. An answer is None if the policies fail."""
    if old is None or new is None:
        return None if old is new else Difference("error" if new is None else "allow", operation, ("failed",))
    if old.allow != new.allow:
        codes = tuple(sorted({each.code for each in (old if new.allow else new).reasons}))
        return Difference("allow" if new.allow else "deny", operation, codes)
    if old.allow and old.obligations != new.obligations:
        return Difference(_obliges(old, new), operation, _changed(old, new))
    return None


def combined(
    operation: str, answers: Answers, related: tuple[bool, bool], relations: Iterable[str]
) -> Difference | None:
    """Return how the decision differs if both policies and relations decide it; None if it does not.

    `related` is whether the old and the new relationship model give the demanded relations. `relations` are those that
    differ.
    """
    old, new = answers
    if related[0] == related[1]:
        return difference(operation, old, new) if related[0] else None
    answer = new if related[1] else old
    if answer is None or not answer.allow:
        return None
    return Difference("allow" if related[1] else "deny", operation, tuple(relations))


def grouped(found: Iterable[tuple[Recorded, Difference]]) -> list[Group]:
    """Return the differences with the number of records and an example, those that widen access first."""
    groups: dict[Difference, Group] = {}
    for recorded, difference in found:
        group = groups.setdefault(difference, Group(difference, 0, recorded.example, set()))
        group.count += recorded.count
        if recorded.asked is not None:
            group.principals.add(recorded.asked.actor.id)
    return sorted(groups.values(), key=lambda each: (not each.difference.widens, each.difference))


def _obliges(before: WireAnswer, after: WireAnswer) -> str:
    """Return `stricter` if the new obligations contain the old ones, else `weaker`."""
    left, right = before.understood(), after.understood()
    if not (left.allow and right.allow):
        return "stricter" if left.allow else "weaker"
    return "stricter" if left.obligations.merged(right.obligations) == right.obligations else "weaker"


def _changed(before: WireAnswer, after: WireAnswer) -> tuple[str, ...]:
    left, right = (msgspec.to_builtins(each.obligations) for each in (before, after))
    return tuple(sorted(name for name in {*left, *right} if left.get(name) != right.get(name)))


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "string" and isinstance(node.get("value"), str):
            yield node["value"]
        for value in node.values():
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)
