# SPDX-License-Identifier: Apache-2.0
"""The door's port to OpenFGA: who asks and what is asked, in the words of the model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gateway.access.actor import Actor, ActorKind
from gateway.access.ports import Pin, Question
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.tuples import EVERYBODY, MANAGED_ACCESS, PrincipalType, TupleKey
from gateway.fga.client import Condition, FgaClient, FgaTuple
from gateway.fga.names import member_of, object_of, role_members, user_object

#: The condition of time-boxed grants and its parameter in a question (`fga_model/core.fga`).
UNEXPIRED = "unexpired"
CURRENT_TIME = "current_time"


class FgaRelationships:
    """Implements `gateway.access.ports.Relationships`.

    Each question carries the database's time, which time-boxed grants are held against.
    """

    def __init__(self, client: FgaClient) -> None:
        self._client = client

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None
    ) -> list[bool]:
        """One answer per question, in order, always asked anew. Raises DecisionEngineUnavailable rather than guess.

        Under an assumed role the question is asked for a nameless user who is, for this question, a member of the role
        and nothing else. Asking for the role itself (`role:<id>#assignee`) would give other answers: a flag set for
        everybody (`managed_access`) is a tuple on `user:*`, and no wildcard matches the members of a role.
        """
        if not questions:
            return []
        subject, contextual = subject_of(actor)
        checks = [FgaTuple(subject, question.relation.value, object_name(question.object)) for question in questions]
        context = {CURRENT_TIME: rfc3339(now)}
        return await self._client.batch_check(checks, contextual=contextual, context=context)


def subject_of(actor: Actor) -> tuple[str, tuple[FgaTuple, ...]]:
    """(the user to ask for, the tuples that hold for this question only). Raises ValueError for an anonymous actor."""
    if actor.assumed_role is not None:
        member = member_of(actor.assumed_role)
        return member, (FgaTuple(member, "assignee", object_of("role", actor.assumed_role)),)
    if actor.kind is ActorKind.ANONYMOUS:
        raise ValueError("an anonymous caller has no relationships to ask about")
    return user_object(actor.id), ()


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
