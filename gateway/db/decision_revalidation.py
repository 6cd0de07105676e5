# SPDX-License-Identifier: Apache-2.0
"""Revalidate a decision before commit or vending: read the revisions again, and decide again if one moved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import any_, bindparam, select, true, union_all
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.access.resolved import Resolution
from gateway.db.compiled_reads import DirectRead
from gateway.db.rows import AnyRow
from gateway.db.schema.servers import server
from gateway.db.schema.warehouses import warehouses

#: Limit of new decisions for one permit. Repair of a tuple that was written directly into OpenFGA changes a revision
#: three times (found, delivered, repaired). That alone must not fail a request. The limit bounds the transaction that
#: waits for the decisions.
_DECIDED_ANEW = 3

#: The revisions of the server and of the warehouses `ids`.
REVISIONS = DirectRead(
    union_all(
        select(server.c.id, server.c.revision, true().label("active")),
        select(warehouses.c.id, warehouses.c.revision, warehouses.c.active).where(
            warehouses.c.id == any_(bindparam("ids", type_=ARRAY(UUID(as_uuid=True))))
        ),
    )
)

ReadRevisions = Callable[[Mapping[str, Any]], Awaitable[Sequence[AnyRow]]]
"""Returns the rows of `REVISIONS` for the given parameters."""


async def revalidate_decision(connection: AsyncConnection, permit: Permit[Operation]) -> Resolution:
    """Revalidate the decision on the connection of a transaction. See `revalidate_by`."""

    async def read(parameters: Mapping[str, Any]) -> Sequence[AnyRow]:
        rows: Sequence[AnyRow] = (await connection.execute(REVISIONS.statement, dict(parameters))).all()
        return rows

    return await revalidate_by(read, permit)


async def revalidate_by(read: ReadRevisions, permit: Permit[Operation]) -> Resolution:
    """Return the resolution that `permit` rests on now: its own if no revision changed, else that of a new decision.

    The door decides again if a revision changed, or if a warehouse is inactive and the operation needs an active one.
    Its refusal is raised. If revisions also change during each new decision, DecisionEngineUnavailable is raised. A
    deleted row causes no new decision: the statement of the change fails on it.
    """
    resolution = permit.resolution
    needs_active = permit.operation.is_of_catalog()
    for _ in range(_DECIDED_ANEW):
        if not await _moved(read, resolution, needs_active):
            return resolution
        resolution = await permit.revalidate()
    if await _moved(read, resolution, needs_active):
        raise DecisionEngineUnavailable("the rights of the caller changed during each attempt of the decision")
    return resolution


async def _moved(read: ReadRevisions, resolution: Resolution, needs_active: bool) -> bool:
    known = resolution.warehouses()
    rows = await read({"ids": list(known)})
    if needs_active and not all(row.active for row in rows):
        return True
    now = {row.id: row.revision for row in rows}
    within = any(now.get(id, revision) != revision for id, revision in known.items())
    (of_server,) = [revision for id, revision in now.items() if id not in known]
    return within or of_server != resolution.revision
