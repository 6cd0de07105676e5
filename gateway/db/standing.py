# SPDX-License-Identifier: Apache-2.0
"""Whether what a decision rests on still is so: the revisions, read once more before something leaves or is committed
(section 5 of the design, "Cache").
"""

from __future__ import annotations

from sqlalchemy import bindparam, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.operation import Operation
from gateway.access.outage import DecisionEngineUnavailable
from gateway.access.permit import Permit
from gateway.access.resolved import Resolution
from gateway.db.schema import server, warehouses

_REVISIONS = union_all(
    select(server.c.id, server.c.revision),
    select(warehouses.c.id, warehouses.c.revision).where(warehouses.c.id.in_(bindparam("ids", expanding=True))),
)


async def require_standing(connection: AsyncConnection, permit: Permit[Operation]) -> Resolution:
    """What `permit` stands on now: what it was decided on when nothing was taken away since, or else what it was
    decided on again, the same way.

    A revision that moved makes the door decide once more; its refusal is raised. Raises DecisionEngineUnavailable when
    it moves again meanwhile: then nobody can say what holds. Rows that are gone take nothing away that is not told by
    the change that needs them.
    """
    resolution = permit.resolution
    if not await _moved(connection, resolution):
        return resolution
    again = await permit.decide_again()
    if await _moved(connection, again):
        raise DecisionEngineUnavailable("what is allowed keeps changing")
    return again


async def _moved(connection: AsyncConnection, resolution: Resolution) -> bool:
    known = resolution.warehouses()
    now = {row.id: row.revision for row in await connection.execute(_REVISIONS, {"ids": list(known)})}
    within = any(now.get(id, revision) != revision for id, revision in known.items())
    (of_server,) = [revision for id, revision in now.items() if id not in known]
    return within or of_server != resolution.revision
