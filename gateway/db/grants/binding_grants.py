# SPDX-License-Identifier: Apache-2.0
"""List the grants of privileges that bind owners, which only principals that secure the project can give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import BINDING
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.changes import model_switches, relationship_models

#: The version of the relationship model since which owners and grant managers cannot give these privileges.
_SINCE: Final = (1, 10)


class BindingGrant(NamedTuple):
    """A grant, with the project and the name of its warehouse, and the present time."""

    privilege: str
    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    granted_by: str
    granted_at: datetime
    project_id: str
    warehouse_name: str
    now: datetime


_GRANTS: Final = text(
    """
    select g.privilege, g.principal_type, g.principal_id, g.object_type, g.object_id, g.granted_by, g.granted_at,
        w.project_id, w.name as warehouse_name, clock_timestamp() as now
    from grants g
    left join namespaces n on n.id = case g.object_type when 'namespace' then cast(g.object_id as uuid) end
    left join tables t on t.id = case when g.object_type in ('table', 'view', 'generic_table')
        then cast(g.object_id as uuid) end
    join warehouses w on w.id = case g.object_type when 'warehouse' then cast(g.object_id as uuid)
        else coalesce(n.warehouse_id, t.warehouse_id) end
    where g.privilege = any(cast(:privileges as text[]))
        and g.object_type in ('warehouse', 'namespace', 'table', 'view', 'generic_table')
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    order by w.project_id, g.granted_by, g.id
    """
)


async def binding_grants(connection: AsyncConnection) -> Sequence[BindingGrant]:
    """Return the live grants of these privileges on warehouses and below, by project and grantor."""
    return await fetch_all(connection, BindingGrant, _GRANTS, {"privileges": [each.value for each in BINDING]})


async def warned_until(connection: AsyncConnection, days: float) -> datetime | None:
    """Return the time `days` after the first switch to a model with the rule. None before that switch."""
    switches = select(relationship_models.c.version, model_switches.c.switched_at)
    switches = switches.join(model_switches, model_switches.c.model_id == relationship_models.c.model_id)
    rows = (await connection.execute(switches.order_by(model_switches.c.id))).all()
    times = [row.switched_at for row in rows if _numbers(row.version) >= _SINCE]
    return times[0] + timedelta(days=days) if times else None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a recorded version, such as `1.10` or `1.10+own`."""
    return tuple(int(each) for each in version.partition("+")[0].split("."))
