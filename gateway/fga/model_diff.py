# SPDX-License-Identifier: Apache-2.0
"""Compare what two relationship models mean: which granted relations imply which relations, not their text.

Widened is what gives access in the new model and gave none in the old one; narrowed is the reverse. Every widened
implication needs a line in a file of acknowledgements, and no line may be stale. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.access.nouns.refs import ObjectType
from gateway.fga.compiled import relations_of
from gateway.fga.implications import Chain, Formula, Implications, Term, chains, implied, kinds
from gateway.fga.model_analysis import ParsedModel

DEPTH = 2
"""The default number of nested namespaces in the chains that are compared."""


class Fact(msgspec.Struct, frozen=True, order=True):
    """A relation that a principal holds directly, or must not hold if `holds` is false.

    `on` is the type of the object or of one of its containers; `namespace+1` is the namespace above a namespace.
    """

    on: str
    relation: str
    holds: bool = True

    def __str__(self) -> str:
        return f"{'' if self.holds else 'not '}{self.on}#{self.relation}"


class Implication(msgspec.Struct, frozen=True, order=True):
    """A minimal set of facts that gives the relation on an object of the type.

    `accepts` names a kind of subject that the relation can be granted to; then `facts` is empty.
    """

    type: str
    relation: str
    facts: tuple[Fact, ...] = ()
    accepts: str = ""

    def __str__(self) -> str:
        if self.accepts:
            return f"{self.type}#{self.relation} accepts {self.accepts}"
        return f"{self.type}#{self.relation} <- {' and '.join(map(str, self.facts)) or 'everybody'}"


class ModelDiff(msgspec.Struct, frozen=True):
    """The implications that only the new model has, and those that only the old model has.

    They are compared for objects below at most `depth` nested namespaces.
    """

    widened: tuple[Implication, ...]
    narrowed: tuple[Implication, ...]
    depth: int


class Acknowledgement(msgspec.Struct, frozen=True):
    """The comparison of the widened implications with a file: lines that it lacks, and lines that are stale."""

    missing: tuple[str, ...]
    stale: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Return True if the file lists exactly what widens."""
        return not (self.missing or self.stale)


def compare_models(old: Mapping[str, Any], new: Mapping[str, Any], depth: int = DEPTH) -> ModelDiff:
    """Return the implications by which two models differ, for actions and for relations that can be granted.

    Raises TooComplex for a relation with too many minimal sets of facts, and ValueError for a type that this version
    does not know.
    """
    before, after = ParsedModel(old), ParsedModel(new)
    relations: dict[ObjectType, set[str]] = {}
    for model, read in ((old, before), (new, after)):
        for type_name, defined in relations_of(model).items():
            type = ObjectType(type_name)
            relations.setdefault(type, set()).update(each for each in defined if _is_compared(read, type, each))
    widened: set[Implication] = set()
    narrowed: set[Implication] = set()
    for type, names in relations.items():
        for chain in reversed(chains((before, after), type, depth)):
            left, right = Implications(before, chain), Implications(after, chain)
            for name in names:
                was, becomes = left.of(name), right.of(name)
                _collect(widened, chain, name, becomes, was)
                _collect(narrowed, chain, name, was, becomes)
    widened |= {*_accepted(new)} - {*_accepted(old)}
    narrowed |= {*_accepted(old)} - {*_accepted(new)}
    return ModelDiff(tuple(sorted(widened)), tuple(sorted(narrowed)), depth)


def acknowledge(diff: ModelDiff, lines: Sequence[str] | None) -> Acknowledgement:
    """Compare what widens with the lines of a file. Empty lines and comments (`# …`) do not count.

    `lines` is None without a file: then everything that widens is missing.
    """
    stated = {line.strip() for line in lines or () if line.strip() and not line.lstrip().startswith("# ")}
    widened = {str(each) for each in diff.widened}
    return Acknowledgement(tuple(sorted(widened - stated)), tuple(sorted(stated - widened)))


def facts_of(chain: Chain, term: Term) -> tuple[Fact, ...]:
    """Return the facts of a term, those on the object first."""
    ordered = sorted(term, key=lambda each: (not each.holds, each.level, each.relation))
    return tuple(Fact(chain.label(each.level), each.relation, each.holds) for each in ordered)


def _is_compared(model: ParsedModel, type: ObjectType, relation: str) -> bool:
    rule = model.rule(type, relation)
    return relation.startswith("can_") or (rule is not None and bool(rule.subjects))


def _collect(found: set[Implication], chain: Chain, relation: str, now: Formula, other: Formula) -> None:
    """Add the terms of `now` that do not imply `other`, except those that a longer chain has with the same grants."""
    type = chain.types[0].value
    known = {_granted(each) for each in found if each.type == type and each.relation == relation}
    for term in now:
        if not implied(term, other):
            added = Implication(type, relation, facts_of(chain, term))
            if _granted(added) not in known:
                found.add(added)


def _granted(implication: Implication) -> frozenset[Fact]:
    return frozenset(each for each in implication.facts if each.holds)


def _accepted(model: Mapping[str, Any]) -> Iterator[Implication]:
    """Yield the kinds of subjects of each relation, and the conditions of the model with their text."""
    for each in model["type_definitions"]:
        for relation, about in ((each.get("metadata") or {}).get("relations") or {}).items():
            for subject in about.get("directly_related_user_types") or ():
                yield Implication(each["type"], relation, accepts=_subject(subject))
    for name, condition in (model.get("conditions") or {}).items():
        yield Implication("condition", name, accepts=condition["expression"].strip())


def _subject(subject: Mapping[str, Any]) -> str:
    """Return a kind of subject in the notation of `.fga` files."""
    relation = f"#{subject['relation']}" if subject.get("relation") else ""
    wildcard = ":*" if "wildcard" in kinds(subject) else ""
    condition = f" with {subject['condition']}" if subject.get("condition") else ""
    return f"{subject['type']}{relation}{wildcard}{condition}"
