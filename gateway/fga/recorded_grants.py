# SPDX-License-Identifier: Apache-2.0
"""Answer a check with no, without OpenFGA, if no grant that it needs is recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.ports import Pin, Question, Relationships
from gateway.access.refs import TABULARS, ObjectType
from gateway.access.relations import Can
from gateway.fga.model_analysis import FollowedReaches

#: Loads ask for it to choose between credentials for reads and for writes. For most callers the answer is no, and only
#: yes is cached: without the rows, each load by a reader would be a check.
_ASKED_BY_LOADS: Final = Can.WRITE_DATA


class RecordedGrants(Protocol):
    """Reads recorded grants (PostgreSQL)."""

    async def __call__(self, caller: Actor, id: UUID, among: Collection[tuple[ObjectType, str]]) -> bool:
        """Return True if the caller or one of its roles holds one of the grants `among` on a tabular or above it."""
        ...


class RecordedRelationships:
    """Implementation of `gateway.access.ports.Relationships` that reads recorded grants before some checks.

    A missing row answers no, and never yes. It is read after the request began, and a grant is recorded before it is
    acknowledged: so a new grant is effective from the next request on. A tuple that was written into OpenFGA directly
    is effective when drift detection has recorded its grant.

    Only checks of write access alone are answered so. A caller without any other unanswered check sees the object. So
    absent and invisible objects cause the same calls as before.
    """

    def __init__(
        self,
        relationships: Relationships,
        *,
        reaches: FollowedReaches,
        model_id: Callable[[], str],
        recorded: RecordedGrants,
    ) -> None:
        self._relationships = relationships
        self._reaches = reaches
        self._model_id = model_id
        self._recorded = recorded

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one answer per question, in order. Raises the errors of both implementations."""
        if len(questions) == 1 and not await self._possible(actor, questions[0]):
            return [False]
        return await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)

    async def _possible(self, actor: Actor, question: Question) -> bool:
        """Return False if no recorded grant gives the relation."""
        if question.relation is not _ASKED_BY_LOADS or question.object.type not in TABULARS or question.above:
            return True
        model_id = self._model_id()
        needed = await self._reaches.grants_behind(model_id, question.object.type, question.relation.value)
        if needed is None:
            return True
        held = await self._recorded(actor, UUID(question.object.id), needed)
        # If another model serves now, the relation may need other grants, so the result is discarded.
        return held or self._model_id() != model_id
