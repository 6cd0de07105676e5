# SPDX-License-Identifier: Apache-2.0
"""Change the data policy revision of warehouses, by which cached results about data policies are keyed.

It is null while no data policy can apply, and has a new value after each change.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def touch(connection: AsyncConnection, *, project_id: str, warehouse_id: UUID | None) -> None:
    """Write a new revision to the warehouses of a project, or to one of them, after a change to data policies.

    Call it in the transaction of the change, after its statements: bindings, versions, subjects and exemptions,
    releases, attachments of tags, and entries of mapping tables. `warehouse_id` is None for a change that can concern
    every warehouse of the project. A warehouse without bindings, and without objects that carry a bound tag, gets null.

    Both statements are needed. The first waits for concurrent changes, so that the second sees their bindings.
    """
    await lock(connection, project_id=project_id, warehouse_id=warehouse_id)
    await connection.execute(_TOUCH, {"project": project_id, "warehouse": warehouse_id})


async def lock(connection: AsyncConnection, *, project_id: str, warehouse_id: UUID | None) -> None:
    """Lock the warehouses whose revision `touch` would change, until the transaction ends."""
    await connection.execute(_LOCK, {"project": project_id, "warehouse": warehouse_id})


_CONCERNED = "w.project_id = :project and (cast(:warehouse as uuid) is null or w.id = cast(:warehouse as uuid))"

# This lock is weaker than `for update`, so transactions that create objects in these warehouses do not wait for it.
_LOCK = text(
    f"""
    select w.id from warehouses w
    where {_CONCERNED}
    order by w.id
    for no key update
    """  # noqa: S608 - constants only
)

_TOUCH = text(
    f"""
    update warehouses w set data_policy_revision = case
        when exists (
            select 1 from data_policy_bindings b
            where b.warehouse_id = w.id
        ) or exists (
            select 1 from tag_attachments a
            join data_policy_bindings b on b.object_id = a.tag_id and b.object_type = 'tag'
            where a.warehouse_id = w.id
        )
        then gen_random_uuid()
    end
    where {_CONCERNED}
    """  # noqa: S608 - constants only
)
