# SPDX-License-Identifier: Apache-2.0
"""The change events of the examples of operations."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from gateway.access.events.event_building import NewEvent, events_of
from gateway.access.operation import ChangeOperation, Operation
from gateway.events.cloud_events import structured
from gateway.events.port import Event
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context

NEW = {
    "table_id": str(UUID(int=1)), "view_id": str(UUID(int=2)), "generic_table_id": str(UUID(int=3)),
    "namespace_id": str(UUID(int=4)), "warehouse_id": str(UUID(int=5)), "role_id": str(UUID(int=6)),
    "tag_id": str(UUID(int=9)),
    "project_id": str(UUID(int=7)), "scim_id": str(UUID(int=8)),
    "data_policy_id": str(UUID(int=10)), "access_request_id": str(UUID(int=11)),
}  # fmt: skip
CHANGES = [example.operation for example in EXAMPLES if isinstance(example.operation, ChangeOperation)]


async def events_of_example(operation: Operation, **detail: str) -> tuple[NewEvent, ...]:
    permit = await DoorFixture().door.admit(request_context(), operation)
    permit.pending_audit.add_details(**detail)
    return events_of(permit)


SOURCE = "uri:iceberg-catalog-service:lake.example"


def as_sent(event: NewEvent) -> dict[str, Any]:
    """Return what a sink receives, made by the SDK of CloudEvents."""
    stored = Event(
        id=event.id,
        source=SOURCE,
        type=event.type,
        time=datetime(2026, 1, 2, tzinfo=UTC),
        key=event.key,
        attributes=dict(event.attributes),
        data=event.data,
    )
    sent: dict[str, Any] = json.loads(structured(stored))
    for attribute in ("name", "namespace"):
        # A representation of a Python value, as `('ns',)` or `Namespace(levels=…)`, is no name.
        assert not re.search(r"[(){}\[\]'\"]|^None$|=", sent.get(attribute, "")), sent
    return sent
