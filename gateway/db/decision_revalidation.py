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

#: Limit of new decisions for one permit. Repair of a tuple that was written directly into OpenFGA changes a revision
#: three times (found, delivered, repaired). That alone must not fail a request. The limit bounds the transaction that
#: waits for the decisions.
_DECIDED_ANEW = 3

_REVISIONS = union_all(
    select(server.c.id, server.c.revision, true().label("active")),
    select(warehouses.c.id, warehouses.c.revision, warehouses.c.active).where(
        warehouses.c.id == any_(bindparam("ids", type_=ARRAY(UUID(as_uuid=True))))
    ),
)


async def revalidate_decision(connection: AsyncConnection, permit: Permit[Operation]) -> Resolution:
    """Return the resolution that `permit` rests on now: its own if no revision changed, else that of a new decision.

    The door decides again if a revision changed, or if a warehouse is inactive and the operation needs an active one.
    Its refusal is raised. If revisions also change during each new decision, DecisionEngineUnavailable is raised. A
    deleted row causes no new decision: the statement of the change fails on it.
    """
    resolution = permit.resolution
    needs_active = permit.operation.is_of_catalog()
    for _ in range(_DECIDED_ANEW):
        if not await _moved(connection, resolution, needs_active):
            return resolution
        resolution = await permit.revalidate()
    if await _moved(connection, resolution, needs_active):
        raise DecisionEngineUnavailable("the rights of the caller changed during each attempt of the decision")
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
