# SPDX-License-Identifier: Apache-2.0
"""Compute which directly granted relations, on an object and on its containers, imply a relation of the model.

The result for one chain of containers is a formula in disjunctive normal form. Its terms are all prime implicants, so
two formulas can be compared term by term. A term can have excluded facts (`but not`). Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gateway.access.nouns.refs import ObjectType
from gateway.fga.model_analysis import ParsedModel

MAX_TERMS: Final = 20_000
"""Limit of the terms of one formula. A larger formula is an error, never a partial result."""

EDGES: Final = ("parent", "project", "server")
"""The relations from an object to its container."""

_SUBSETS: Final = 10


class TooComplex(Exception):
    """A relation has more prime implicants than `MAX_TERMS`, so it cannot be compared."""


class Literal(NamedTuple):
    """A fact about the principal: it holds, or does not hold, a granted relation.

    `level` is the position in the chain: 0 is the object itself.
    """

    level: int
    relation: str
    holds: bool


Term = frozenset[Literal]
Formula = frozenset[Term]

NEVER: Final[Formula] = frozenset()


@dataclass(frozen=True, slots=True)
class Chain:
    """The types of an object and of its containers, upwards, and the relation that leads from each to the next."""

    types: tuple[ObjectType, ...]
    edges: tuple[str, ...]

    def label(self, level: int) -> str:
        """Return the name of a level: its type, with `+1`, `+2`, … for further namespaces above the first."""
        type = self.types[level]
        above = self.types[:level].count(type)
        return f"{type.value}+{above}" if above else type.value


def chains(models: Sequence[ParsedModel], type: ObjectType, depth: int) -> list[Chain]:
    """Return the chains of containers from `type` to the root, in any of the models.

    `depth` is the number of namespaces, the object itself included. Chains with fewer namespaces come first.
    """
    found = [Chain((type, *above.types), above.edges) for above in _above(models, type, depth)]
    return sorted(found, key=lambda chain: len(chain.types))


def _above(models: Sequence[ParsedModel], type: ObjectType, depth: int) -> Iterator[Chain]:
    left = depth - (type is ObjectType.NAMESPACE)
    steps = {(edge, parent) for model in models for edge in EDGES for parent in plain_parents(model, type, edge) or ()}
    ends = True
    for edge, parent in sorted(steps):
        if parent is ObjectType.NAMESPACE and left < 1:
            continue
        ends = False
        for rest in _above(models, parent, left):
            yield Chain((parent, *rest.types), (edge, *rest.edges))
    if ends:
        yield Chain((), ())


def plain_parents(model: ParsedModel, type: ObjectType, edge: str) -> list[ObjectType] | None:
    """Return the types to which an edge leads; None if the relation is not an edge to plain objects."""
    rule = model.rule(type, edge)
    if rule is None or list(kinds(rule.rewrite)) != ["this"]:
        return None
    if any(each.get("relation") or each.get("condition") or each.get("wildcard") is not None for each in rule.subjects):
        return None
    return [ObjectType(each["type"]) for each in rule.subjects]


def kinds(rewrite: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the kinds of a rewrite rule that are set: exactly one in a valid model."""
    return (kind for kind, value in rewrite.items() if value is not None)


