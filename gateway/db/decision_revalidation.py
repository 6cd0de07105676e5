# SPDX-License-Identifier: Apache-2.0
"""Revalidate a decision before commit or vending: read the revisions again, and decide again if one moved."""

from __future__ import annotations

from sqlalchemy import any_, bindparam, select, true, union_all
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.access.resolved import Resolution
from gateway.db.schema.servers import server
from gateway.db.schema.warehouses import warehouses

#: How often one permit is decided anew at most. A tuple that somebody wrote into OpenFGA directly moves a revision
#: three times until it is mended (found, delivered, mended): that alone makes no caller ask again, and the transaction
#: that waits for the answers does not wait for ever.
_DECIDED_ANEW = 3

_REVISIONS = union_all(
    select(server.c.id, server.c.revision, true().label("active")),
    select(warehouses.c.id, warehouses.c.revision, warehouses.c.active).where(
        warehouses.c.id == any_(bindparam("ids", type_=ARRAY(UUID(as_uuid=True))))
    ),
)


async def revalidate_decision(connection: AsyncConnection, permit: Permit[Operation]) -> Resolution:
    """What `permit` stands on now: what it was decided on when nothing was taken away since, or else what it was
    decided on again, the same way.

    A revision that moved makes the door decide once more, and so does, for what needs it, a warehouse that is active no
    more; the door's refusal is raised. What moved while it decided makes it decide again, a few times; then nobody can
    say what holds, and DecisionEngineUnavailable is raised. Rows that are gone take nothing away that is not told by
    the change that needs them.
    """
    resolution = permit.resolution
    needs_active = permit.operation.is_of_catalog()
    for _ in range(_DECIDED_ANEW):
        if not await _moved(connection, resolution, needs_active):
            return resolution
        resolution = await permit.decide_again()
    if await _moved(connection, resolution, needs_active):
        raise DecisionEngineUnavailable("what is allowed keeps changing")
    return resolution


async def _moved(connection: AsyncConnection, resolution: Resolution, needs_active: bool) -> bool:
    known = resolution.warehouses()
    rows = (await connection.execute(_REVISIONS, {"ids": list(known)})).all()
    if needs_active and not all(row.active for row in rows):
        return True
    now = {row.id: row.revision for row in rows}
    within = any(now.get(id, revision) != revision for id, revision in known.items())
    (of_server,) = [revision for id, revision in now.items() if id not in known]
    return within or of_server != resolution.revision
