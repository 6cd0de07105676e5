# SPDX-License-Identifier: Apache-2.0
"""A warehouse that is not active is no part of the catalog: not there, and only who sees what was asked is told why."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.authz_errors import WarehouseNotActive
from gateway.access.operation import Operation
from gateway.access.operations.config import GetConfig
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.grants import READ_ASSIGNMENTS
from gateway.access.operations.namespaces import ListNamespaces, LoadNamespace
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.access.operations.warehouses import ActivateWarehouse, DeleteWarehouse, GetWarehouse
from gateway.access.refs import Table, TabularRef
from gateway.access.relations import VISIBLE_BY
from gateway.access.resolved import ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.iceberg.errors import NoSuchTableException
from tests.access import world
from tests.access.world import DENIED, House, request_context

(_READ_TABLE_ASSIGNMENTS,) = (each for each in READ_ASSIGNMENTS if each.__name__ == "ReadTableAssignments")


def deactivate(house: House) -> None:
    """Make the world's warehouse inactive, wherever a row tells of it."""
    shut = msgspec.structs.replace(world.warehouse_row, active=False)
    for ref, row in world.ROWS.items():
        match row:
            case ResolvedWarehouse():
                house.resolver.rows[ref] = shut
            case ResolvedNamespace():
                house.resolver.rows[ref] = msgspec.structs.replace(row, warehouse=shut)
            case ResolvedTable():
                inside = msgspec.structs.replace(row.namespace, warehouse=shut)
                house.resolver.rows[ref] = msgspec.structs.replace(row, namespace=inside)
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
async def test_the_catalog_tells_who_may_see_it_and_the_audit_why(operation: Operation) -> None:
    house = House()
    deactivate(house)
    with pytest.raises(WarehouseNotActive):
        await house.door.admit(request_context(), operation)
    [record] = house.audit.buffered
    assert record.decisions[0].failure == "WarehouseNotActive"
    assert record.outcome == "hidden"


async def test_who_sees_without_the_right_is_told_the_same_and_who_does_not_see_nothing() -> None:
    house = House()
    deactivate(house)
    house.judge.answer = lambda question: question.relation is VISIBLE_BY.get(question.object.type)
    with pytest.raises(WarehouseNotActive):
        await house.door.admit(request_context(), DropTable(world.TABLE))
    house.rules.answer = DENIED
    with pytest.raises(WarehouseNotActive):
        await house.door.admit(request_context(), LoadTable(world.TABLE))
    house.judge.answer = lambda _: False
    with pytest.raises(NoSuchTableException) as hidden:
        await house.door.admit(request_context(), LoadTable(world.TABLE))
    absent = House()
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
async def test_management_goes_on(operation: Operation) -> None:
    house = House()
    deactivate(house)
    assert (await house.door.admit(request_context(), operation)).operation is operation


async def test_what_was_admitted_before_is_refused_when_it_is_decided_again() -> None:
    house = House()
    permit = await house.door.admit(request_context(), DropTable(world.TABLE))
    deactivate(house)
    with pytest.raises(WarehouseNotActive):
        await permit.decide_again()


async def test_keys_asked_for_beside_a_load_are_refused_with_it() -> None:
    house = House()
    deactivate(house)
    with pytest.raises(WarehouseNotActive):
        await house.door.admit_with(request_context(), LoadTable(world.TABLE), VendCredentials(world.TABLE))
