# SPDX-License-Identifier: Apache-2.0
"""Build events that no operation declares: grants made along with a change, expired grants, and relationship models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.demand import Facts
from gateway.access.events.change_event import FurtherEvent
from gateway.access.events.event_building import NewEvent, described_actor, event_id, new_event, tabular_of
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType, field_of, table_of
from gateway.access.tuples import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGrant:
    """A privilege of a principal on an object.

    The project and warehouse of the object are given as far as they are known.
    """

    privilege: Privilege
    principal: Principal
    on: ObjectKey
    project_id: str = ""
    warehouse_id: UUID | None = None

    def added(self, *, until: datetime | None = None) -> FurtherEvent:
        """Return the event of a new grant, or of a grant whose expiry was changed to `until` (None: no expiry)."""
        ends = "" if until is None else until.isoformat()
        return self._event({"writes": (self._fact(),), "deletes": (), "write_ends": (ends,)})

    def removed(self) -> FurtherEvent:
        """Return the event of a grant that ended."""
        return self._event({"writes": (), "deletes": (self._fact(),), "write_ends": ()})

    def _fact(self) -> str:
        return f"{self.privilege.value}:{self.principal.type.value}:{self.principal.id}"

    def _event(self, data: Facts) -> FurtherEvent:
        on, event_type = self.on, "changeGrants"
        if on.type is ObjectType.COLUMN:
            event_type, data, on = "changeColumnGrants", {**data, "field_id": field_of(on)}, table_of(on)
        elif on.type is ObjectType.ROLE and self.privilege is Privilege.ASSIGNEE:
            event_type = "changeRoleMembers"
        return FurtherEvent(
            type=event_type,
            kind=on.type.value,
            id=on.id,
            data=data,
            project_id=self.project_id,
            warehouse_id="" if self.warehouse_id is None else str(self.warehouse_id),
        )


GRANT_EXPIRED: Final = "expireGrant"
"""The type of the event of a grant that expired."""

MODEL_RECORDED: Final = "createAuthorizationModel"
MODEL_ACTIVATED: Final = "activateAuthorizationModel"
"""The types of the events of relationship models that are written to OpenFGA, and that decide from then on."""


class ExpiredGrantData(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The data of the event of an expired grant.

    `still_granted` is True if another grant gives the same privilege to the principal. `field_id` is the column of a
    grant on a column.
    """

    privilege: str
    principal_type: str
    principal: str
    expired_at: datetime
    still_granted: bool
    field_id: int | None = None


class ModelData(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The data of the events of a relationship model. `previous_id` is the model that was active before it."""

    version: str
    store_id: str
    content_hash: str
    previous_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredGrant:
    """A grant that expired, with the project and warehouse of its object. `id` is the id of the grant."""

    id: UUID
    privilege: str
    principal: Principal
    on: ObjectKey
    project_id: str
    warehouse_id: UUID | None
    expired_at: datetime
    still_granted: bool


def event_of_expired(grant: ExpiredGrant, *, task: str, trace_id: str) -> NewEvent:
    """Return the event of an expired grant. Its id depends on the grant only, so the event is written once.

    `task` is the principal of the background task. A grant on a column is announced as a change of its table.
    """
    column = grant.on.type is ObjectType.COLUMN
    on = table_of(grant.on) if column else grant.on
    data = ExpiredGrantData(
        privilege=grant.privilege,
        principal_type=grant.principal.type.value,
        principal=grant.principal.id,
        expired_at=grant.expired_at,
        still_granted=grant.still_granted,
        field_id=field_of(grant.on) if column else None,
    )
    common = {"actor": described_actor(task), "traceid": trace_id}
    draft = (GRANT_EXPIRED, place_of(on, grant.project_id, grant.warehouse_id), msgspec.json.encode(data))
    return new_event(event_id(grant.id, 0), draft, common)


def event_of_model(event_type: str, model_id: str, data: ModelData, *, by: str) -> NewEvent:
    """Return the event of a change of the relationship model. `by` is the account that ran the command."""
    run = uuid7()
    actor = msgspec.json.encode({"type": "operator", "name": by}).decode()
    of_object = {"objecttype": "authorization_model", "objectid": model_id}
    draft = (event_type, of_object, msgspec.json.encode(data))
    return new_event(run, draft, {"actor": actor, "traceid": f"command-{run}"})


def place_of(on: ObjectKey, project_id: str, warehouse_id: UUID | None) -> dict[str, str]:
    """Return the event attributes of an object of which only ids are known. Attributes for unknown ids are empty."""
    warehouse = "" if warehouse_id is None else str(warehouse_id)
    place: Mapping[str, str] = {"projectid": project_id, "warehouseid": warehouse, "prefix": warehouse}
    return {"objecttype": on.type.value, "objectid": on.id, **place, **tabular_of(on.type.value, on.id)}
