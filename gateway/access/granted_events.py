# SPDX-License-Identifier: Apache-2.0
"""Describe changed grants that no request states, in the form of the events of grant requests.

The data has the facts of `WritingGrants`, so a consumer treats both alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.access.change_event import FurtherEvent
from gateway.access.demand import Facts
from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectKey, ObjectType, field_of, table_of
from gateway.access.tuples import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGrant:
    """A privilege of a principal on an object, and the place of the object as far as it is known."""

    privilege: Privilege
    principal: Principal
    on: ObjectKey
    project_id: str = ""
    warehouse_id: UUID | None = None

    def added(self, *, until: datetime | None = None) -> FurtherEvent:
        """Return the event of a grant that exists now, or whose expiry is now `until` (None: no expiry)."""
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
