# SPDX-License-Identifier: Apache-2.0
"""An audit record contains the input that policies received. The walk covers all operations."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.audit.audit_facts import record_of
from gateway.access.audit.audit_record import MAX_RECORD_BYTES, AuditRecord, encode_record
from gateway.access.audit.audited_inputs import MAX_INPUT_BYTES, MAX_ROLES, CallerInputs
from gateway.access.audit.recorded_inputs import policy_actor, policy_context, policy_question, replayable
from gateway.access.decisions.policy import PolicyRequest
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import FormerNames
from gateway.access.operation import Operation
from gateway.access.operations.grants import WRITE_ASSIGNMENTS, Assignment
from gateway.access.operations.tables import CreateTable, DropTable, LoadTable
from gateway.access.tuples import Principal, PrincipalType
from gateway.iceberg.codec import decode
from gateway.iceberg.wire import CreateTableRequest
from tests.support.door import world
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DoorFixture

ROLES = tuple(f"0195c0de-0000-7000-8000-{number:012x}" for number in range(3))
ASSERTED = Actor.user("oidc~eve", engine="oidc~trino", subject_proven=False)
WRITE_TABLE = next(each for each in WRITE_ASSIGNMENTS if each.__name__ == "WriteTableAssignments")


async def decided(
    operation: Operation, *, actor: Actor = world.ALICE, roles: tuple[str, ...] = ROLES
) -> tuple[AuditRecord, list[PolicyRequest]]:
    """Return the record as it is read from the database, and the requests to policies."""
    fixture = DoorFixture()
    fixture.resolver.roles = roles
    fixture.resolver.rows[world.TABLE] = msgspec.structs.replace(
        world.table_row, former=FormerNames(names=(("sales", "old"), ("old", "older")), complete=False)
    )
    context = RequestContext(actor=actor, request_id="request-1", user_agent="spark", client_address="10.0.0.1")
    resolution, decisions, groups = await fixture.door._judge(context, (operation,))
    record = record_of(context, (operation,), decisions, groups, resolution)
    return msgspec.json.decode(encode_record(record), type=AuditRecord), fixture.rules.calls


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{type(each.operation).__name__}-{each.label}")
async def test_recorded_input_equals_the_input_of_policies(example: Example) -> None:
    record, requests = await decided(example.operation)
    asked = [each for each in record.decisions if each.inputs is not None]
    assert bool(asked) == bool(requests)
    if not asked:
        return
    assert record.inputs is not None
    named = {each.operation for each in asked if not replayable(record, each)}
    assert named == set(), "the inputs of these operations are left out"
    again = PolicyRequest(
        actor=policy_actor(record.actor, record.inputs),
        context=policy_context(record),
        questions=tuple(policy_question(each, each.inputs) for each in asked if each.inputs is not None),
    )
    assert msgspec.json.encode(again) == msgspec.json.encode(requests[0])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{type(each.operation).__name__}-{each.label}")
async def test_recorded_demands_name_the_objects_of_the_operation(example: Example) -> None:
    record, _ = await decided(example.operation)
    parts = example.operation.parts() or (example.operation,)
    asked = [each for each in record.decisions if each.inputs is not None]
    for operation, decision in zip(parts, asked, strict=bool(asked)):
        assert decision.inputs is not None
        stated = decision.inputs.demands or tuple((each, 0) for each in decision.relations)
        found = {(relations, decision.resources[index].type) for relations, index in stated}
        required = [each for each in operation.demands() if each.required]
        assert found == {("|".join(each.relations), each.on.type.value) for each in required}
        names: dict[Ref, None] = dict.fromkeys(each.on for each in operation.demands())
        assert {index for _, index in stated} == {list(names).index(each.on) for each in required}


async def test_asserted_user_is_recorded_with_unknown_groups() -> None:
    record, requests = await decided(LoadTable(world.TABLE), actor=ASSERTED)
    assert record.inputs == CallerInputs(roles=ROLES, groups_known=False)
    assert policy_actor(record.actor, record.inputs) == requests[0].actor


async def test_many_roles_and_large_facts_are_left_out_as_a_whole() -> None:
    many = tuple(f"0195c0de-0000-7000-8000-{number:012x}" for number in range(MAX_ROLES + 1))
    record, _ = await decided(DropTable(world.TABLE), roles=many)
    assert record.inputs == CallerInputs(complete=False)
    assert not replayable(record, record.decisions[0])
    named = {f"property-{number:03}-{'x' * 60}": "1" for number in range(MAX_INPUT_BYTES // 70)}
    body = {"name": "t", "schema": {"type": "struct", "fields": []}, "properties": named}
    record, _ = await decided(CreateTable(world.NAMESPACE, decode(msgspec.json.encode(body), CreateTableRequest)))
    assert not replayable(record, record.decisions[0])
    assert b"property-000" not in msgspec.json.encode(record.decisions[0].inputs)


async def test_fact_that_looks_like_a_secret_is_left_out() -> None:
    body = {"name": "t", "schema": {"type": "struct", "fields": []}, "properties": {"https://u:hidden@host/": "1"}}
    record, _ = await decided(CreateTable(world.NAMESPACE, decode(msgspec.json.encode(body), CreateTableRequest)))
    assert not replayable(record, record.decisions[0])
    assert b"hidden" not in msgspec.json.encode(record.decisions[0].inputs)


async def test_record_with_inputs_keeps_its_size_limit() -> None:
    """A long list of grants is in the facts of the change and in the inputs."""
    some = tuple(
        Assignment(Privilege.SELECT, Principal(PrincipalType.USER, f"oidc~{number}"), reason="r" * 100)
        for number in range(1000)
    )
    record, _ = await decided(WRITE_TABLE(world.TABLE, some, some))
    assert len(encode_record(record)) <= MAX_RECORD_BYTES
    assert not replayable(record, record.decisions[0])
