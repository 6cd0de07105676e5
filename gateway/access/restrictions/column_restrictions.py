# SPDX-License-Identifier: Apache-2.0
"""Determine the columns that a principal may read, and whether the engine can enforce that.

Columns must be granted in both PostgreSQL and OpenFGA. PostgreSQL's rows select the columns to check, so that a table
with a thousand columns does not need a thousand checks. OpenFGA decides. A caller that may read all of a table, or
nothing of it, causes no calls here.

The engine itself enforces restrictions, so it must be trusted on the table (`gateway.access.decisions.engine_trust`). A
header, or a bearer token that an engine forwards, proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.decisions.decision import DelegationRefusal, DemandAnswer
from gateway.access.decisions.engine_trust import trusted_tables
from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.door.engines import Engines
from gateway.access.door.questions import pin_of
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import UNUSED_ID, Ref, column_key
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, Resolution, ResolvedTable
from gateway.access.ports import Pin, Question, Resolver
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.projections import RestrictionNotExpressible, columns_of, held_back

_AT_A_TIME: Final = 16


class GrantedColumns:
    """Finds the granted columns of tables, by field id. Tables without granted columns are left out."""

    def __init__(self, resolver: Resolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    async def recorded(self, actor: Actor, rows: Mapping[Ref, ResolvedTable]) -> dict[Ref, frozenset[int]]:
        """Return the columns with grants in PostgreSQL, using one statement.

        If no table exists, the statement reads an unused id, so that requests for absent tables take the same time.
        """
        known = await self._resolver.columns(actor, [row.id for row in rows.values()] or [UUID(UNUSED_ID)])
        return {ref: fields for ref, row in rows.items() if (fields := known.get(row.id))}

    async def excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        """Yield (id, excerpt) for tables and views (`Resolver.excerpts`).

        Only a few are read at a time, because the excerpt of a wide table takes a megabyte.
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
        """Return those of the `recorded` columns that OpenFGA confirms. Raises DecisionEngineUnavailable."""
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


Judged = tuple[list[DemandAnswer], PolicyAnswer, DelegationRefusal | None]
"""(answers to the demands, answer of the policies, True if the engine may act for the caller) for one operation."""

#: Excerpts of more than this number of bytes are parsed in a thread, so that they do not block other requests.
_LARGE = 262_144


class ColumnRestrictions:
    """Adds a restriction to each demand that the caller meets only for some columns of a table."""

    def __init__(self, engines: Engines, columns: GrantedColumns) -> None:
        self._engines = engines
        self._columns = columns

    async def settle(self, actor: Actor, judged: Sequence[Judged], resolution: Resolution) -> list[Judged]:
        """Return the results, with a restriction for each demand that is met for some columns only.

        The restriction is set only if an enforcer acts for the caller. Raises DecisionEngineUnavailable.
        """
        partly = {answer.demand.on for answers, _, _ in judged for answer in answers if answer.partly}
        if not partly or actor.engine is None:
            return list(judged)
        rows = {ref: row for ref in partly if isinstance(row := resolution.get(ref), ResolvedTable)}
        ids = await trusted_tables(self._engines, actor, rows.values(), resolution)
        trusted = {ref: row for ref, row in rows.items() if row.id in ids}
        granted = await self._columns.confirmed(
            resolution.acting(actor),
            trusted,
            await self._columns.recorded(actor, trusted) if trusted else {},
            now=resolution.now,
            pin=pin_of(resolution),
        )
        found: dict[Ref, ReadableColumns | None] = {}
        refs_of_table: dict[UUID, list[Ref]] = {}
        for ref in granted:
            refs_of_table.setdefault(rows[ref].id, []).append(ref)
        async for id, excerpt in self._columns.excerpts(list(refs_of_table)):
            for ref in refs_of_table[id]:
                found[ref] = await _restriction(id, excerpt, granted[ref])
        return [
            ([replace(a, restriction=found.get(a.demand.on)) if a.partly else a for a in answers], policy, delegated)
            for answers, policy, delegated in judged
        ]


async def _restriction(table: UUID, excerpt: Excerpt, granted: frozenset[int]) -> ReadableColumns | None:
    """Return the restriction to the granted columns; None if it cannot be expressed, or no column is readable.

    A large excerpt is parsed in a thread.
    """
    if not granted:
        return None
    if len(excerpt.text) > _LARGE:
        return await asyncio.to_thread(restriction_under, table, excerpt, granted)
    return restriction_under(table, excerpt, granted)


def restriction_under(table: UUID, excerpt: Excerpt, granted: frozenset[int]) -> ReadableColumns | None:
    """Return the restriction to the granted columns; None if it cannot be expressed, or no column is readable.

    `excerpt` describes the table; its text may be a whole metadata document.
    """
    try:
        columns = columns_of(excerpt.text)
        readable = columns.readable(granted)
        if not readable:
            return None
        return ReadableColumns(str(table), readable, held_back(readable, columns), excerpt.metadata_location)
    except RestrictionNotExpressible:
        return None
