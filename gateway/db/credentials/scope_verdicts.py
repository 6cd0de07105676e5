# SPDX-License-Identifier: Apache-2.0
"""Store and read the scope verdicts of warehouses.

A verdict is the result of the canary (`gateway/vending/canary.py`), which tries to leave the scope of vended
credentials: `proven`, `escaped` or `inconclusive`. It is valid for one version of the storage profile. A result for an
earlier version is not recorded. An inconclusive run replaces neither `escaped` nor a `proven` younger than
`keep_seconds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import and_, case, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_optional
from gateway.db.schema.warehouses import warehouses
from gateway.iceberg.identifiers import fold

__all__ = ["NONE", "Claimed", "Counts", "claim", "claim_due", "count", "named", "record", "stored"]

NONE: Final = "none"
"""The name in `count` of warehouses without a verdict for their current profile."""

_ESCAPED: Final = "escaped"
_PROVEN: Final = "proven"
_INCONCLUSIVE: Final = "inconclusive"

_CURRENT = warehouses.c.scope_version == warehouses.c.profile_version


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that was started: its warehouse, and its start time, which identifies it."""

    warehouse_id: UUID
    tried_at: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of active warehouses by verdict (`none` without a verdict), and the time of the oldest current
    verdict.
    """

    by_verdict: Mapping[str, int]
    oldest: datetime | None


async def claim_due(connection: AsyncConnection, *, every: timedelta, retry: timedelta) -> Claimed | None:
    """Start a run for an active warehouse that is due, the longest waiting first. Return None if no warehouse is due.

    A warehouse is due `every` after its last run. It is due `retry` after it if it has no conclusive verdict for its
    current profile, or if its last run did not renew the verdict. Other processes do not claim the same warehouse
    meanwhile.
    """
    settled = and_(
        _CURRENT,
        warehouses.c.scope_verdict != _INCONCLUSIVE,
        warehouses.c.scope_verdict_at >= warehouses.c.scope_tried_at,
    )
    pause = case((func.coalesce(settled, literal(False)), literal(every)), else_=literal(retry))
    due = or_(
        warehouses.c.scope_tried_at.is_(None),
        warehouses.c.scope_tried_at < func.clock_timestamp() - pause,
    )
    chosen = (
        select(warehouses.c.id)
        .where(warehouses.c.active, due)
        .order_by(warehouses.c.scope_tried_at.asc().nulls_first())
        .limit(1)
        .with_for_update(key_share=True, skip_locked=True)
        .scalar_subquery()
    )
    return await _claim(connection, chosen)


async def claim(connection: AsyncConnection, warehouse_id: UUID) -> Claimed | None:
    """Start a run for this warehouse now. Return None if it does not exist."""
    return await _claim(connection, warehouse_id)


async def _claim(connection: AsyncConnection, chosen: object) -> Claimed | None:
    statement = (
        update(warehouses)
        .where(warehouses.c.id == chosen)
        .values(scope_tried_at=func.clock_timestamp())
        .returning(warehouses.c.id, warehouses.c.scope_tried_at)
    )
    row = (await connection.execute(statement)).one_or_none()
    return None if row is None else Claimed(row.id, row.scope_tried_at)


async def record(
    connection: AsyncConnection,
    warehouse_id: UUID,
    *,
    verdict: str,
    report: bytes,
    profile_version: int,
    claimed: Claimed | None = None,
    keep_seconds: float = 0,
) -> bool:
    """Store the result of a run. Return False if the profile has changed since, or if a later run has been claimed.

    A verdict that a credential escaped is stored even if a later run has been claimed. `claimed` is None for the checks
    of a new profile.
    """
    current = and_(warehouses.c.id == warehouse_id, warehouses.c.profile_version == profile_version)
    if claimed is not None and verdict != _ESCAPED:
        current = and_(current, warehouses.c.scope_tried_at == claimed.tried_at)
    # One time for the whole statement. If the verdict were a microsecond older than its run, it would not count as
    # settled.
    now = func.statement_timestamp()
    tried_at = now if claimed is None else warehouses.c.scope_tried_at
    values: dict[str, object] = {"scope_report": report, "scope_tried_at": tried_at}
    if verdict == _INCONCLUSIVE:
        oldest = now - literal(timedelta(seconds=keep_seconds))
        kept = and_(
            _CURRENT,
            or_(
                warehouses.c.scope_verdict == _ESCAPED,
                and_(warehouses.c.scope_verdict == _PROVEN, warehouses.c.scope_verdict_at > oldest),
            ),
        )
        kept = func.coalesce(kept, literal(False))
        values["scope_verdict"] = case((kept, warehouses.c.scope_verdict), else_=literal(verdict))
        values["scope_verdict_at"] = case((kept, warehouses.c.scope_verdict_at), else_=now)
    else:
        values |= {"scope_verdict": verdict, "scope_verdict_at": now}
    statement = update(warehouses).where(current).values(**values, scope_version=profile_version)
    return (await connection.execute(statement)).rowcount == 1


class StoredVerdict(NamedTuple):
    """The verdict of a warehouse, and the start and report of its last run.

    The verdict and its time are None unless they are for the current profile. `version` is the version of the profile
    that the last run tested.
    """

    verdict: str | None
    verdict_at: datetime | None
    tried_at: datetime | None
    report: bytes | None
    profile_version: int
    version: int | None


async def stored(connection: AsyncConnection, warehouse_id: UUID) -> StoredVerdict | None:
    """Return the stored verdict and the last run of a warehouse. Return None if the warehouse does not exist."""
    statement = select(
        case((_CURRENT, warehouses.c.scope_verdict)).label("verdict"),
        case((_CURRENT, warehouses.c.scope_verdict_at)).label("verdict_at"),
        warehouses.c.scope_tried_at.label("tried_at"),
        warehouses.c.scope_report.label("report"),
        warehouses.c.profile_version.label("profile_version"),
        warehouses.c.scope_version.label("version"),
    ).where(warehouses.c.id == warehouse_id)
    return await fetch_optional(connection, StoredVerdict, statement)


async def named(connection: AsyncConnection, name: str) -> Sequence[UUID]:
    """Return the ids of the warehouses of all projects that have this name, ignoring letter case."""
    return (
        (await connection.execute(select(warehouses.c.id).where(warehouses.c.name_key == fold(name)))).scalars().all()
    )


async def count(connection: AsyncConnection) -> Counts:
    """Return the numbers of active warehouses by verdict."""
    verdict = func.coalesce(case((_CURRENT, warehouses.c.scope_verdict)), NONE)
    oldest = func.min(case((_CURRENT, warehouses.c.scope_verdict_at)))
    statement = select(verdict.label("verdict"), func.count().label("number"), oldest.label("oldest"))
    rows = (await connection.execute(statement.where(warehouses.c.active).group_by(verdict))).all()
    times = [row.oldest for row in rows if row.oldest is not None]
    return Counts({row.verdict: row.number for row in rows}, min(times, default=None))