class Implications:
    """The implications of one model along one chain. Results are kept, so that shared relations are computed once."""

    def __init__(self, model: ParsedModel, chain: Chain) -> None:
        self._model = model
        self._chain = chain
        self._known: dict[tuple[int, str], Formula] = {}
        self._path: dict[tuple[int, str], int] = {}
        self._recurred = len(chain.types) * 1_000

    def of(self, relation: str) -> Formula:
        """Return the prime implicants of a relation on the object; none if the model lacks it. Raises TooComplex."""
        return primes(self._relation(0, relation))

    def _relation(self, level: int, relation: str) -> Formula:
        node = level, relation
        if node in self._known:
            return self._known[node]
        if node in self._path:
            self._recurred = min(self._recurred, self._path[node])
            return NEVER
        rule = self._model.rule(self._chain.types[level], relation)
        if rule is None:
            return NEVER
        depth, outer, self._recurred = len(self._path), self._recurred, len(self._path) + 1
        self._path[node] = depth
        formula = self._rewrite(rule.rewrite, level, relation)
        del self._path[node]
        if self._recurred >= depth:
            # A formula that depends on an unfinished outer relation is valid only within that one.
            self._known[node] = formula
            self._recurred = outer
        self._recurred = min(self._recurred, outer)
        return formula

    def _rewrite(self, rewrite: Mapping[str, Any], level: int, relation: str) -> Formula:
        (kind,) = kinds(rewrite)
        inner = rewrite[kind]
        if kind == "this":
            return frozenset({frozenset({Literal(level, relation, True)})})
        if kind == "computedUserset":
            return self._relation(level, inner["relation"])
        if kind == "tupleToUserset":
            return self._from_above(level, inner["tupleset"]["relation"], inner["computedUserset"]["relation"])
        if kind == "union":
            return shortest(itertools.chain(*(self._rewrite(child, level, relation) for child in inner["child"])))
        if kind == "intersection":
            return all_of([self._rewrite(child, level, relation) for child in inner["child"]])
        return all_of(
            [self._rewrite(inner["base"], level, relation), negated(self._rewrite(inner["subtract"], level, relation))]
        )

    def _from_above(self, level: int, edge: str, relation: str) -> Formula:
        parents = plain_parents(self._model, self._chain.types[level], edge)
        if parents is None:
            # A step over another relation than an edge is a fact of its own, with the same name in both models.
            exists = self._model.rule(self._chain.types[level], edge) is not None
            return frozenset({frozenset({Literal(level, f"{relation} from {edge}", True)})}) if exists else NEVER
        above = level + 1
        if above == len(self._chain.types) or self._chain.edges[level] != edge:
            return NEVER
        return self._relation(above, relation) if self._chain.types[above] in parents else NEVER


def shortest(terms: Iterable[Term]) -> Formula:
    """Return the terms of which no other term is a part."""
    kept: set[Term] = set()
    for term in sorted(set(terms), key=len):
        if len(term) <= _SUBSETS:
            parts = (frozenset(part) for size in range(len(term)) for part in itertools.combinations(term, size))
            absorbed = any(part in kept for part in parts)
        else:
            absorbed = any(each <= term for each in kept)
        if not absorbed:
            kept.add(term)
    if len(kept) > MAX_TERMS:
        raise TooComplex(f"a relation of the model has more than {MAX_TERMS} minimal sets of facts")
    return frozenset(kept)


def all_of(sides: Sequence[Formula]) -> Formula:
    """Return the formula that holds if each of the sides holds. Raises TooComplex."""
    result: Formula = frozenset({frozenset()})
    for side in sides:
        if len(result) * len(side) > MAX_TERMS * 20:
            raise TooComplex(f"a relation of the model combines {len(result)} with {len(side)} sets of facts")
        result = shortest(left | right for left in result for right in side if not _contradict(left, right))
    return result


def negated(formula: Formula) -> Formula:
    """Return the formula that holds exactly if `formula` does not hold. Raises TooComplex."""
    return all_of([frozenset(frozenset({opposite(each)}) for each in term) for term in formula])


def opposite(literal: Literal) -> Literal:
    """Return the literal with the opposite value."""
    return literal._replace(holds=not literal.holds)


def primes(formula: Formula) -> Formula:
    """Return all prime implicants of a formula, by repeated consensus (Blake's canonical form). Raises TooComplex."""
    known = shortest(formula)
    while True:
        both = {each for term in known for each in term if not each.holds}
        both &= {opposite(each) for term in known for each in term if each.holds}
        if not both:
            return known
        found = set(known)
        for literal in both:
            without = [term - {literal} for term in known if literal in term]
            having = [term - {opposite(literal)} for term in known if opposite(literal) in term]
            found |= {left | right for left in without for right in having if not _contradict(left, right)}
        closed = shortest(found)
        if closed == known:
            return known
        known = closed


def implied(term: Term, formula: Formula) -> bool:
    """Return True if a term implies a formula of prime implicants."""
    return any(prime <= term for prime in formula)


def _contradict(left: Term, right: Term) -> bool:
    return any(opposite(each) in right for each in left)
