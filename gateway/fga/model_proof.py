# SPDX-License-Identifier: Apache-2.0
"""Prove that no principal gains a right by another relationship model, or synthesize a world that shows the opposite.

The worlds have one user and a bounded number of objects of each type. Every tuple that one of the models admits is a
Boolean variable. Both models become formulas, which the solver Z3 compares. The formulas come from the walk that also
evaluates checks (`gateway.fga.evaluation`). Each synthesized world is evaluated again without the solver.

A tuple with an expiry is a variable of its own: it exists and has not expired. Each object has at most one container.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import z3

from gateway.fga.compiled import relations_of
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules, Node, Walk
from gateway.fga.implications import EDGES, kinds

USER: Final = "user:u"
_NOW: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATER: Final = _NOW + timedelta(days=1)


class Bounds(msgspec.Struct, frozen=True):
    """The number of namespaces and of roles in a world. There is one user, and one object of each other type."""

    namespaces: int = 2
    roles: int = 2


class SynthesizedWorld(msgspec.Struct, frozen=True):
    """Tuples with which only the new model gives the user the relation on the object. No tuple can be left out."""

    user: str
    relation: str
    object: str
    tuples: tuple[HeldTuple, ...]


class Undecided(Exception):
    """The solver found neither a proof nor a world in its time, or its world is not confirmed by the evaluation."""


def gained(
    old: Mapping[str, Any], new: Mapping[str, Any], bounds: Bounds, *, seconds: int = 300
) -> SynthesizedWorld | None:
    """Return a world in which the user gains an action by the new model; None if there is none within the bounds.

    Raises Undecided, and UnknownRule for a model with an unknown kind of rule.
    """
    objects = list(_objects((old, new), bounds))
    tuples = list(dict.fromkeys(_tuples((old, new), objects)))
    rules = ModelRules(old), ModelRules(new)
    before, after = (_Formulas(each, tuples, USER, _NOW) for each in rules)
    solver = z3.Solver()
    solver.set("timeout", seconds * 1_000)
    for edges in _edges_of(tuples).values():
        solver.add(z3.AtMost(*(_variable(each) for each in edges), 1))
    actions = {
        (relation, on)
        for model in (old, new)
        for on in objects
        for relation in relations_of(model).get(_type(on), ())
        if relation.startswith("can_")
    }
    gains = {
        (relation, on): z3.And(after.value(relation, on), z3.Not(before.value(relation, on)))
        for relation, on in sorted(actions)
    }
    solver.add(z3.Or(*gains.values()))
    verdict = solver.check()
    if verdict == z3.unsat:
        return None
    if verdict != z3.sat:
        raise Undecided(f"The solver did not decide within {seconds} seconds: {solver.reason_unknown()}.")
    model = solver.model()
    world = [each for each in tuples if z3.is_true(model.eval(_variable(each), model_completion=True))]
    for (relation, on), gain in gains.items():
        if z3.is_true(model.eval(gain, model_completion=True)):
            return _confirmed(rules, world, relation, on)
    raise Undecided("The solver returned a world without a gained right.")


class _Formulas(Walk[z3.BoolRef]):
    """Walks the rules over all possible tuples. The value of a check is the formula of the tuples that make it true."""

    def _recurring(self) -> z3.BoolRef:
        return z3.BoolVal(False)

    def _without_tuple(self, node: Node) -> z3.BoolRef:
        return z3.BoolVal(False)

    def _by(self, held: HeldTuple, further: z3.BoolRef | None) -> z3.BoolRef:
        return _variable(held) if further is None else z3.And(_variable(held), further)

    def _any(self, values: Iterable[z3.BoolRef]) -> z3.BoolRef:
        return z3.simplify(z3.Or(*values), local_ctx=True)

    def _all(self, values: Iterable[z3.BoolRef]) -> z3.BoolRef:
        return z3.And(*values)

    def _without(self, base: Mapping[str, Any], subtract: Mapping[str, Any], node: Node) -> z3.BoolRef:
        return z3.And(self._rule(base, node), z3.Not(self._rule(subtract, node)))


def _confirmed(
    rules: tuple[ModelRules, ModelRules], world: Sequence[HeldTuple], relation: str, on: str
) -> SynthesizedWorld:
    """Return the world without the tuples that are not needed. Raises Undecided unless the evaluation confirms it."""

    def is_gained(tuples: Sequence[HeldTuple]) -> bool:
        was, becomes = (Evaluation(each, tuples, USER, _NOW).holds(relation, on) for each in rules)
        return becomes and not was

    if not is_gained(world):
        raise Undecided(f"The evaluation does not confirm the solver's world for {relation} on {on}.")
    kept = list(world)
    for each in sorted(world, key=lambda each: "#" not in each.user):
        fewer = [other for other in kept if other != each]
        if is_gained(fewer):
            kept = fewer
    return SynthesizedWorld(USER, relation, on, tuple(kept))


def _objects(models: Sequence[Mapping[str, Any]], bounds: Bounds) -> Iterator[str]:
    numbers = {"namespace": bounds.namespaces, "role": bounds.roles}
    for type in dict.fromkeys(each["type"] for model in models for each in model["type_definitions"]):
        if type != "user":
            yield from (f"{type}:{number}" for number in range(numbers.get(type, 1)))


def _tuples(models: Sequence[Mapping[str, Any]], objects: Sequence[str]) -> Iterator[HeldTuple]:
    """Yield every tuple that one of the models admits between the objects. Namespaces lie in those before them."""
    for model in models:
        for definition in model["type_definitions"]:
            for relation, about in ((definition.get("metadata") or {}).get("relations") or {}).items():
                for subject in about.get("directly_related_user_types") or ():
                    for on in (each for each in objects if _type(each) == definition["type"]):
                        yield from _of_subject(subject, relation, on, objects)


def _of_subject(subject: Mapping[str, Any], relation: str, on: str, objects: Sequence[str]) -> Iterator[HeldTuple]:
    until = _LATER if subject.get("condition") else None
    type, userset = subject["type"], subject.get("relation")
    if "wildcard" in kinds(subject):
        names = [f"{type}:*"] if type == "user" else []
    elif type == "user":
        names = [USER]
    else:
        names = [each for each in objects if _type(each) == type and (userset or each < on or type != _type(on))]
    for name in names:
        held = f"{name}#{userset}" if userset else name
        if held != f"{on}#{relation}":
            yield HeldTuple(held, relation, on, until)


def _edges_of(tuples: Sequence[HeldTuple]) -> dict[str, list[HeldTuple]]:
    found: dict[str, list[HeldTuple]] = {}
    for each in tuples:
        if each.relation in EDGES:
            found.setdefault(each.object, []).append(each)
    return found


def _variable(held: HeldTuple) -> z3.BoolRef:
    return z3.Bool(f"{held.user} {held.relation} {held.object}{' expires' if held.until else ''}")


def _type(name: str) -> str:
    return name.partition(":")[0]
