# SPDX-License-Identifier: Apache-2.0
"""Implement the interface to OpenFGA that decisions use (`gateway.access.ports.Relationships`).

Callers and questions are converted to checks, and stored tuples to relationships. Every client with OpenFGA's API key
can write any tuple that the model allows. So stored tuples are parsed strictly: a tuple in another form than the
gateway writes is not one of the gateway's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Final
from uuid import UUID

from gateway.access.actor import Actor, ActorKind
from gateway.access.nouns.authz_errors import MAX_GROUP_ROLES, too_many_groups
from gateway.access.nouns.cards import CARDS, GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES, FgaClient
from gateway.fga.compiled import compiled_model, relations_of
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.names import InvalidPrincipalId, member_of, object_of, role_members, user_id_of, user_object
from gateway.fga.wire import Condition, FgaTuple

TRAVERSE: Final = "traverse"

#: The types of the parents of an object, by its type and the relation of the edge.
_EDGES: Final[Mapping[tuple[ObjectType, str], tuple[ObjectType, ...]]] = {
    (type, card.edge): card.parents for type, card in CARDS.items() if card.parents
}
_TRAVERSED: Final = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})
_FLAGGED: Final = frozenset({ObjectType.WAREHOUSE, ObjectType.NAMESPACE})


@dataclass(frozen=True, slots=True)
class StoredTuple:
    """A tuple that OpenFGA stores.

    - `key`: the relationship; None if no row can require this tuple.
    - `known`: False if the model of this version lacks the relation or a type, so the tuple has no effect.
    - `plain`: True if the gateway writes such conditions: no condition, or an expiry (`expires_at`).
    """

    raw: FgaTuple
    key: TupleKey | None
    known: bool
    plain: bool
    expires_at: datetime | None


def read_back(raw: FgaTuple) -> StoredTuple:
    """Convert a tuple that OpenFGA stores to the relationship that it represents."""
    plain, expires_at = _expiry(raw.condition)
    return StoredTuple(raw=raw, key=_key(raw), known=_known(raw), plain=plain, expires_at=expires_at)


def bare(key: TupleKey) -> FgaTuple:
    """Return the tuple of `key` without a condition, for reading or deleting it."""
    return to_wire(key)


@cache
def _relations() -> Mapping[str, Set[str]]:
    return relations_of(compiled_model())


def _known(raw: FgaTuple) -> bool:
    """Return True if the model of this version has the type, the relation and the type of the subject."""
    relations = _relations()
    return raw.relation in relations.get(_type(raw.object), ()) and _type(raw.user) in relations


def _type(name: str) -> str:
    return name.split(":", 1)[0]


def _key(raw: FgaTuple) -> TupleKey | None:
    on = _object(raw.object)
    if on is None:
        return None
    subject: Principal | ObjectKey | None = None
    if (parents := _EDGES.get((on.type, raw.relation))) is not None:
        subject = _object(raw.user)
        if subject is None or subject.type not in parents:
            return None
    elif raw.relation in GRANTABLE.get(on.type, ()) or _is_derived(raw.relation, on.type):
        subject = _principal(raw.user)
    elif raw.relation == MANAGED_ACCESS and on.type in _FLAGGED:
        subject = _all_users(raw.user)
    if subject is None:
        return None
    key = TupleKey(subject, raw.relation, on)
    try:
        return key if bare(key) == FgaTuple(raw.user, raw.relation, raw.object) else None
    except InvalidPrincipalId:
        return None


def _is_derived(relation: str, type: ObjectType) -> bool:
    return (relation == TRAVERSE and type in _TRAVERSED) or (relation == READ_COLUMNS and type is ObjectType.TABLE)


def _object(name: str) -> ObjectKey | None:
    """Parse an object in canonical form. Return None for users and other texts.

    Project ids are texts, the id of a column is `<uuid>.<field id>`, and all others are UUIDs.
    """
    type_name, _, id = name.partition(":")
    try:
        kind = ObjectType(type_name)
        if kind is ObjectType.USER or not id:
            return None
        if kind is ObjectType.COLUMN:
            id, _, field = id.partition(".")
            return column_key(id, int(field)) if str(UUID(id)) == id and str(abs(int(field))) == field else None
        if kind is not ObjectType.PROJECT and str(UUID(id)) != id:
            return None
    except ValueError:
        return None
    return ObjectKey(kind, id)


def _principal(name: str) -> Principal | None:
    try:
        if name.startswith("role:") and name.endswith("#assignee"):
            return Principal(PrincipalType.ROLE, str(UUID(name.removeprefix("role:").removesuffix("#assignee"))))
        return Principal(PrincipalType.USER, user_id_of(name))
    except ValueError:
        return None


def _all_users(name: str) -> Principal | None:
    type_name, _, id = name.partition(":")
    return (
        Principal(PrincipalType(type_name), ALL_USERS) if id == ALL_USERS and type_name in set(PrincipalType) else None
    )


def _expiry(condition: Condition | None) -> tuple[bool, datetime | None]:
    """Return (True if the gateway writes such a condition, the expiry in it or None)."""
    if condition is None or not condition.name:
        return True, None
    value = condition.context.get("expires_at")
    if condition.name != UNEXPIRED or set(condition.context) != {"expires_at"} or not isinstance(value, str):
        return False, None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False, None
    return moment.tzinfo is not None, moment if moment.tzinfo is not None else None


# (relation, object): a check that may suffice to answer a question.
_Hint = tuple[str, str]
# Key of questions that are grouped: (relation, type of the objects, container of the objects).
_Group = tuple[Can, ObjectType, ObjectKey]
# Measured costs of OpenFGA with its database: 1.5 ms for one check of a directly granted relation, and 0.03 ms for each
# object in a list of all objects of a caller. So from _MANY objects on, a list is cheaper than checks. The reading of a
# list ends after more than _OTHERS_FOR_EACH other objects for each object of the question.
_MANY = 100
_OTHERS_FOR_EACH = 40
# If at least this number of questions is about objects in one container, the container is checked first. If the caller
# has the relation there, this check answers all of the questions. If not, the cost grows by at most an eighth: one more
# check for eight questions.
_TOGETHER = 8

#: The condition of grants with an expiry, and its parameter in a check (`fga_model/core.fga`).
UNEXPIRED = "unexpired"
CURRENT_TIME = "current_time"


class FgaRelationships:
    """Implements `gateway.access.ports.Relationships` without a cache.

    Each check contains the database's time, which conditions compare with the expiry of grants.
    """

    def __init__(self, client: FgaClient, reaches: FollowedReaches | None = None) -> None:
        self._client = client
        self._reaches = reaches

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order. `pin` is ignored, because OpenFGA is queried in every call.

        Raises the errors of `check_with`.
        """
        return (await self.check_with(actor, questions, (), now=now, paced=paced))[0]

    async def check_with(
        self,
        actor: Actor,
        questions: Sequence[Question],
        further: Sequence[FgaTuple],
        *,
        now: datetime,
        paced: bool,
        creations: Sequence[FgaTuple] = (),
    ) -> tuple[list[bool], set[FgaTuple]]:
        """Return (one result for each question in order, those of the `further` checks that hold).

        The further checks are sent in the same batch as the questions. `creations` are sent as contextual tuples,
        unless there are more than OpenFGA accepts.

        For an assumed role the checks name a placeholder user. Contextual tuples make it a member of the role and
        nothing else. Checks of the role itself (`role:<id>#assignee`) would have other results: the flag
        `managed_access` is a tuple on `user:*`, and no wildcard matches the members of a role.

        Raises DecisionEngineUnavailable if any answer is missing or unclear, ValueError for an anonymous actor, and
        TooManyGroups for more than MAX_GROUP_ROLES roles by groups of the token.
        """
        if not questions and not further:
            return [], set()
        subject, contextual = subject_of(actor)
        if len(contextual) > MAX_GROUP_ROLES:
            raise too_many_groups()
        contextual = (*contextual, *contextual_containers(questions, MAX_CONTEXTUAL_TUPLES - len(contextual)))
        if len(contextual) + len(creations) <= MAX_CONTEXTUAL_TUPLES:
            contextual = (*contextual, *creations)
        run = _CheckRun(self._client, subject, contextual, {CURRENT_TIME: rfc3339(now)}, paced)
        names = [object_name(question.object) for question in questions]
        quick = await self._by_hints(run, questions, names)
        held = await self._by_containers(run, questions)
        known = [
            (question.relation, question.by, name) in quick
            or any((question.relation, question.object.type, parent) in held for parent in question.inside[:1])
            for question, name in zip(questions, names, strict=True)
        ]
        left = [
            FgaTuple(subject, question.relation.value, name)
            for question, name, yes in zip(questions, names, known, strict=True)
            if not yes
        ]
        results = await run.check([*left, *further]) if left or further else []
        slow = iter(results[: len(left)])
        holding = {each for each, holds in zip(further, results[len(left) :], strict=True) if holds}
        return [yes or next(slow) for yes in known], holding

    async def _by_containers(self, run: _CheckRun, questions: Sequence[Question]) -> set[_Group]:
        """Return the groups of questions for which the caller has an implying relation on the common container.

        A group has many questions about one relation and objects in one container. Some relation on the container
        implies the relation on all objects in it. The container of an object comes from its row. After a move, OpenFGA
        receives the new edge only at the delivery, so until then the result is that of the new place, as in a list of
        the container.
        """
        about: dict[_Group, set[ObjectKey]] = {}
        for each in questions:
            for parent in each.inside[:1]:
                about.setdefault((each.relation, each.object.type, parent), set()).add(each.object)
        many = [group for group, objects in about.items() if len(objects) >= _TOGETHER]
        if self._reaches is None or not many:
            return set()
        model_id = self._client.model_id
        probes: dict[FgaTuple, set[_Group]] = {}
        for relation, type, inside in many:
            arm = await self._reaches.inherited(model_id, type.value, relation.value, inside.type.value)
            if arm is not None:
                probe = FgaTuple(run.subject, arm, object_name(inside))
                probes.setdefault(probe, set()).add((relation, type, inside))
        answers = await run.check(list(probes)) if probes else []
        held = {group for groups, yes in zip(probes.values(), answers, strict=True) if yes for group in groups}
        # If another model is active now, the relation may imply something else, so the result is discarded.
        return held if self._client.model_id == model_id else set()

    async def _by_hints(
        self, run: _CheckRun, questions: Sequence[Question], names: Sequence[str]
    ) -> set[tuple[Can, str | None, str]]:
        """Return the hints that hold and are enough in the current model, as (relation of the question, hint,
        object).
        """
        if self._reaches is None:
            return set()
        model_id = self._client.model_id
        kinds = {(each.relation, each.object.type, each.by) for each in questions if each.by is not None}
        enough = {kind for kind in kinds if await self._reaches.enough(model_id, *kind)}
        hints = {
            (each.relation, each.by, name)
            for each, name in zip(questions, names, strict=True)
            if (each.relation, each.object.type, each.by) in enough
        }
        held = await run.by_hints({(by, name) for _, by, name in hints if by is not None}) if hints else set()
        # If another model is active now, the relation may imply something else, so the result is discarded.
        return {hint for hint in hints if hint[1:] in held} if self._client.model_id == model_id else set()


