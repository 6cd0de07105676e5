# SPDX-License-Identifier: Apache-2.0
"""Audit records of admitted requests, also of failed ones."""

from __future__ import annotations

from gateway.access.nouns.describe import describe_resource
from gateway.access.nouns.refs import Table, TabularRef
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.tables import DropTable
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context


async def test_a_failed_change_gets_a_separate_audit_record() -> None:
    """A transaction without a response may have committed the first record; its id must not be reused."""
    door_fixture = DoorFixture()
    at = request_context()
    permit = await door_fixture.door.admit(at, DropTable(world.TABLE))
    at.abandon("answered 500")
    (record,) = door_fixture.audit.buffered
    assert record.id != permit.pending_audit.record.id
    assert record.detail["result"] == "failed"


async def test_a_settled_change_is_recorded_once() -> None:
    door_fixture = DoorFixture()
    at = request_context()
    permit = await door_fixture.door.admit(at, DropTable(world.TABLE))
    permit.pending_audit.settle()
    at.abandon("answered 500")
    assert door_fixture.audit.buffered == []


def test_a_record_repeats_only_the_first_part_of_a_long_name() -> None:
    levels = tuple("x" * 1000 for _ in range(5))
    ref = TabularRef(Table, world.WAREHOUSE_ID, TableIdentifier(Namespace(levels), "t"))
    record = describe_resource(ref, Resolution(rows={}, now=world.NOW))
    assert record.name is not None
    assert len(record.name) < 2100
