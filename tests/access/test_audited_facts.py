# SPDX-License-Identifier: Apache-2.0
"""The audit record of every change contains what was requested. The walk covers all operations and system tasks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_type_hints
from urllib.parse import unquote
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.access.audit.audit_facts import MAX_FACTS_BYTES, facts_of, record_of
from gateway.access.audit.audit_record import AuditRecord
from gateway.access.events.event_redaction import REDACTED, is_secret_name
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import TabularRef, WarehouseRef
from gateway.access.operation import OPERATIONS, UNROUTED, Operation
from gateway.access.operations import tasks  # noqa: F401 - the import declares the tasks
from gateway.access.operations.grants import WRITE_ASSIGNMENTS, Assignment
from gateway.access.operations.scim import PatchScimUser
from gateway.access.operations.tables import CommitTable
from gateway.access.operations.warehouse_bodies import CreateWarehouseRequest
from gateway.access.operations.warehouses import CreateWarehouse
from gateway.access.tuples import Principal, PrincipalType
from gateway.iceberg.codec import decode
from gateway.iceberg.wire import CommitTableRequest
from gateway.scim.reading import read
from gateway.scim.wire import PatchRequest
from tests.support.door import world
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DoorFixture, request_context

CHANGES = [each for each in EXAMPLES if each.operation.changes()]
TASKS = sorted((each for each in UNROUTED.values() if each.changes()), key=lambda each: each.__name__)

#: Values of examples that a record states in another way.
STATED_OTHERWISE: dict[str, set[str]] = {
    # A user is active unless the record says otherwise.
    "CreateScimUser": {"true"},
    "ReplaceScimUser": {"true"},
    # The path is the name of the value, so that the value of a password is removed.
    "PatchScimUser": {"active"},
    # The members that are set, added and removed are recorded apart.
    "PatchScimGroup": {"replace"},
    "UndropTabulars": {"generic-table"},
}
#: Operations that a request admits beside a creation, whose record states the body.
BESIDE_A_CREATION = {"VendCreationCredentials", "VendGenericTableCreationCredentials"}


async def record(operation: Operation) -> dict[str, Any]:
    """Return the audit record of an operation as JSON, with its facts as an object."""
    context = request_context(world.ALICE)
    resolution, decisions, groups = await DoorFixture().door._judge(context, (operation,))
    written: AuditRecord = record_of(context, (operation,), decisions, groups, resolution)
    found: dict[str, Any] = json.loads(msgspec.json.encode(written))
    facts = json.loads(found.get("detail", {}).pop("facts", "{}"))
    return found | {"facts": facts.get(operation.name(), {})}


def leaves(value: Any) -> Iterator[str]:
    """Return the values of a JSON document as texts, without unset ones and secrets."""
    match value:
        case dict():
            for name, each in value.items():
                if not is_secret_name(name):
                    yield from leaves(each)
        case list() | tuple():
            for each in value:
                yield from leaves(each)
        case None:
            return
        case bool():
            yield json.dumps(value)
        case _:
            yield str(value)


def test_examples_cover_all_changes() -> None:
    assert {type(each.operation) for each in CHANGES} == {each for each in OPERATIONS.values() if each.changes()}


@pytest.mark.parametrize("example", CHANGES, ids=lambda each: f"{type(each.operation).__name__}-{each.label}")
async def test_record_of_a_change_states_its_whole_request(example: Example) -> None:
    """A fact that the request states and the record lacks is not protected by the sealed audit."""
    written = await record(example.operation)
    found = set(leaves(written))
    found |= {part for text in found for part in text.split(".")}
    path = [level for text in example.path.values() for level in unquote(text).split("\x1f")]
    name = type(example.operation).__name__
    body = set() if name in BESIDE_A_CREATION else {*leaves(example.body)}
    stated = {*body, *leaves(dict(example.query)), *path}
    assert stated - found - STATED_OTHERWISE.get(name, set()) == set()


@pytest.mark.parametrize("task", TASKS, ids=lambda each: each.__name__)
async def test_record_of_a_system_task_states_all_of_its_fields(task: type[Operation]) -> None:
    declared: Any = task
    values = {field.name: _sample(task, field.name) for field in dataclasses.fields(declared)}
    operation = task(**values)
    written = set(leaves(json.loads(msgspec.json.encode({"facts": facts_of(operation)}))))
    objects = {demand.on for demand in operation.demands()} | set(operation.further_refs())
    stated = {name: each for name, each in values.items() if not (isinstance(each, _REFS) and each in objects)}
    assert set(leaves(json.loads(msgspec.json.encode(stated, enc_hook=str)))) - written == set()


_REFS = (TabularRef, ProjectRef, WarehouseRef)


def _sample(task: type[Operation], name: str) -> Any:
    kind = get_type_hints(task)[name]
    samples: dict[Any, Any] = {
        str: f"{name} text",
        int: 7,
        bool: True,
        UUID: uuid4(),
        datetime: datetime(2030, 1, 1, tzinfo=UTC),
        tuple[str, ...]: ("first", "second"),
        str | None: f"{name} text",
        ProjectRef: ProjectRef("project"),
        WarehouseRef: WarehouseRef(uuid4()),
    }
    return samples[kind]


def test_secrets_are_removed_and_other_values_stay() -> None:
    body = {
        "warehouse-name": "w",
        "storage-profile": {"type": "s3", "bucket": "b"},
        "storage-credential": {"type": "s3", "aws-secret-access-key": "hidden"},
    }
    project = next(each.operation.project for each in EXAMPLES if isinstance(each.operation, CreateWarehouse))
    facts = facts_of(CreateWarehouse(project, decode(json.dumps(body).encode(), CreateWarehouseRequest)))
    request = json.loads(bytes(facts["request"]))
    assert request["storage-credential"] == REDACTED
    assert (request["warehouse-name"], request["storage-profile"]["bucket"]) == ("w", "b")


@pytest.mark.parametrize("operation", [{"path": "password", "value": "hidden"}, {"value": {"password": "hidden"}}])
def test_password_of_a_directory_is_removed(operation: dict[str, Any]) -> None:
    patch = read(json.dumps({"Operations": [{"op": "replace", **operation}]}).encode(), PatchRequest)
    text = msgspec.json.encode(facts_of(PatchScimUser(id=uuid4(), patch=patch))).decode()
    assert "hidden" not in text
    assert REDACTED in text


def test_large_value_is_recorded_as_its_digest_beside_the_small_ones() -> None:
    updates = [{"action": "set-properties", "updates": {"a": "x" * MAX_FACTS_BYTES}}]
    body = {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid4())}], "updates": updates}
    facts = facts_of(CommitTable(world.TABLE, decode(json.dumps(body).encode(), CommitTableRequest)))
    assert len(msgspec.json.encode(facts)) <= MAX_FACTS_BYTES + 100
    request = json.loads(bytes(facts["request"]))
    whole = json.dumps(updates, separators=(",", ":")).encode()
    assert request["requirements"] == body["requirements"]
    assert request["updates"] == {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}


def test_many_large_values_fit() -> None:
    entries = tuple(
        Assignment(Privilege.SELECT, Principal(PrincipalType.USER, f"oidc~{number}"), reason="r" * 100)
        for number in range(1000)
    )
    facts = facts_of(WRITE_ASSIGNMENTS[0](world.TABLE, entries, entries))
    assert len(msgspec.json.encode(facts)) <= MAX_FACTS_BYTES
    assert all(set(json.loads(bytes(facts[name]))) == {"bytes", "sha256"} for name in ("writes", "deletes"))