@dataclass(frozen=True, slots=True)
class _CheckRun:
    """The parameters that all checks of one call share."""

    client: FgaClient
    subject: str
    contextual: Sequence[FgaTuple]
    context: Mapping[str, str]
    paced: bool

    async def check(self, checks: Sequence[FgaTuple]) -> list[bool]:
        return await self.client.batch_check(checks, contextual=self.contextual, context=self.context, paced=self.paced)

    async def by_hints(self, hints: Set[_Hint]) -> set[_Hint]:
        """Return the hints that hold.

        If many hints have the same relation and type, OpenFGA lists the objects and only the rest is checked. All
        others are checked.
        """
        kinds: dict[tuple[str, str], set[str]] = {}
        for relation, name in hints:
            kinds.setdefault((relation, name.partition(":")[0]), set()).add(name)
        found: set[_Hint] = set()
        few: list[_Hint] = []
        for (relation, _), names in kinds.items():
            if len(names) < _MANY:
                few += [(relation, name) for name in names]
                continue
            confirmed = await self.client.confirmed(
                self.subject,
                relation,
                names,
                contextual=self.contextual,
                context=self.context,
                others=_OTHERS_FOR_EACH * len(names),
            )
            found.update((relation, name) for name in confirmed)
            few += [(relation, name) for name in names - confirmed]
        if few:
            held = await self.check([FgaTuple(self.subject, relation, name) for relation, name in few])
            found.update(hint for hint, holds in zip(few, held, strict=True) if holds)
        return found


