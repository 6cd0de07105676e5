# SPDX-License-Identifier: Apache-2.0
"""Collect the reasons of a check: the minimal sets of tuples behind a yes, and the minimal grants that change a no.

The walk over the model is that of `gateway.fga.evaluation`. Its values here are sets of ways, as in the provenance of
a Datalog program with stratified negation: a union adds the ways of its terms, an intersection joins each way of one
term with each of the others, and an exclusion joins the ways of its base with the ways in which its second term is
false. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Final, NamedTuple

from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules, Node, Walk

#: The most ways that are kept for one relation on one object. The largest ones are dropped first.
_MOST: Final = 64


class Way(NamedTuple):
    """One way to a result.

    - `facts`: the tuples that it needs.
    - `absent`: the relations on objects that no further tuple may give to the user.
    - `spared`: the candidates that it must not contain.
    """

    facts: frozenset[HeldTuple]
    absent: frozenset[Node]
    spared: frozenset[HeldTuple]


class Ways(NamedTuple):
    """The ways in which a check is true, and those in which it is false.

    Without candidates exactly one of the two is empty.
    """

    yes: tuple[Way, ...]
    no: tuple[Way, ...]


_NOTHING: Final = Way(frozenset(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Witness:
    """A minimal set of tuples that gives a relation to a user.

    `absent` are relations on objects by which further tuples would take the relation away again. `until` is the first
    expiry of the tuples; None if none of them expires.
    """

    facts: frozenset[HeldTuple]
    absent: frozenset[Node]
    until: datetime | None


class _Provenance(Walk[Ways]):
    """Collects the ways of checks.

    The tuples of `candidates` may or may not exist. If they are given, only they are recorded in the ways.
    """

    def __init__(
        self,
        model: ModelRules,
        tuples: Iterable[HeldTuple],
        user: str,
        now: datetime,
        candidates: Set[HeldTuple] | None = None,
    ) -> None:
        super().__init__(model, [*tuples, *(candidates or ())], user, now)
        self._candidates = candidates
        self.was_cut = False
        # The tuples of which a further one could take the result away.
        self.excluded: set[HeldTuple] = set()

    def _recurring(self) -> Ways:
        return Ways((), (_NOTHING,))

    def _without_tuple(self, node: Node) -> Ways:
        absent = frozenset({node}) if self._candidates is None else frozenset[Node]()
        return Ways((), (Way(frozenset(), absent, frozenset()),))

    def _by(self, held: HeldTuple, further: Ways | None) -> Ways:
        some = frozenset({held})
        if self._candidates is None:
            own = Ways((_NOTHING._replace(facts=some),), ())
        elif held in self._candidates:
            own = Ways((_NOTHING._replace(facts=some),), (_NOTHING._replace(spared=some),))
        else:
            own = Ways((_NOTHING,), ())
        return own if further is None else self._all((own, further))

    def _any(self, values: Iterable[Ways]) -> Ways:
        some = tuple(values)
        return Ways(self._smallest(way for each in some for way in each.yes), self._joined([each.no for each in some]))

    def _all(self, values: Iterable[Ways]) -> Ways:
        some = tuple(values)
        return Ways(self._joined([each.yes for each in some]), self._smallest(way for each in some for way in each.no))

    def _without(self, base: Mapping[str, Any], subtract: Mapping[str, Any], node: Node) -> Ways:
        of, without = self._rule(base, node), self._rule(subtract, node)
        self.excluded.update(*(way.facts for way in (*without.yes, *without.no)))
        return Ways(self._joined([of.yes, without.no]), self._smallest([*of.no, *without.yes]))

    def _joined(self, sides: Sequence[tuple[Way, ...]]) -> tuple[Way, ...]:
        """Return each combination of one way of each side that contains no candidate which it must not contain."""

        def join(left: tuple[Way, ...], right: tuple[Way, ...]) -> tuple[Way, ...]:
            both = (
                Way(one.facts | other.facts, one.absent | other.absent, one.spared | other.spared)
                for one in left
                for other in right
            )
            return self._smallest(each for each in both if each.facts.isdisjoint(each.spared))

        return reduce(join, sides, (_NOTHING,))

    def _smallest(self, ways: Iterable[Way]) -> tuple[Way, ...]:
        """Return the ways that contain no other one, smallest first.

        Ways with equal tuples can differ in what they must not contain, so both parts are compared.
        """
        found: list[Way] = []
        for way in sorted(set(ways), key=lambda way: (len(way.facts), len(way.spared), len(way.absent), _order(way))):
            if not any(each.facts <= way.facts and each.spared <= way.spared for each in found):
                found.append(way)
        self.was_cut = self.was_cut or len(found) > _MOST
        return tuple(found[:_MOST])


def _order(way: Way) -> list[tuple[str, str, str]]:
    """Return a key by which the order of ways does not depend on the order of sets."""
    return sorted((each.object, each.relation, each.user) for each in way.facts)


def witnesses_of(
    model: ModelRules, tuples: Sequence[HeldTuple], user: str, now: datetime, relation: str, object: str
) -> tuple[list[Witness], bool]:
    """Return (the minimal witnesses of the user's relation, smallest first; True if there may be more of them).

    The list is empty if the user does not have the relation. Raises UnknownRule.
    """
    provenance = _Provenance(model, tuples, user, now)
    ways = provenance.value(relation, object).yes
    # A way that was compared with dropped ones only may contain more than it needs. So may one with a fact that an
    # exclusion names: two ways, with the fact and without it, can have a smaller one in common.
    is_minimal = not provenance.was_cut and all(provenance.excluded.isdisjoint(way.facts) for way in ways)
    found: dict[frozenset[HeldTuple], Witness] = {}
    for way in ways:
        facts = way.facts if is_minimal else _minimal(model, way.facts, tuples, user, now, relation, object)
        ends = [each.until for each in facts if each.until is not None]
        found.setdefault(facts, Witness(facts, way.absent, min(ends, default=None)))
    return sorted(found.values(), key=lambda each: (len(each.facts), _order(Way(each.facts, *_NOTHING[1:])))), (
        provenance.was_cut
    )


def _minimal(
    model: ModelRules,
    facts: Iterable[HeldTuple],
    world: Iterable[HeldTuple],
    user: str,
    now: datetime,
    relation: str,
    object: str,
) -> frozenset[HeldTuple]:
    """Return a subset of `facts` that gives the relation whatever else of the `world` exists, and of which no fact can
    be left out.
    """
    left = sorted(facts, key=lambda each: (each.object, each.relation, each.user))
    for fact in list(left):
        fewer = [each for each in left if each != fact]
        if not Evaluation(model, fewer, user, now).holds(relation, object):
            continue
        further = frozenset(world).difference(fewer)
        if not _Provenance(model, fewer, user, now, further).value(relation, object).no:
            left = fewer
    return frozenset(left)


def repairs_of(
    model: ModelRules,
    tuples: Sequence[HeldTuple],
    candidates: Set[HeldTuple],
    user: str,
    now: datetime,
    relation: str,
    object: str,
) -> tuple[list[frozenset[HeldTuple]], bool]:
    """Return (the minimal sets of candidates with which the user has the relation, smallest first; True if there may be
    more of them).

    The first set is empty if the user has the relation already. Raises UnknownRule.
    """
    provenance = _Provenance(model, [each for each in tuples if each not in candidates], user, now, candidates)
    found: list[frozenset[HeldTuple]] = []
    for way in provenance.value(relation, object).yes:
        if not any(each <= way.facts for each in found):
            found.append(way.facts)
    return found, provenance.was_cut
