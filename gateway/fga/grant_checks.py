# SPDX-License-Identifier: Apache-2.0
"""Answer a question about a relation by confirming one grant in OpenFGA, which costs less than the whole question.

To answer a question, OpenFGA evaluates every way in which the caller could have the relation. A grant on the object or
on a container that is enough for the relation is only one tuple. So PostgreSQL returns the grants of the caller and of
its roles, OpenFGA confirms one of them and the membership in its role, and the model shows that they are enough. A
confirmed grant of a role is used for all members of the role and for everything in the container.

The rows of PostgreSQL only determine which checks are sent to OpenFGA. There is one exception: OpenFGA is not called if
the caller sees the object and has no grant that could give the relation (`DecidingGrants.necessary`). Then the rows
refuse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cachetools import LRUCache

from gateway.access.actor import Actor, ActorKind
from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.door.list_visibility import TRAVERSE
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import GrantRows, Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.cache import MemoryObserver
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.names import object_of
from gateway.fga.relationships import FgaRelationships, subject_of, to_wire
from gateway.fga.sufficient_grants import DecidingGrants, deciding_grants
from gateway.fga.wire import FgaTuple

#: The maximum number of questions in one call, of a caller's roles, and of rows that are looked up. If a number is
#: exceeded, OpenFGA checks the questions without these rows.
_QUESTIONS: Final = 20
_ROLES: Final = 20
_KEYS: Final = 1_000
#: `traverse` has no rows. Beside the question itself, OpenFGA checks it for at most this number of the caller's roles.
_TRAVERSING_ROLES: Final = 3
_REFUSED_SECONDS: Final = 5.0
_REFUSALS: Final = 2_000

_ASSIGNEE: Final = "assignee"

_Levels = tuple[ObjectType, ...]
# (scope, check)
_Key = tuple[str, FgaTuple]


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """A confirmed check.

    It is valid until `until` by the database's clock, and until `forgotten_at` by the process's clock.
    """

    until: datetime | None
    forgotten_at: float


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A grant that would be enough for a question: its row, and the checks that OpenFGA must confirm."""

    key: TupleKey
    checks: tuple[FgaTuple, ...]


@dataclass(frozen=True, slots=True)
class _Caller:
    """The caller of a request: its subject in OpenFGA, its principals by the rows, and the scopes of cached checks.

    `server` is the scope of checks that depend on no warehouse, `warehouse` that of all others. It is None for absent
    objects, whose checks are not cached: the revision of their warehouse is unknown.
    """

    subject: str
    principals: tuple[Principal, ...]
    server: str
    warehouse: str | None
    groups: str
    pin: Pin

    def key(self, check: FgaTuple) -> _Key | None:
        """Return the cache key of a check; None if the check is not cached.

        Checks about the members of a role are the same for all callers. All other checks depend on the groups of the
        caller.
        """
        scope = self.server if check.relation == _ASSIGNEE else self.warehouse
        if scope is None:
            return None
        return (f"{scope} {self.groups}" if check.user == self.subject else scope), check

    def candidate(self, principal: Principal, privilege: str, object: ObjectKey) -> _Candidate:
        key = TupleKey(principal, privilege, object)
        grant = to_wire(key)
        if principal.type is PrincipalType.USER:
            return _Candidate(key, (grant,))
        return _Candidate(key, (FgaTuple(self.subject, _ASSIGNEE, object_of("role", principal.id)), grant))


@dataclass(slots=True)
class _Open:
    """A question that has no result yet, with the objects and the grants that decide about it."""

    question: Question
    objects: tuple[ObjectKey, ...]
    deciding: DecidingGrants
    checks: tuple[FgaTuple, ...] = ()

    def candidates(self, caller: _Caller, grants: Sequence[Set[str]]) -> Iterator[_Candidate]:
        """Yield the candidates among `grants`. Those that may also answer most other questions come first."""
        for principal in caller.principals:
            for object, privileges in reversed(list(zip(self.objects, grants, strict=True))):
                for privilege in sorted(privileges):
                    yield caller.candidate(principal, privilege, object)


