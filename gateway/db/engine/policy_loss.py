# SPDX-License-Identifier: Apache-2.0
"""Refuse or announce a change by which a name loses data policies (row filters, masks).

A rename, drop or move frees the name of an object, and a later change gives the name to another object. Triggers record
which restrictions the former object had (`gateway.db.engine.vacated_names`). The transaction of the later change
compares them with those of the new object before it commits. If restrictions are missing, the change is refused, or
made with an alert for the owners of the policies. The statements on these alerts are here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.events.event_building import POLICY_LOST
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation
from gateway.access.operations.data_policy_bodies import AlertAnswer
from gateway.db.engine import vacated_names
from gateway.db.engine.vacated_names import TakenName
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.policies import data_policy_alerts
from gateway.iceberg.errors import ForbiddenException
from gateway.iceberg.identifiers import fold
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.data_policies import AppliesTo, Definition, tags_of

_log = structlog.get_logger("db.policy_loss")

_SHOWN: Final = 5


class DataPolicyLost(ForbiddenException):
    """The change would leave a name with fewer restrictions than the object that held it before."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A data policy that restricted the former holder of a name, and does not restrict the new one as much.

    `levels` are those of the namespace. `own_name` is empty if the object is a namespace. `entries` are the ids of the
    rows in `vacated_names`. `mode` is the setting of the warehouse.
    """

    policy_id: str
    applies_to: AppliesTo
    mode: str
    kind: str
    object_id: UUID
    levels: tuple[str, ...]
    own_name: str
    project_id: str
    warehouse_id: UUID
    entries: tuple[UUID, ...]

    @property
    def name(self) -> str:
        """The full name, with dots between its parts."""
        return ".".join(each for each in (*self.levels, self.own_name) if each)

    @property
    def problem(self) -> PolicyProblem:
        """The alert that managers of the policy receive."""
        text = (
            f"the name {self.name} was restricted by the policy, and now belongs to a {self.kind.replace('_', ' ')} "
            "without the same restriction: bind the policy to it or to the name, and attach the tags that the policy "
            "needs"
        )
        return PolicyProblem(self.policy_id, str(self.object_id), text)


async def settle(connection: AsyncConnection, permit: Permit[Operation], resolution: Resolution) -> Sequence[Loss]:
    """Compare the names that this transaction gave to other objects, and return the permitted losses of restrictions.

    The losses are announced in the audit record, as events and as alerts. Raises the errors of `require_permitted`.
    """
    losses = losses_of(await vacated_names.taken(connection))
    await require_permitted(permit, losses, resolution)
    await vacated_names.settle(connection, [id for each in losses for id in each.entries])
    if losses:
        await record(connection, [each.problem for each in losses])
        announce(permit, losses)
    return losses


async def require_permitted(permit: Permit[Operation], losses: Sequence[Loss], resolution: Resolution) -> None:
    """Raise DataPolicyLost if the setting of the warehouse does not permit the caller to cause one of the losses.

    The managers of a policy may cause its losses. Raises the refusal for an outage.
    """
    judged = [each for each in losses if each.mode != "announce"]
    if not judged:
        return
    standing = await permit.policy_standing({each.policy_id: each.applies_to for each in judged}, resolution)
    refused = [
        each
        for each in judged
        if each.policy_id not in standing.managed and (each.mode == "refuse" or each.policy_id in standing.restricting)
    ]
    if refused:
        raise DataPolicyLost(_refusal(refused))


def _refusal(refused: Sequence[Loss]) -> str:
    ids = sorted({each.policy_id for each in refused if each.name == refused[0].name})
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return (
        f"The last object with the name {refused[0].name} was restricted by data policies that would not restrict the "
        f"new object as much: {', '.join(ids[:_SHOWN])}{more}. Ask a manager of these policies to bind them to the "
        "object or to the name, and to attach the tags that they need, or to make this change."
    )


def losses_of(rows: Sequence[TakenName]) -> tuple[Loss, ...]:
    """Return the losses that these `rows` of `vacated_names.taken` show, one for each policy and object."""
    lost = [row for row in rows if _is_lost(row)]
    return tuple(
        Loss(
            policy_id=str(policy_id),
            applies_to=AppliesTo(first.applies_to),
            mode=first.policy_loss,
            kind=first.kind,
            object_id=object_id,
            levels=tuple(first.levels),
            own_name=first.name,
            project_id=first.project_id,
            warehouse_id=first.warehouse_id,
            entries=tuple(row.id for row in some),
        )
        for (object_id, policy_id), group in groupby(lost, key=lambda row: (row.object_id, row.policy_id))
        for some in [list(group)]
        for first in some[:1]
    )


def _is_lost(row: TakenName) -> bool:
    """Return True if the new object lacks a restriction in a way that reduces what the policy covers.

    The loss of a tag counts only if the policy names the tag. A policy that was bound to a tag may still cover the
    object by another binding.
    """
    if row.held:
        return False
    if row.tag_name is None:
        return True
    try:
        named = tags_of(msgspec.json.decode(row.definition, type=Definition))
    except msgspec.MsgspecError:
        return True  # unreadable: a later version wrote the policy
    ids = msgspec.json.decode(row.tag_ids, type=dict[str, str])
    if any(ids.get(fold(each), fold(each)) in (str(row.tag_id), fold(row.tag_name)) for each in named):
        return True
    return bool(row.via_tag) and not row.direct


def announce(permit: Permit[Operation], losses: Sequence[Loss]) -> None:
    """Add the losses to the audit record and to the events of the change, and write them to the log."""
    permit.pending_audit.add_details(policies_lost=",".join(f"{each.policy_id}:{each.object_id}" for each in losses))
    events = [
        FurtherEvent(
            type=POLICY_LOST,
            kind=each.kind,
            id=str(each.object_id),
            data={"policy_id": each.policy_id, "name": each.name},
            project_id=each.project_id,
            warehouse_id=str(each.warehouse_id),
            name=each.name,
        )
        for each in losses
    ]
    stated = permit.pending_audit.further_changes

    def all_changes() -> FurtherChanges:
        before = FurtherChanges() if stated is None else stated()
        return FurtherChanges((*before.changes, *events), before.left_out)

    permit.pending_audit.further_changes = all_changes
    for each in losses:
        _log.warning(
            "data_policy.lost_by_name", policy_id=each.policy_id, object_id=str(each.object_id), name=each.name
        )


_MOST_ALERTS: Final = 1_000

# The join leaves out policies that were deleted meanwhile: they have no alerts.
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
    """Record alerts in the transaction of the change that causes them."""
    await connection.execute(RECORD.statement, recorded(problems))


def recorded(problems: Sequence[PolicyProblem]) -> dict[str, list[str]]:
    """Return the parameters of `RECORD`. They are sorted, so that transactions on the same rows do not deadlock."""
    ordered = sorted(set(problems))
    return {
        "policies": [each.policy_id for each in ordered],
        "tables": [each.table_id for each in ordered],
        "problems": [each.problem for each in ordered],
    }


async def alerts(connection: AsyncConnection, policy_id: UUID) -> list[AlertAnswer]:
    """Return the recorded alerts of a policy, newest first."""
    columns = columns_for(AlertAnswer, data_policy_alerts)
    statement = select(*columns).where(data_policy_alerts.c.policy_id == policy_id)
    newest = (data_policy_alerts.c.last_seen_at.desc(), data_policy_alerts.c.table_id, data_policy_alerts.c.problem)
    return await fetch_all(connection, AlertAnswer, statement.order_by(*newest).limit(_MOST_ALERTS))
