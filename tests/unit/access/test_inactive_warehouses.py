# SPDX-License-Identifier: Apache-2.0
"""An inactive warehouse: hidden in the catalog; its state is disclosed only to callers with visibility."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.nouns.authz_errors import WarehouseNotActive
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import Table, TabularRef
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.grants import READ_ASSIGNMENTS
from gateway.access.operations.namespaces import ListNamespaces, LoadNamespace
from gateway.access.operations.server import GetConfig
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.access.operations.warehouses import ActivateWarehouse, DeleteWarehouse, GetWarehouse
from gateway.iceberg.errors import NoSuchTableException
from tests.support.door import world
from tests.support.door.world import DENIED, DoorFixture, request_context

(_READ_TABLE_ASSIGNMENTS,) = (each for each in READ_ASSIGNMENTS if each.__name__ == "ReadTableAssignments")


def deactivate(door_fixture: DoorFixture) -> None:
    """Make the world's warehouse inactive in every row that contains it."""
    shut = msgspec.structs.replace(world.warehouse_row, active=False)
    for ref, row in world.ROWS.items():
        match row:
            case ResolvedWarehouse():
                door_fixture.resolver.rows[ref] = shut
            case ResolvedNamespace():
                door_fixture.resolver.rows[ref] = msgspec.structs.replace(row, warehouse=shut)
            case ResolvedTable():
                inside = msgspec.structs.replace(row.namespace, warehouse=shut)
                door_fixture.resolver.rows[ref] = msgspec.structs.replace(row, namespace=inside)
            case _:
                pass


@pytest.mark.parametrize(
    "operation",
    [
        GetConfig(world.WAREHOUSE_BY_NAME),
        ListNamespaces(world.WAREHOUSE),
        LoadNamespace(world.NAMESPACE),
        LoadTable(world.TABLE),
        VendCredentials(world.TABLE),
        DropTable(world.TABLE),
    ],
)
async def test_catalog_operations_on_an_inactive_warehouse_are_refused_and_audited(operation: Operation) -> None:
    door_fixture = DoorFixture()
    deactivate(door_fixture)
    with pytest.raises(WarehouseNotActive):
        await door_fixture.door.admit(request_context(), operation)
    [record] = door_fixture.audit.buffered
    assert record.decisions[0].failure == "WarehouseNotActive"
    assert record.outcome == "hidden"


async def test_inactivity_is_disclosed_only_to_callers_with_visibility() -> None:
    door_fixture = DoorFixture()
    deactivate(door_fixture)
    door_fixture.judge.answer = lambda question: question.relation is VISIBLE_BY.get(question.object.type)
    with pytest.raises(WarehouseNotActive):
        await door_fixture.door.admit(request_context(), DropTable(world.TABLE))
    door_fixture.rules.answer = DENIED
    with pytest.raises(WarehouseNotActive):
        await door_fixture.door.admit(request_context(), LoadTable(world.TABLE))
    door_fixture.judge.answer = lambda _: False
    with pytest.raises(NoSuchTableException) as hidden:
        await door_fixture.door.admit(request_context(), LoadTable(world.TABLE))
    absent = DoorFixture()
    del absent.resolver.rows[world.TABLE]
    with pytest.raises(NoSuchTableException) as missing:
        await absent.door.admit(request_context(), LoadTable(world.TABLE))
    assert hidden.value.message == missing.value.message


@pytest.mark.parametrize(
    "operation",
    [
        GetWarehouse(world.WAREHOUSE),
        ActivateWarehouse(world.WAREHOUSE),
        DeleteWarehouse(world.WAREHOUSE),
        _READ_TABLE_ASSIGNMENTS(TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)),
    ],
)
async def test_an_inactive_warehouse_can_be_managed(operation: Operation) -> None:
    door_fixture = DoorFixture()
    deactivate(door_fixture)
    assert (await door_fixture.door.admit(request_context(), operation)).operation is operation


async def test_revalidation_is_refused_after_deactivation() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DropTable(world.TABLE))
    deactivate(door_fixture)
    with pytest.raises(WarehouseNotActive):
        await permit.revalidate()


async def test_credentials_are_refused_together_with_their_load() -> None:
    door_fixture = DoorFixture()
    deactivate(door_fixture)
    with pytest.raises(WarehouseNotActive):
        await door_fixture.door.admit_with(request_context(), LoadTable(world.TABLE), VendCredentials(world.TABLE))
