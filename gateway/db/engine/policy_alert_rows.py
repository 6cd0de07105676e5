# SPDX-License-Identifier: Apache-2.0
"""Statements on the alerts of data policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import AnyRow
from gateway.db.schema.policies import data_policy_alerts
from gateway.obligations.binding import PolicyProblem

_MOST_ALERTS: Final = 1_000

# A policy that was deleted since has no alerts.
RECORD = DirectRead(
    text(
        """
        insert into data_policy_alerts (policy_id, table_id, problem)
        select d.id, found.table_id, found.problem
        from unnest(cast(:policies as uuid[]), cast(:tables as uuid[]), cast(:problems as text[]))
            as found(policy_id, table_id, problem)
        join data_policies d on d.id = found.policy_id
        on conflict (policy_id, table_id, problem) do update set last_seen_at = clock_timestamp()
        returning policy_id
        """
    )
)


async def record(connection: AsyncConnection, problems: Sequence[PolicyProblem]) -> None:
    """Record problems in the transaction of the change that causes them."""
    await connection.execute(RECORD.statement, recorded(problems))


def recorded(problems: Sequence[PolicyProblem]) -> dict[str, list[str]]:
    """Return the parameters of `RECORD` in one order, so that transactions on the same rows do not deadlock."""
    ordered = sorted(set(problems))
    return {
        "policies": [each.policy_id for each in ordered],
        "tables": [each.table_id for each in ordered],
        "problems": [each.problem for each in ordered],
    }


async def alerts(connection: AsyncConnection, policy_id: UUID) -> Sequence[AnyRow]:
    """Return the alerts of a policy, newest first."""
    statement = select(data_policy_alerts).where(data_policy_alerts.c.policy_id == policy_id)
    newest = (data_policy_alerts.c.last_seen_at.desc(), data_policy_alerts.c.table_id, data_policy_alerts.c.problem)
    return (await connection.execute(statement.order_by(*newest).limit(_MOST_ALERTS))).all()
