# SPDX-License-Identifier: Apache-2.0
"""Find live grants that their grantors could not give now, and warn of them after an upgrade.

Some privileges restrict owners. Before version 1.10 of the OpenFGA model, the owners themselves and grant managers
could grant them. These grants stay in force. `lakegate migrate --check` lists them, and every process warns of them for
thirty days after the upgrade.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question, Relationships
from gateway.db.engine.database import Database
from gateway.db.grants.grant_lists import BindingGrant, binding_grants, warned_until

_log = structlog.get_logger("tasks.former_grantors")

#: For this number of days after the upgrade, every process logs warnings about grants of former grantors.
WARNED_DAYS: Final = 30.0

#: The relation on a project of the principals that may give these privileges. Models before 1.10 have the relation,
#: too.
_SECURES: Final = Can.CREATE_DATA_POLICY

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class FormerGrant:
    """A grant that its grantor could not give now. `warehouse` is the name of the object's warehouse."""

    privilege: str
    principal: str
    on: ObjectKey
    warehouse: str
    granted_by: str
    granted_at: datetime

    def line(self) -> str:
        """Return the grant as a line for an operator."""
        place = f"{self.on.type} {self.on.id} (warehouse {self.warehouse})"
        return f"{self.privilege} on {place} to {self.principal}, by {self.granted_by} on {self.granted_at:%Y-%m-%d}"


async def former_grants(database: Database, relationships: Relationships) -> Sequence[FormerGrant]:
    """Return the live grants that their grantors could not give now: the grantor is not a security administrator of the
    project.

    Groups in tokens are unknown here, so a grantor that has the right only through such a group is listed too. Raises
    DatabaseUnavailable and DecisionEngineUnavailable.
    """
    async with database.read() as connection:
        rows = await binding_grants(connection)
    pairs = dict.fromkeys((row.granted_by, row.project_id) for row in rows)
    able = {pair for pair in pairs if await _secures(relationships, *pair, now=rows[0].now)}
    return [_grant(row) for row in rows if (row.granted_by, row.project_id) not in able]


async def _secures(relationships: Relationships, user: str, project_id: str, *, now: datetime) -> bool:
    if "~" not in user:
        return False  # no user: the grant was adopted from OpenFGA
    question = Question(_SECURES, ObjectKey(ObjectType.PROJECT, project_id))
    [answer] = await relationships.check(Actor.user(user), [question], now=now)
    return answer


def _grant(row: BindingGrant) -> FormerGrant:
    return FormerGrant(
        privilege=row.privilege,
        principal=f"{row.principal_type} {row.principal_id}",
        on=ObjectKey(ObjectType(row.object_type), row.object_id),
        warehouse=row.warehouse_name,
        granted_by=row.granted_by,
        granted_at=row.granted_at,
    )


class FormerGrantors:
    """The warnings of one process, once a day."""

    def __init__(self, *, database: Database, relationships: Relationships) -> None:
        self._database = database
        self._relationships = relationships

    async def run(self) -> None:
        """Log warnings until the process ends."""
        while True:
            try:
                await self.warn()
            except (DatabaseUnavailable, DecisionEngineUnavailable) as outage:
                _log.warning("former_grants.count_postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("former_grants.count_failed")
            await asyncio.sleep(_DAY_S * random.uniform(0.9, 1.1))  # noqa: S311 - jitter, not a secret

    async def warn(self) -> None:
        """Log each such grant, until thirty days after the upgrade. Raises the errors of `former_grants`."""
        async with self._database.read() as connection:
            until = await warned_until(connection, WARNED_DAYS)
        if until is None or datetime.now(UTC) >= until:
            return
        for each in await former_grants(self._database, self._relationships):
            _log.warning("former_grants.found", grant=each.line(), granted_by=each.granted_by, warned_until=str(until))
