# SPDX-License-Identifier: Apache-2.0
"""Decide on which tables the engine that acts for a caller is trusted to enforce restrictions.

Restrictions are row filters, masks and withheld columns. An engine with storage keys of a restricted table can read all
of it. So three things must be proven. The engine and the caller each prove their identity by a token of their own. The
relation `enforcer` and a recent probe prove that the engine enforces restrictions.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.door.engines import Engines
from gateway.access.door.questions import containers_of, engine_pin_of
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedTable
from gateway.access.ports import Question


def enforcing(row: ResolvedTable) -> Question:
    """Return the question whether an engine is an enforcer on this table."""
    return Question(Can.ENFORCE, row.key, row.warehouse.revision, inside=containers_of(row))


async def trusted_tables(
    engines: Engines, actor: Actor, rows: Iterable[ResolvedTable], resolution: Resolution
) -> frozenset[UUID]:
    """Return the ids of the tables on which the engine that acts for the caller is trusted.

    A caller that the engine only asserts gets none: the engine could assert another user with fewer restrictions. The
    exception is the canary of an open probe of this engine, which contains only random values. Raises
    DecisionEngineUnavailable.
    """
    engine = actor.engine_itself()
    if engine is None:
        return frozenset()
    now, probes = resolution.now, resolution.probes
    tables = {row.id: row for row in rows}
    canaries = frozenset(id for id, row in tables.items() if probes.is_canary(row, now))
    probed = [row for row in tables.values() if actor.subject_proven and probes.trusts_on(row, now)]
    asked = {row.id: enforcing(row) for row in probed if row.id not in canaries}
    if not asked:
        return canaries
    ordered = list(dict.fromkeys(asked.values()))
    answers = await engines.check(engine, ordered, now, engine_pin_of(resolution))
    yes = {question for question, answer in zip(ordered, answers, strict=True) if answer}
    return canaries | {id for id, question in asked.items() if question in yes}
