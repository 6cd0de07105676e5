# SPDX-License-Identifier: Apache-2.0
"""Announce the grants that drift repair adopts, ends or shortens.

Other repairs change no grant: they make a tuple in OpenFGA equal to the grants that the events stated before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.access.change_event import FurtherChanges, FurtherEvent
from gateway.access.granted_events import ChangedGrant
from gateway.access.privileges import Privilege
from gateway.access.tuples import Principal, TupleKey
from gateway.db import drift
from gateway.db.desired_tuples import Containers, containers_of
from gateway.db.engine import Connection
from gateway.db.ownership import project_above
from gateway.tasks.drift_findings import Finding, RepairAction


async def announced_repairs(
    connection: Connection, verified: Sequence[tuple[Finding, RepairAction]]
) -> FurtherChanges | None:
    """Return the events of the grants that these repairs changed; None if they changed none."""
    changed = [
        (finding, finding.key, action)
        for finding, action in verified
        if finding.key is not None and action in (RepairAction.ADOPTED, RepairAction.REVOKED, RepairAction.SHORTENED)
    ]
    if not changed:
        return None
    places = await containers_of(connection, [key.object for _, key, _ in changed])
    now = await drift.now(connection)
    return FurtherChanges([_event(finding, key, action, places[key.object], now) for finding, key, action in changed])


def _event(finding: Finding, key: TupleKey, action: RepairAction, place: Containers, now: datetime) -> FurtherEvent:
    if not isinstance(key.subject, Principal):
        raise TypeError(f"the tuple {finding.text} is no grant")
    grant = ChangedGrant(
        privilege=Privilege(key.relation),
        principal=key.subject,
        on=key.object,
        project_id=project_above(key.object, place.above),
        warehouse_id=place.warehouse_id,
    )
    until = None if finding.stored is None else finding.stored.expires_at
    ended = action is RepairAction.REVOKED or (until is not None and until <= now)
    return grant.removed() if ended else grant.added(until=until)
