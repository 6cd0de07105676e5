# SPDX-License-Identifier: Apache-2.0
"""The door's port to OpenFGA: who asks and what is asked, in the words of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.access.actor import Actor, ActorKind
from gateway.access.authz_errors import MAX_GROUP_ROLES, too_many_groups
from gateway.access.ports import Pin, Question
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.access.tuples import EVERYBODY, MANAGED_ACCESS, PrincipalType, TupleKey
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES, FgaClient
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.names import member_of, object_of, role_members, user_object
from gateway.fga.wire import Condition, FgaTuple

# (relation, object) that may be all that is needed to know.
_Hint = tuple[str, str]
# (relation, type of the objects, what they lie in).
_Group = tuple[Can, ObjectType, ObjectKey]
# Measured: one check of a relation that was granted directly costs OpenFGA and its database 1.5 ms, one object in a
# list of all that a caller has 0.03 ms. So a list pays from here on, and until it has named so many others for each.
_MANY = 100
_OTHERS_FOR_EACH = 40
# So many questions about what lies in the same thing are preceded by one about the thing: it answers all of them when
# the caller has the relation there, and costs an eighth more when not.
_TOGETHER = 8

#: The condition of time-boxed grants and its parameter in a question (`fga_model/core.fga`).
UNEXPIRED = "unexpired"
CURRENT_TIME = "current_time"


class FgaRelationships:
    """Implements `gateway.access.ports.Relationships`.

    Each question carries the database's time, which time-boxed grants are held against.
    """

    def __init__(self, client: FgaClient, reaches: FollowedReaches | None = None) -> None:
        self._client = client
        self._reaches = reaches

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """One answer per question, in order, always asked anew. Raises DecisionEngineUnavailable rather than guess.

        Under an assumed role the question is asked for a nameless user who is, for this question, a member of the role
        and nothing else. Asking for the role itself (`role:<id>#assignee`) would give other answers: a flag set for
        everybody (`managed_access`) is a tuple on `user:*`, and no wildcard matches the members of a role.
        """
        if not questions:
            return []
        subject, contextual = subject_of(actor)
        if len(contextual) > MAX_GROUP_ROLES:
            raise too_many_groups()
        contextual = (*contextual, *_places(questions, MAX_CONTEXTUAL_TUPLES - len(contextual)))
        asked = _Asked(self._client, subject, contextual, {CURRENT_TIME: rfc3339(now)}, paced)
        names = [object_name(question.object) for question in questions]
        quick = await self._by_hints(asked, questions, names)
        held = await self._by_containers(asked, questions)
        known = [
            (question.relation, question.by, name) in quick
            or (question.inside is not None and (question.relation, question.object.type, question.inside) in held)
            for question, name in zip(questions, names, strict=True)
        ]
        left = [
            FgaTuple(subject, question.relation.value, name)
            for question, name, yes in zip(questions, names, known, strict=True)
            if not yes
        ]
        slow = iter(await asked.check(left)) if left else iter(())
        return [yes or next(slow) for yes in known]

    async def _by_containers(self, asked: _Asked, questions: Sequence[Question]) -> set[_Group]:
        """Of the groups that many questions are about, those where the caller has the relation on all of the type that
        lies in the container.

        Where something lies is told by its row, which OpenFGA follows: so it will answer when it knows the row, and a
        list of the container answers so already.
        """
        about: dict[_Group, set[ObjectKey]] = {}
        for each in questions:
            if each.inside is not None:
                about.setdefault((each.relation, each.object.type, each.inside), set()).add(each.object)
        many = [group for group, objects in about.items() if len(objects) >= _TOGETHER]
        if self._reaches is None or not many:
            return set()
        model_id = self._client.model_id
        probes: dict[FgaTuple, set[_Group]] = {}
        for relation, type, inside in many:
            arm = await self._reaches.inherited(model_id, type.value, relation.value, inside.type.value)
            if arm is not None:
                probe = FgaTuple(asked.subject, arm, object_name(inside))
                probes.setdefault(probe, set()).add((relation, type, inside))
        answers = await asked.check(list(probes)) if probes else []
        held = {group for groups, yes in zip(probes.values(), answers, strict=True) if yes for group in groups}
        # By another model, which began to serve meanwhile, a relation may give something else.
        return held if self._client.model_id == model_id else set()

    async def _by_hints(
        self, asked: _Asked, questions: Sequence[Question], names: Sequence[str]
    ) -> set[tuple[Can, str | None, str]]:
        """The hints that are enough by the model that serves, and hold by it; each with what it is enough for."""
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
        held = await asked.by_hints({(by, name) for _, by, name in hints if by is not None}) if hints else set()
        # By another model, which began to serve meanwhile, a relation may give something else.
        return {hint for hint in hints if hint[1:] in held} if self._client.model_id == model_id else set()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all checks of one call share."""

    client: FgaClient
    subject: str
    contextual: Sequence[FgaTuple]
    context: Mapping[str, str]
    paced: bool

    async def check(self, checks: Sequence[FgaTuple]) -> list[bool]:
        return await self.client.batch_check(checks, contextual=self.contextual, context=self.context, paced=self.paced)

    async def by_hints(self, hints: Set[_Hint]) -> set[_Hint]:
        """The hints that hold: many of a kind are looked for in a list, few or what is left of many is checked."""
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


def _places(questions: Sequence[Question], room: int) -> tuple[FgaTuple, ...]:
    """Where stand-ins lie, for this question only; without them when there are more than there is room for."""
    placed: dict[FgaTuple, None] = {}
    for each in questions:
        below = each.object
        for above in each.above:
            placed[FgaTuple(object_name(above), "parent", object_name(below))] = None
            below = above
    return tuple(placed) if len(placed) <= room else ()


def subject_of(actor: Actor) -> tuple[str, tuple[FgaTuple, ...]]:
    """(the user to ask for, the tuples that hold for this question only: of an assumed role, or of groups).

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
    """The object as OpenFGA names it; a user's id is encoded."""
    return user_object(key.id) if key.type is ObjectType.USER else object_of(key.type.value, key.id)


def to_wire(key: TupleKey, *, expires_at: datetime | None = None) -> FgaTuple:
    """A recorded relationship as a tuple; with `expires_at` it holds until then.

    The subject of a flag is everybody of a type; of any other relation a principal called `*` is encoded as all are.
    """
    condition = None if expires_at is None else Condition(UNEXPIRED, {"expires_at": rfc3339(expires_at)})
    return FgaTuple(_subject(key), key.relation, object_name(key.object), condition)


def _subject(key: TupleKey) -> str:
    subject = key.subject
    if isinstance(subject, ObjectKey):
        return object_name(subject)
    if key.relation == MANAGED_ACCESS and subject.id == EVERYBODY:
        return f"{subject.type.value}:{EVERYBODY}"
    return role_members(subject.id) if subject.type is PrincipalType.ROLE else user_object(subject.id)


def rfc3339(moment: datetime) -> str:
    """`moment` in UTC, to the microsecond. Raises ValueError when it has no zone: a guess could outlive a grant."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {moment.isoformat()}")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