def contextual_containers(questions: Sequence[Question], room: int) -> tuple[FgaTuple, ...]:
    """Return contextual tuples with the parents of absent objects. Return none at all if there are more than `room`."""
    placed: dict[FgaTuple, None] = {}
    for each in questions:
        below = each.object
        for above in each.above:
            placed[FgaTuple(object_name(above), CARDS[below.type].edge, object_name(below))] = None
            below = above
    return tuple(placed) if len(placed) <= room else ()


def subject_of(actor: Actor) -> tuple[str, tuple[FgaTuple, ...]]:
    """Return (user of the checks, contextual tuples with the memberships of an assumed role or of the actor's groups).

    Raises ValueError for an anonymous actor.
    """
    if actor.assumed_role is not None:
        member = member_of(actor.assumed_role)
        return member, (FgaTuple(member, "assignee", object_of("role", actor.assumed_role)),)
    if actor.kind is ActorKind.ANONYMOUS:
        raise ValueError("an anonymous caller has no relationships to ask about")
    user = user_object(actor.id)
    return user, tuple(FgaTuple(user, "assignee", object_of("role", role)) for role in actor.group_roles)


def object_name(key: ObjectKey) -> str:
    """Return the object's name in OpenFGA, with the id of a user encoded.

    Raises InvalidPrincipalId for an invalid id.
    """
    return user_object(key.id) if key.type is ObjectType.USER else object_of(key.type.value, key.id)


def to_wire(key: TupleKey, *, expires_at: datetime | None = None) -> FgaTuple:
    """Return a recorded relationship as a tuple. If `expires_at` is not None, its condition ends it at that time.

    Only the flag `managed_access` has the wildcard as its subject. In other relations the id `*` is encoded like every
    other id. Raises InvalidPrincipalId for an invalid id, and ValueError for an expiry without a time zone.
    """
    condition = None if expires_at is None else Condition(UNEXPIRED, {"expires_at": rfc3339(expires_at)})
    return FgaTuple(_subject(key), key.relation, object_name(key.object), condition)


def _subject(key: TupleKey) -> str:
    subject = key.subject
    if isinstance(subject, ObjectKey):
        return object_name(subject)
    if key.relation == MANAGED_ACCESS and subject.id == ALL_USERS:
        return f"{subject.type.value}:{ALL_USERS}"
    return role_members(subject.id) if subject.type is PrincipalType.ROLE else user_object(subject.id)


def rfc3339(moment: datetime) -> str:
    """Return `moment` in UTC as RFC 3339 text, to the microsecond.

    Raises ValueError for a time without a zone: an assumed zone could extend a grant.
    """
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {moment.isoformat()}")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
