# SPDX-License-Identifier: Apache-2.0
"""The published JSON Schema of events: generated, and true for what a sink receives."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jsonschema_rs
import pytest

from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.events.event_building import BREAK_GLASS, POLICY_LOST, event_of_issued, events_of
from gateway.access.events.event_schema import SCHEMA_FILE, declared_types, schema
from gateway.access.events.unrequested_events import (
    MODEL_ACTIVATED,
    MODEL_RECORDED,
    ExpiredGrant,
    ModelData,
    event_of_expired,
    event_of_model,
)
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.operation import ChangeOperation
from gateway.access.operations.tables import CreateTable
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.policy_loss import Loss, announce
from gateway.obligations.data_policies import AppliesTo
from tests.support.door import world
from tests.support.door.change_events import CHANGES, NEW, as_sent, events_of_example


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.validator_for(json.loads(SCHEMA_FILE.read_text()), validate_formats=True)


def test_the_published_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text() == schema(), "run `python -m gateway.access.events.event_schema`"


@pytest.mark.parametrize("operation", CHANGES, ids=lambda each: type(each).__name__)
async def test_each_event_obeys_the_schema(validator: Any, operation: ChangeOperation) -> None:
    for event in await events_of_example(operation, **NEW):
        validator.validate(as_sent(event))


async def test_the_examples_announce_every_type_of_the_schema() -> None:
    """A type that no example announces would be in the schema without a proof."""
    announced = {event.type for operation in CHANGES for event in await events_of_example(operation, **NEW)}
    assert set(declared_types()) - announced == {
        "vendCredentials", "expireDeletedTabular", "expireGrant", MODEL_RECORDED, MODEL_ACTIVATED, POLICY_LOST,
        BREAK_GLASS,
    }  # fmt: skip


async def test_the_event_of_a_lost_policy_obeys_the_schema_and_follows_that_of_the_change(validator: Any) -> None:
    create = next(each for each in CHANGES if isinstance(each, CreateTable))
    permit = await world.DoorFixture().door.admit(world.request_context(), create)
    permit.pending_audit.add_details(**NEW)
    lost = Loss(
        policy_id=str(UUID(int=10)),
        applies_to=AppliesTo.EVERYONE,
        mode="announce",
        kind="table",
        object_id=UUID(NEW["table_id"]),
        levels=("sales",),
        own_name="customers",
        project_id=NEW["project_id"],
        warehouse_id=world.WAREHOUSE_ID,
        entries=(UUID(int=1),),
    )
    announce(permit, [lost])
    created, event = events_of(permit)
    sent = as_sent(event)
    validator.validate(sent)
    assert (created.type, event.type, event.key) == ("createTable", POLICY_LOST, NEW["table_id"])
    assert sent["data"] == {"policy_id": lost.policy_id, "name": "sales.customers"}


def test_the_event_of_a_credential_obeys_the_schema(validator: Any) -> None:
    issued = IssuedCredential(
        request_id="request-1",
        id=UUID("0192f0c1-2345-7abc-8def-0123456789ab"),
        principal="oidc~alice",
        assumed_role=UUID(int=9),
        engine="trino",
        view_owner=None,
        project_id=str(UUID(int=1)),
        warehouse_id=world.WAREHOUSE_ID,
        kind="table",
        table_id=world.TABLE_ID,
        prefix="s3://lake/orders/",
        level="read",
        provider="s3",
        session_name="lakegate-1",
        policy_digest="0" * 64,
        seconds=900,
        expires_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    sent = as_sent(event_of_issued(issued))
    validator.validate(sent)
    assert (sent["traceid"], sent["prefix"]) == ("request-1", str(world.WAREHOUSE_ID))
    assert json.loads(sent["actor"]) == {"type": "role", "principal": "oidc~alice", "assumed-role": str(UUID(int=9))}


@pytest.mark.parametrize(
    ("on", "object_type", "field_id"),
    [(ObjectKey(ObjectType.ROLE, "r"), "role", None), (column_key(world.TABLE_ID, 7), "table", 7)],
    ids=["role", "column"],
)
def test_the_event_of_an_expired_grant_obeys_the_schema(
    validator: Any, on: ObjectKey, object_type: str, field_id: int | None
) -> None:
    """A column is no object of an event: its table is, so that events of both have one key."""
    grant = ExpiredGrant(
        id=UUID("0192f0c1-2345-7abc-8def-0123456789ab"),
        privilege="select",
        principal=Principal(PrincipalType.USER, "oidc~alice"),
        on=on,
        project_id="",
        warehouse_id=None,
        expired_at=datetime(2026, 1, 2, tzinfo=UTC),
        still_granted=False,
    )
    event = event_of_expired(grant, task="system~grant_expiry", trace_id="task-1")
    sent = as_sent(event)
    validator.validate(sent)
    assert (event.key, sent["objecttype"]) == (sent["objectid"], object_type)
    assert sent["data"]["field-id"] == field_id
    assert event.id == event_of_expired(grant, task="system~grant_expiry", trace_id="task-2").id


@pytest.mark.parametrize("event_type", [MODEL_RECORDED, MODEL_ACTIVATED])
def test_the_event_of_a_model_obeys_the_schema(validator: Any, event_type: str) -> None:
    data = ModelData(version="1.7", store_id="s", content_hash="h", previous_id="m")
    sent = as_sent(event_of_model(event_type, "01J", data, by="ops"))
    validator.validate(sent)
    assert (sent["objectid"], json.loads(sent["actor"])) == ("01J", {"type": "operator", "name": "ops"})


def test_the_page_lists_every_type() -> None:
    page = (SCHEMA_FILE.parent / "events.md").read_text()
    (tables,) = re.findall(r"^## Types with.*?(?=^## Credentials)", page, re.MULTILINE | re.DOTALL)
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(declared_types())


@pytest.mark.parametrize(
    "fault",
    [{"type": "exploded"}, {"objectid": ""}, {"tabular-id": "x"}, {"data": {"requirements": "none"}}, {"id": "1"}],
    ids=lambda fault: next(iter(fault)),
)
async def test_a_wrong_event_violates_the_schema(validator: Any, fault: dict[str, Any]) -> None:
    commit = next(each for each in CHANGES if type(each).__name__ == "CommitTable")
    (event,) = await events_of_example(commit)
    sent = as_sent(event)
    validator.validate(sent)
    assert not validator.is_valid({**sent, **fault})