class GrantCheckedRelationships:
    """Implements `gateway.access.ports.Relationships`. Confirms single grants before it sends whole questions.

    `rows` reads recorded grants, `followed` the model in use, whose id is `model_id()`. `server_id` is the id of the
    server object; without it, no grant on the server is considered. With `complete`, rights that only OpenFGA has may
    be refused, because drift detection removes or adopts them. A confirmed check is used for at most `seconds`.
    """

    def __init__(
        self,
        relationships: FgaRelationships,
        followed: FollowedReaches,
        rows: GrantRows,
        *,
        model_id: Callable[[], str],
        server_id: str | None,
        complete: bool,
        entries: int = 20_000,
        seconds: float,
        observer: MemoryObserver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._relationships = relationships
        self._followed = followed
        self._rows = rows
        self._model_id = model_id
        self._server = () if server_id is None else (ObjectKey(ObjectType.SERVER, server_id),)
        self._complete = complete
        self._seconds = seconds
        self._observer = observer
        self._clock = clock
        self._confirmed: LRUCache[_Key, _Confirmed] = LRUCache(maxsize=max(entries, 1))
        self._refused: LRUCache[_Key, float] = LRUCache(maxsize=_REFUSALS)
        self._deciding: tuple[str, dict[tuple[Can, _Levels], DecidingGrants | None]] = ("", {})

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order. Raises the errors of `FgaRelationships.check_with`."""
        model_id = self._model_id()
        caller = None if pin is None else _caller(actor, questions, pin, model_id)
        if caller is None or self._seconds <= 0:
            return await self._relationships.check(actor, questions, now=now, paced=paced)
        unique = dict.fromkeys(questions)
        pending = [each for question in unique if (each := await self._open(question, caller, model_id)) is not None]
        left = [each for each in pending if not self._is_answered(each, caller, now)]
        known = {each.question: True for each in pending}
        for each in left:
            del known[each.question]
        self._observer.count_lookups("grants", hits=len(known), misses=len(left))
        without_rows = [each for each in left if not each.checks]
        seen = {each.object for each in unique if each.seen or each in known}
        refused = await self._choose(without_rows, caller, seen) if without_rows else set()
        known |= dict.fromkeys(refused, False)
        further = dict.fromkeys(check for each in left for check in each.checks)
        probing = {each.question for each in left if each.checks}
        asked = [each for each in unique if each not in known and each not in probing]
        traversing = {} if not asked else self._traversing([each for each in left if not each.checks], caller)
        missing = [check for check in [*further, *traversing] if not self._holds(caller.key(check), now)]
        answers, holding = await self._relationships.check_with(
            actor, asked, list(dict.fromkeys(missing)), now=now, paced=paced
        )
        known |= dict(zip(asked, answers, strict=True))
        if self._model_id() != model_id:
            # Another model became active during the reads. The relations may have another meaning in the new model.
            return await self._relationships.check(actor, questions, now=now, paced=paced)
        self._remember(caller, missing, holding, further)
        for each in left:
            if each.checks and all(check in holding or self._holds(caller.key(check), now) for check in each.checks):
                known[each.question] = True
        rest = [each for each in unique if each not in known]
        if rest:
            known |= dict(zip(rest, await self._relationships.check(actor, rest, now=now, paced=paced), strict=True))
        return [known[each] for each in questions]

    async def _open(self, question: Question, caller: _Caller, model_id: str) -> _Open | None:
        """Return the question with the grants that decide about it. Return None if only OpenFGA can decide it."""
        if (
            not question.inside
            or question.by is not None
            or (question.within is None) is not (caller.warehouse is None)
        ):
            return None
        objects = (question.object, *question.inside, *self._server)
        kind = question.relation, tuple(each.type for each in objects)
        if self._deciding[0] != model_id:
            self._deciding = model_id, {}
        known = self._deciding[1]
        if kind not in known:
            model = await self._followed.model(model_id)
            if model is None:
                return None
            known[kind] = deciding_grants(model, *kind)
        deciding = known[kind]
        return None if deciding is None else _Open(question, objects, deciding)

    def _is_answered(self, each: _Open, caller: _Caller, now: datetime) -> bool:
        """Return True if confirmed checks already give the result True for the question.

        If only the membership in a role is missing, `checks` is set to the checks to send.
        """
        for candidate in each.candidates(caller, each.deciding.sufficient):
            *membership, grant = candidate.checks
            if not self._holds(caller.key(grant), now):
                continue
            if all(self._holds(caller.key(check), now) for check in membership):
                return True
            if not each.checks and not any(self._is_refused(caller.key(check)) for check in membership):
                each.checks = candidate.checks
        return False

    async def _choose(self, pending: Sequence[_Open], caller: _Caller, seen: Set[ObjectKey]) -> set[Question]:
        """Choose the checks to send for each question, by the recorded grants.

        Return the questions about `seen` objects that no grant can allow. For other objects OpenFGA is called, so that
        an invisible object costs the same as an absent one.
        """
        keys: dict[TupleKey, None] = {}
        for each in pending:
            necessary = each.deciding.necessary if each.question.object in seen else None
            for grants in (each.deciding.sufficient, necessary):
                if grants is not None:
                    keys.update(dict.fromkeys(candidate.key for candidate in each.candidates(caller, grants)))
        keys = {key: None for key in keys if key.relation != TRAVERSE}
        if len(keys) > _KEYS:
            return set()
        try:
            recorded = await self._rows.recorded(list(keys)) if keys else frozenset()
        except DatabaseUnavailable:
            return set()
        refused = set()
        for each in pending:
            found = (one for one in each.candidates(caller, each.deciding.sufficient) if one.key in recorded)
            usable = (one for one in found if not any(self._is_refused(caller.key(check)) for check in one.checks))
            chosen = next(usable, None)
            if chosen is not None:
                each.checks = chosen.checks
            elif each.question.object in seen and self._is_impossible(each, caller, recorded):
                refused.add(each.question)
        return refused

    def _is_impossible(self, each: _Open, caller: _Caller, recorded: Set[TupleKey]) -> bool:
        necessary = each.deciding.necessary
        # Without the server's id, grants on the server are unknown.
        if necessary is None or not self._server or not self._complete:
            return False
        return not any(one.key in recorded for one in each.candidates(caller, necessary))

    def _traversing(self, asked: Sequence[_Open], caller: _Caller) -> dict[FgaTuple, None]:
        """Return checks whether roles of the caller have `traverse`. All members of a role share the result."""
        checks: dict[FgaTuple, None] = {}
        roles = [each for each in caller.principals if each.type is PrincipalType.ROLE][:_TRAVERSING_ROLES]
        for each in asked:
            if TRAVERSE not in each.deciding.sufficient[0]:
                continue
            for role in roles:
                checks.update(dict.fromkeys(caller.candidate(role, TRAVERSE, each.objects[0]).checks))
        return checks

    def _remember(
        self, caller: _Caller, checks: Sequence[FgaTuple], holding: Set[FgaTuple], recorded: Collection[FgaTuple]
    ) -> None:
        """Cache the `checks` that hold, and for a while those of `recorded` grants that do not hold.

        A check that does not hold decides nothing: the whole question is sent then. A check that no row suggested is
        not cached, so that the second request about an invisible object costs the same as one about an absent object.
        """
        moment = self._clock()
        confirmed = _Confirmed(caller.pin.next_expiry, moment + self._seconds)
        for check in checks:
            key = caller.key(check)
            if key is None:
                continue
            if check in holding:
                self._confirmed[key] = confirmed
            elif check in recorded:
                self._refused[key] = moment + _REFUSED_SECONDS

    def _holds(self, key: _Key | None, now: datetime) -> bool:
        found = None if key is None else self._confirmed.get(key)
        if found is None:
            return False
        return self._clock() < found.forgotten_at and (found.until is None or now < found.until)

    def _is_refused(self, key: _Key | None) -> bool:
        return key is not None and self._clock() < self._refused.get(key, 0.0)


def _caller(actor: Actor, questions: Sequence[Question], pin: Pin, model_id: str) -> _Caller | None:
    """Return the caller with the scopes of its cached checks. Return None if its questions cannot be answered by
    grants.

    The scopes contain the revisions of the server and of the warehouse as read before OpenFGA was called, so that a
    change that may revoke a grant or a membership ends them.
    """
    contained = [question for question in questions if question.inside]
    within = {question.within for question in contained if not question.above}
    if pin.roles is None or len(questions) > _QUESTIONS or len(pin.roles) > _ROLES or len(within) > 1 or not contained:
        return None
    if actor.kind is ActorKind.ANONYMOUS:
        return None
    roles = tuple(Principal(PrincipalType.ROLE, role) for role in pin.roles)
    user = () if actor.assumed_role is not None else (Principal(PrincipalType.USER, actor.id),)
    server = f"{pin.revision} {pin.time_boxes} {model_id}"
    warehouse = f"{server} {within.pop()}" if within else None
    # The subject of these checks names the user, or the assumed role.
    return _Caller(subject_of(actor)[0], (*roles, *user), server, warehouse, str(actor.groups_digest), pin)
