# SPDX-License-Identifier: Apache-2.0
"""Decide which principals are rows of an answer, from the recorded grants on an object and its containers.

A principal that a role of the answer contains is no row, because the role can be expanded. It is one if it holds a
grant of its own that the caller may read, or if the caller may not read who is in the role. So the rows depend only on
what the caller may read, and on what a check of a single principal returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.db.answers.path_grants import Candidates, Sought, held_grants
from gateway.db.engine.database import Connection
from gateway.db.tuples.desired_tuples import desired_tuples
from gateway.db.tuples.held_tuples import structure_above
from gateway.features.answers.holdings import Holding, Holdings, structural
from gateway.features.answers.reasons import Reason, Reasons
from gateway.fga.access_profiles import Profiles, Relevance, relevance_of
from gateway.fga.answer_checks import ActiveModel, AnswerCheck
from gateway.fga.evaluation import HeldTuple
from gateway.fga.relationships import TRAVERSE, object_name


@dataclass(frozen=True, slots=True)
class Asker:
    """The rights of the caller: objects, roles among them, whose assignments it may read, and roles that it may see."""

    readable: frozenset[ObjectKey]
    visible_roles: frozenset[ObjectKey]


@dataclass(frozen=True, slots=True)
class AskedObject:
    """The object and the relation of a question, with what the recorded grants say about them.

    `distance` is the number of levels from the object up to each container, 0 for the object itself.
    """

    key: ObjectKey
    relation: str
    now: datetime
    profiles: Profiles
    relevance: Relevance
    distance: Mapping[ObjectKey, int]

    @classmethod
    async def read(
        cls, connection: Connection, key: ObjectKey, relation: str, model: ActiveModel, now: datetime
    ) -> AskedObject:
        """Read the containers of the object. Raises UnknownRule."""
        structure, _ = await structure_above(connection, [key])
        profiles = Profiles(model.rules, structural(structure), relation, object_name(key), now)
        relevance = relevance_of(model.parsed, key.type, relation)
        return cls(key, relation, now, profiles, relevance, distances(key, structure))

    def candidates(self, roles: Sequence[str] = (), opaque: Sequence[str] = ()) -> Candidates:
        """Return the principals that can have the relation.

        `roles` are those of `roles_below`. Direct members of the `opaque` ones are candidates too.
        """
        pairs = [
            (key, relation)
            for key in self.distance
            for type, relation in sorted(self.relevance.direct)
            if type is key.type and relation in GRANTABLE.get(type, ())
        ]
        return Candidates(
            sought=Sought(tuple(pairs)),
            containers=self._with(TRAVERSE),
            tables=self._with(READ_COLUMNS),
            combined=tuple(roles) if self.relevance.combines else (),
            opaque=tuple(opaque),
        )

    def every_candidate(self, roles: Sequence[str], *further: Principal) -> Candidates:
        """Return the candidates with the members of all `roles` of `roles_below`, and with the `further` ones.

        A role can have rights on itself without a grant.
        """
        own = (Principal(PrincipalType.ROLE, self.key.id),) if self.key.type is ObjectType.ROLE else ()
        return replace(self.candidates(roles, roles), further=(*own, *further))

    def _with(self, derived: str) -> tuple[ObjectKey, ...]:
        return tuple(key for key in self.distance if (key.type, derived) in self.relevance.direct)


def distances(key: ObjectKey, structure: Sequence[TupleKey]) -> dict[ObjectKey, int]:
    """Return the object and its containers, each with the number of levels between them."""
    above: dict[ObjectKey, list[ObjectKey]] = {}
    for each in structure:
        if isinstance(each.subject, ObjectKey):
            above.setdefault(each.object, []).append(each.subject)
    found, left = {key: 0}, [key]
    for below in left:
        for container in above.get(below, ()):
            if container not in found:
                found[container] = found[below] + 1
                left.append(container)
    return found


@dataclass(slots=True)
class Listing:
    """Judges candidates. `judged` collects the result for each candidate, `rows` the reason of each row.

    `profiles` collects the sets of tuples of candidates, each with a candidate that has them and its result.
    """

    asked: AskedObject
    asker: Asker
    expanded: bool
    judged: dict[Principal, bool] = field(default_factory=dict)
    rows: dict[Principal, tuple[Reason, Holdings]] = field(default_factory=dict)
    profiles: dict[frozenset[HeldTuple], tuple[Principal, bool]] = field(default_factory=dict)

    async def judge(self, connection: Connection, principals: Sequence[Principal]) -> list[bool]:
        """Return for each principal whether it is a row, in order. Raises UnknownRule."""
        holdings = await read_holdings(connection, principals, self.asked.candidates(), self.asked)
        judge = _Judge(self.asked.profiles, holdings, self.asked, self.asker, self.profiles)
        reasons = Reasons(self.asked.profiles, holdings, self.asked.distance, self.asker.readable)
        listed = []
        for each in principals:
            self.judged[each] = judge.holds(each)
            is_row = self.judged[each] and (self.expanded or judge.is_listed(each))
            if is_row:
                self.rows[each] = reasons.of(each), holdings
            listed.append(is_row)
        return listed

    def checks(self) -> dict[AnswerCheck, bool]:
        """Return the checks that confirm the results, each with its expected result.

        A user that is a row by one role is confirmed by its membership and by the right of the role, which OpenFGA then
        evaluates once for all members. This is equivalent unless the relation combines tuples of a principal.
        """
        found: dict[AnswerCheck, bool] = {}
        for principal, holds in self.judged.items():
            role = self._role_of(principal)
            if role is not None:
                found[AnswerCheck(principal, Privilege.ASSIGNEE.value, role)] = True
                principal = Principal(PrincipalType.ROLE, role.id)
            found[AnswerCheck(principal, self.asked.relation, self.asked.key)] = holds
        return found

    def _role_of(self, principal: Principal) -> ObjectKey | None:
        """Return the role that gives a user the relation; None for other principals and reasons."""
        if self.asked.relevance.combines or principal.type is PrincipalType.ROLE or principal not in self.rows:
            return None
        holdings = self.rows[principal][0].holdings
        own = [key for holder, _, key in holdings if holder == principal]
        by_role = len(own) == 1 and any(holder == Principal(PrincipalType.ROLE, own[0].id) for holder, _, _ in holdings)
        return own[0] if by_role else None


async def read_holdings(
    connection: Connection, principals: Sequence[Principal], candidates: Candidates, asked: AskedObject
) -> Holdings:
    """Read the grants that matter of the principals and of the roles that contain them."""
    grants = await held_grants(connection, principals, candidates.sought, now=asked.now)
    holders = dict.fromkeys(principals)
    holders |= {
        Principal(PrincipalType.ROLE, each.object_id): None for each in grants if each.object_type == ObjectType.ROLE
    }
    keys = [TupleKey(each, TRAVERSE, key) for each in holders for key in candidates.containers]
    keys += [TupleKey(each, READ_COLUMNS, key) for each in holders for key in candidates.tables]
    derived: dict[Holding, datetime | None] = {}
    for key, until in (await desired_tuples(connection, keys)).items():
        if isinstance(key.subject, Principal):
            derived[key.subject, key.relation, key.object] = until
    return Holdings(grants, derived, [asked.key])


async def holding(connection: Connection, principals: Sequence[Principal], asked: AskedObject) -> list[bool]:
    """Return for each principal, in order, whether it has the relation by the recorded grants. Raises UnknownRule."""
    holdings = await read_holdings(connection, principals, asked.candidates(), asked)
    return [asked.profiles.holds(holdings.tuples_of(each)) for each in principals]


@dataclass(slots=True)
class _Judge:
    """Decides about the principals whose grants were read together."""

    profiles: Profiles
    holdings: Holdings
    asked: AskedObject
    asker: Asker
    evaluated: dict[frozenset[HeldTuple], tuple[Principal, bool]]
    _holding: dict[Principal, bool] = field(default_factory=dict)

    def holds(self, principal: Principal) -> bool:
        """Return True if the principal has the relation."""
        if principal not in self._holding:
            tuples = self.holdings.tuples_of(principal)
            self._holding[principal] = holds = self.profiles.holds(tuples)
            self.evaluated.setdefault(tuples, (principal, holds))
        return self._holding[principal]

    def is_listed(self, principal: Principal) -> bool:
        """Return True if a principal with the relation is a row beside the roles of the answer."""
        if self._is_anchored(principal):
            return True
        if principal.type is PrincipalType.USER:
            return not any(map(self._expands, self.holdings.roles_of(principal)))
        return self._is_shown(principal) and not self._leads_to(self._is_anchored, principal, set())

    def _is_anchored(self, principal: Principal) -> bool:
        """Return True if the principal has a grant on the object or a container that the caller may read."""
        own = self.holdings.own(principal)
        return any(key in self.asked.distance and key in self.asker.readable for key in own)

    def _is_shown(self, role: Principal) -> bool:
        """Return True if the caller may know the role: it sees the role, or may read one of the role's grants."""
        if _key(role) in self.asker.visible_roles:
            return True
        return any(key in self.asker.readable for key in self.holdings.own(role))

    def _expands(self, role: Principal) -> bool:
        """Return True if the caller finds the role and its members in the answer."""
        return _key(role) in self.asker.readable and self._is_shown(role) and self.holds(role)

    def _leads_to(self, test: Callable[[Principal], bool], principal: Principal, seen: set[Principal]) -> bool:
        """Return True if the caller reaches the principal by expanding a role that passes the test."""
        for role in self.holdings.roles_of(principal):
            if role in seen or not self._expands(role):
                continue
            seen.add(role)
            if test(role) or self._leads_to(test, role, seen):
                return True
        return False


def _key(role: Principal) -> ObjectKey:
    return ObjectKey(ObjectType.ROLE, role.id)
