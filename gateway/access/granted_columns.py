# SPDX-License-Identifier: Apache-2.0
"""Which columns of a table somebody may read: those that PostgreSQL and OpenFGA both call granted.

Rows say which to ask about, so that nobody asks about a thousand columns; relationships say whether it holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.engines import Engines
from gateway.access.ports import Pin, Question, Resolver
from gateway.access.privileges import Privilege
from gateway.access.refs import NOBODY_HAS_THIS_ID, Ref, column_key
from gateway.access.relations import Can
from gateway.access.resolved import Excerpt, ResolvedTable

_AT_A_TIME: Final = 16


class GrantedColumns:
    """Columns by field id, of tables by what they were asked for as. What has none is in no answer."""

    def __init__(self, resolver: Resolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    async def recorded(self, actor: Actor, rows: Mapping[Ref, ResolvedTable]) -> dict[Ref, frozenset[int]]:
        """Return what PostgreSQL records, by one statement. Absent tables are in it too, so that they take as long."""
        known = await self._resolver.columns(actor, [row.id for row in rows.values()] or [UUID(NOBODY_HAS_THIS_ID)])
        return {ref: fields for ref, row in rows.items() if (fields := known.get(row.id))}

    async def excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        """Yield the ids of tables and views with what decisions need of their documents (`Resolver.excerpts`). Few are
        read at a time: a wide table's takes a megabyte.
        """
        for first in range(0, len(ids), _AT_A_TIME):
            for id, excerpt in (await self._resolver.excerpts(ids[first : first + _AT_A_TIME])).items():
                yield id, excerpt

    async def confirmed(
        self,
        actor: Actor,
        rows: Mapping[Ref, ResolvedTable],
        recorded: Mapping[Ref, frozenset[int]],
        *,
        now: datetime,
        pin: Pin | None,
    ) -> dict[Ref, frozenset[int]]:
        """What OpenFGA says yes to of what is `recorded`. Raises DecisionEngineUnavailable."""
        asked = [(ref, field) for ref, fields in recorded.items() for field in sorted(fields)]
        questions = [
            # Many of a kind are looked for among all that somebody was given, and checked where they are not named.
            Question(Can.READ_DATA, column_key(rows[ref].id, field), rows[ref].warehouse.revision, Privilege.SELECT)
            for ref, field in asked
        ]
        if not questions:
            return {}
        answers = await self._engines.check(actor, questions, now, pin)
        found: dict[Ref, set[int]] = {}
        for (ref, field), yes in zip(asked, answers, strict=True):
            if yes:
                found.setdefault(ref, set()).add(field)
        return {ref: frozenset(fields) for ref, fields in found.items()}
