# SPDX-License-Identifier: Apache-2.0
"""Decide correctly while OpenFGA has not yet received the tuples of new objects, or a revocation.

If OpenFGA refuses a check about a new object, the check is sent again with the tuples of its pending creation as
contextual tuples. The results are not cached.

A revocation removes the row of its grant before OpenFGA confirms that it removed the tuple. If OpenFGA answers checks
but accepts no writes, it continues to allow by that tuple. So while a revocation that may concern the caller is
pending, a check is allowed only if the rows allow it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gateway.access.actor import Actor
from gateway.access.decisions.authorizers import Authorizer, NarrowedRelationships
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectType
from gateway.access.ports import Creations, Pin, Question, Relationships, Revocations
from gateway.fga.relationships import FgaRelationships, to_wire

#: The types of objects whose creation can be pending. A warehouse is created by an administrator, and rarely.
_CREATED: Final = frozenset({ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})
#: Refused objects are looked up only if one call has at most this number of them, which bounds the cost.
_OBJECTS: Final = 1_000


class CreationAwareRelationships:
    """Implements `gateway.access.ports.Relationships`. Reads pending creations when `usual` refuses.

    `relationships` sends the checks with the tuples of these creations.
    """

    def __init__(self, usual: Relationships, relationships: FgaRelationships, creations: Creations) -> None:
        self._usual = usual
        self._relationships = relationships
        self._creations = creations

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order. Raises the errors of both implementations.

        Pending creations are read for absent objects too, which have none: so an absent and an invisible object cost
        the same. If the database does not respond, the results of `usual` are returned.
        """
        answers = await self._usual.check(actor, questions, now=now, pin=pin, paced=paced)
        if len(answers) != len(questions):
            # The caller rejects a wrong number of results.
            return answers
        refused = [
            question
            for question, answer in zip(questions, answers, strict=True)
            if answer is not True and question.object.type in _CREATED
        ]
        objects = list(dict.fromkeys(question.object for question in refused))
        if not objects or len(objects) > _OBJECTS:
            return answers
        try:
            creations = await self._creations.pending(objects)
        except DatabaseUnavailable:
            return answers
        if not creations:
            return answers
        tuples = [to_wire(key, expires_at=expires_at) for key, expires_at in creations.items()]
        again, _ = await self._relationships.check_with(actor, refused, (), now=now, paced=paced, creations=tuples)
        allowed = {question for question, answer in zip(refused, again, strict=True) if answer is True}
        return [answer is True or question in allowed for question, answer in zip(questions, answers, strict=True)]


class RevocationAwareRelationships:
    """Implements `gateway.access.ports.Relationships`. While revocations are pending, allows only what `rows` allows
    too.

    With `complete`, OpenFGA has no rights beyond those of the rows. Otherwise a right that only OpenFGA has may be a
    revoked one, so the question has no result.
    """

    def __init__(
        self, usual: Relationships, rows: Authorizer, revocations: Revocations, *, complete: bool = True
    ) -> None:
        self._usual = usual
        self._narrowing = NarrowedRelationships(usual, [rows])
        self._revocations = revocations
        self._complete = complete

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order.

        Raises the errors of `usual` and of `rows`. Raises DecisionEngineUnavailable for a right that may be a revoked
        one. Pending revocations are read before OpenFGA is queried: a delivery in between is part of OpenFGA's result.
        """
        settled = pin is not None and not pin.revocations_pending
        if settled or not questions or not await self._revocations.pending(actor):
            return await self._usual.check(actor, questions, now=now, pin=pin, paced=paced)
        answers = await self._usual.check(actor, questions, now=now, pin=pin, paced=paced)
        narrowed = await self._narrowing.narrow(actor, questions, answers, now=now)
        if not self._complete and narrowed != answers:
            raise DecisionEngineUnavailable("a revocation of the caller is not delivered to OpenFGA yet")
        return narrowed
