# SPDX-License-Identifier: Apache-2.0
"""Which columns of a table somebody may read: those that PostgreSQL and OpenFGA both call granted.

Rows say which to ask about, so that nobody asks about a thousand columns; relationships say whether it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.engines import Engines
from gateway.access.ports import Pin, Question, Resolver
from gateway.access.privileges import Privilege
from gateway.access.refs import Ref, column_key
from gateway.access.relations import Can
from gateway.access.resolved import ResolvedTable


class GrantedColumns:
    """Columns by field id, of tables by what they were asked for as. What has none is in no answer."""

    def __init__(self, resolver: Resolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    async def recorded(self, actor: Actor, rows: Mapping[Ref, ResolvedTable]) -> dict[Ref, frozenset[int]]:
        """What PostgreSQL has on record, by one statement."""
        if not rows:
            return {}
        known = await self._resolver.columns(actor, [row.id for row in rows.values()])
        return {ref: fields for ref, row in rows.items() if (fields := known.get(row.id))}

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
