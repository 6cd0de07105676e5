# SPDX-License-Identifier: Apache-2.0
"""Describe the reason of a row: the grants that give the right, as far as the caller may read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.answer_lists import Fact
from gateway.access.principals import principal_answer
from gateway.access.tuples import READ_COLUMNS, Principal, PrincipalType
from gateway.features.answers.holdings import Holding, Holdings
from gateway.features.grants.grant_lists import Whereabouts, resource_of
from gateway.fga.access_profiles import Profiles
from gateway.fga.evaluation import HeldTuple
from gateway.fga.relationships import TRAVERSE

_Rank = tuple[bool, int, bool, bool, float, str]


@dataclass(frozen=True, slots=True)
class Reason:
    """The facts that together give a right.

    `object` is the highest object at which the reason lies, and `end` the time after which it does not hold. Both are
    None if the caller may not read one of the facts. `end_unknown` is True if there may be an end that is not shown.
    """

    holdings: tuple[Holding, ...]
    object: ObjectKey | None
    end: datetime | None
    end_unknown: bool


@dataclass(frozen=True, slots=True)
class Reasons:
    """Finds the reasons of principals.

    `distance` is the number of levels from the object asked about up to each container. `readable` are the objects
    whose assignments the caller may read.
    """

    profiles: Profiles
    holdings: Holdings
    distance: Mapping[ObjectKey, int]
    readable: Set[ObjectKey]

    def of(self, principal: Principal) -> Reason:
        """Return the reason of a principal that has the relation.

        Facts that the caller may read have precedence, then those on higher objects, and those that end later. So the
        reason does not depend on hidden facts if it can be given without them.
        """
        tuples = self.holdings.tuples_of(principal)
        left = self.profiles.reason(tuples, lambda held: self._rank(principal, held))
        known = [holding for held in left if (holding := self.holdings.holding_of(principal, held)) is not None]
        found = _in_order(principal, known)
        if any(holding[2] not in self.readable for holding in found):
            # Rows group actions by reason. Different hidden facts must be one reason, as they are shown as one.
            return Reason((), None, None, end_unknown=True)
        objects = [holding[2] for holding in found if holding[2] in self.distance]
        lowest = min(objects, key=self.distance.__getitem__, default=None)
        ends = [held.until for held in left if held.until is not None]
        derived = any(holding[1] in (TRAVERSE, READ_COLUMNS) for holding in found)
        return Reason(found, lowest, None if derived else min(ends, default=None), end_unknown=derived)

    def _rank(self, principal: Principal, held: HeldTuple) -> _Rank:
        holding = self.holdings.holding_of(principal, held)
        if holding is None:
            return (False, 0, False, False, 0.0, "")
        _, relation, key = holding
        height = -self.distance.get(key, 0)
        ends = -held.until.timestamp() if held.until is not None else 0.0
        derived = relation in (TRAVERSE, READ_COLUMNS)
        return (key not in self.readable, height, derived, held.until is not None, ends, f"{held.user} {relation}")


def _in_order(principal: Principal, holdings: Sequence[Holding]) -> tuple[Holding, ...]:
    """Return the facts from the principal on: each membership precedes the facts of its role."""
    found: list[Holding] = []
    left = [principal]
    for holder in left:
        own = [each for each in holdings if each[0] == holder and each not in found]
        found += sorted(own, key=lambda each: each[2].type is not ObjectType.ROLE)
        left += [Principal(PrincipalType.ROLE, key.id) for _, _, key in own if key.type is ObjectType.ROLE]
    return tuple(found)


def facts_of(reason: Reason, holdings: Holdings, where: Whereabouts) -> list[Fact]:
    """Return the facts of a reason in the form of a response."""
    if reason.end_unknown and reason.object is None:
        return [Fact(fact="another grant")]
    return [_fact(each, holdings, where) for each in reason.holdings]


def objects_of(reasons: Sequence[Reason]) -> list[ObjectKey]:
    """Return the objects that the facts of the reasons are on."""
    return list(dict.fromkeys(key for each in reasons for _, _, key in each.holdings))


def _fact(holding: Holding, holdings: Holdings, where: Whereabouts) -> Fact:
    principal, relation, key = holding
    grant = holdings.grant_of(holding)
    holder = principal_answer(principal.type, principal.id)
    if grant is None:
        return Fact(fact="contents", principal=holder, resource=resource_of(key, where))
    return Fact(
        fact="membership" if key.type is ObjectType.ROLE else "grant",
        privilege=relation,
        principal=holder,
        resource=resource_of(key, where),
        granted_by=grant.granted_by,
        created_at=grant.granted_at,
        reason=grant.reason,
        expires_at=grant.expires_at,
    )
