# SPDX-License-Identifier: Apache-2.0
"""Decide by the rows too, while OpenFGA has not received a revocation: its tuple may still be there.

A revocation removes the row of its grant before OpenFGA confirms that it removed the tuple. If OpenFGA answers checks
and accepts no writes, it goes on allowing by that tuple. So for as long as a revocation that may concern the caller is
pending, only that is allowed which follows from the rows as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.decisions.authorizers import Authorizer, NarrowedRelationships
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.ports import Pin, Question, Relationships, Revocations


class RevocationAwareRelationships:
    """Implementation of `gateway.access.ports.Relationships` that narrows `usual` by `rows`, while revocations pend.

    `complete` is True if OpenFGA has no rights beyond those of the rows. Otherwise a right of OpenFGA alone cannot be
    told from a revoked one, and the question has no answer.
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
        """Return one answer per question, in order. Raises the errors of `usual` and of `rows`, and
        DecisionEngineUnavailable for a right that cannot be told from a revoked one.

        The revocations are read before OpenFGA is queried: a delivery between the two is part of OpenFGA's answer.
        """
        settled = pin is not None and not pin.revocations_pending
        if settled or not questions or not await self._revocations.pending(actor):
            return await self._usual.check(actor, questions, now=now, pin=pin, paced=paced)
        answers = await self._usual.check(actor, questions, now=now, pin=pin, paced=paced)
        narrowed = await self._narrowing.narrow(actor, questions, answers, now=now)
        if not self._complete and narrowed != answers:
            raise DecisionEngineUnavailable("a revocation of the caller is not delivered to OpenFGA yet")
        return narrowed
