# SPDX-License-Identifier: Apache-2.0
"""Resolve column-level access and check that the engine can enforce it.

A caller that may read all of a table, or nothing of it, causes no calls here. The engine itself enforces restrictions,
so it must be trusted on the table (`gateway.access.decisions.engine_trust`). A header, or a bearer token that an engine
forwards, proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.decisions.decision import DelegationRefusal, DemandAnswer
from gateway.access.decisions.engine_trust import trusted_tables
from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.door.engines import Engines
from gateway.access.door.questions import pin_of
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import Excerpt, Resolution, ResolvedTable
from gateway.access.restrictions.granted_columns import GrantedColumns
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.projections import RestrictionNotExpressible, columns_of, held_back

Judged = tuple[list[DemandAnswer], PolicyAnswer, DelegationRefusal | None]
"""(answers to the demands, answer of the policies, True if the engine may act for the caller) for one operation."""

#: Longer excerpts, in bytes, are parsed in a thread, so that they do not block other requests.
_LARGE = 262_144


class ColumnRestrictions:
    """Resolves demands that hold for some columns only."""

    def __init__(self, engines: Engines, columns: GrantedColumns) -> None:
        self._engines = engines
        self._columns = columns

    async def settle(self, actor: Actor, judged: Sequence[Judged], resolution: Resolution) -> list[Judged]:
        """Return the results. Those that hold for some columns get a restriction if the engine is an enforcer.

        Raises DecisionEngineUnavailable.
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
    """Return the restriction to these columns; None if it cannot be expressed, or no column is left."""
    if not granted:
        return None
    if len(excerpt.text) > _LARGE:
        return await asyncio.to_thread(restriction_under, table, excerpt, granted)
    return restriction_under(table, excerpt, granted)


def restriction_under(table: UUID, excerpt: Excerpt, granted: frozenset[int]) -> ReadableColumns | None:
    """Return the restriction to these columns; None if it cannot be expressed, or no column is left.

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
