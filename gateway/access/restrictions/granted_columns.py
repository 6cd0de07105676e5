# SPDX-License-Identifier: Apache-2.0
"""Determine the columns of a table that a principal may read: those granted in both PostgreSQL and OpenFGA.

PostgreSQL's rows select the columns to check, so that a table with a thousand columns does not need a thousand checks.
OpenFGA decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.door.engines import Engines
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import UNUSED_ID, Ref, column_key
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, ResolvedTable
from gateway.access.ports import Pin, Question, Resolver

_AT_A_TIME: Final = 16


class GrantedColumns:
    """Looks up granted columns, by field id, for references to tables. Tables without any are left out."""

    def __init__(self, resolver: Resolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    async def recorded(self, actor: Actor, rows: Mapping[Ref, ResolvedTable]) -> dict[Ref, frozenset[int]]:
        """Return the columns with grants in PostgreSQL, by one statement.

        If no table exists, it queries an unused id, so that requests for absent tables take the same time.
        """
        known = await self._resolver.columns(actor, [row.id for row in rows.values()] or [UUID(UNUSED_ID)])
        return {ref: fields for ref, row in rows.items() if (fields := known.get(row.id))}

    async def excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        """Yield (id, excerpt) for tables and views (`Resolver.excerpts`).

        Few are read at a time, because the excerpt of a wide table takes a megabyte.
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
        """Return the `recorded` columns that OpenFGA confirms. Raises DecisionEngineUnavailable."""
        column_pairs = [(ref, field) for ref, fields in recorded.items() for field in sorted(fields)]
        questions = [
            # The hint lets the adapter list the caller's columns in one call. It then checks only columns outside of
            # the list.
            Question(Can.READ_DATA, column_key(rows[ref].id, field), rows[ref].warehouse.revision, Privilege.SELECT)
            for ref, field in column_pairs
        ]
        if not questions:
            return {}
        answers = await self._engines.check(actor, questions, now, pin)
        found: dict[Ref, set[int]] = {}
        for (ref, field), yes in zip(column_pairs, answers, strict=True):
            if yes:
                found.setdefault(ref, set()).add(field)
        return {ref: frozenset(fields) for ref, fields in found.items()}
