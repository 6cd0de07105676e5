# SPDX-License-Identifier: Apache-2.0
"""Lock 2, for the type checker: it refuses exactly the marked lines (`test_lock_2_types.py`)."""

from __future__ import annotations

from gateway.access.door._mint import mint
from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.refs import NamespaceRef, TableRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.grants import ReadAssignments, WriteAssignments
from gateway.access.operations.tables import CommitTable, CreateTable, DropTable, LoadTable
from gateway.iceberg.wire import CreateTableRequest


async def drop(permit: Permit[DropTable]) -> None:
    """Stand for a use case."""


async def vend(permit: Permit[VendCredentials]) -> None:
    """Stand for a use case that vends keys."""


async def create(permit: Permit[CreateTable], keys: Permit[VendCreationCredentials] | None) -> None:
    """Stand for a use case with an optional second permit."""


async def either(permit: Permit[ReadAssignments | WriteAssignments]) -> None:
    """Stand for a use case of two operations."""


async def note(permit: Permit[Operation]) -> None:
    """Stand for a helper that takes any permit."""


async def permit_has_its_operation(door: Door, context: RequestContext, table: TableRef) -> None:
    await drop(await door.admit(context, DropTable(table)))
    await drop(await door.admit(context, LoadTable(table)))  # refused
    await vend(await door.admit(context, VendCredentials(table)))
    await vend(await door.admit(context, LoadTable(table)))  # refused
    await vend(await door.admit(context, CommitTable))  # refused
    await note(await door.admit(context, LoadTable(table)))


async def an_operation_is_no_permit(door: Door, context: RequestContext, table: TableRef) -> None:
    await drop(DropTable(table))  # refused
    await drop(door.admit(context, DropTable(table)))  # refused
    await drop(None)  # refused
    await drop(Permit[DropTable])  # refused


async def an_optional_permit_may_be_missing(
    door: Door, context: RequestContext, table: TableRef, namespace: NamespaceRef, request: CreateTableRequest
) -> None:
    operation = CreateTable(namespace, request)
    permit, keys = await door.admit_with(context, operation, VendCreationCredentials(namespace, "t"))
    await create(permit, keys)
    await create(keys, permit)  # refused
    permit, read = await door.admit_with(context, operation, VendCredentials(table))
    await create(permit, read)  # refused
    await vend(read)  # refused
    if read is not None:
        await vend(read)


async def a_permit_is_not_widened(permit: Permit[Operation], reading: Permit[ReadAssignments]) -> None:
    await drop(permit)  # refused
    await either(reading)
    narrowed: Permit[DropTable] = permit  # refused
    await drop(narrowed)


async def permits_cannot_be_constructed(
    permit: Permit[LoadTable], table: TableRef, by_id: TableRef, warehouse: WarehouseRef
) -> None:
    permit.operation = DropTable(table)  # refused
    permit.actor = permit.actor  # refused
    permit.table(table)
    permit.table(by_id)
    permit.table(warehouse)  # refused
    permit.holds(Can.DROP, table)
    permit.holds("can_drop", table)  # refused
    mint(permit.operation)  # refused


class Forged(Permit[DropTable]):  # refused
    """Invalid: a permit is final."""


class NoOperation:
    """Invalid: not declared as an operation."""


async def only_operations_are_admitted(
    door: Door,
    context: RequestContext,
    permit: Permit[NoOperation],  # refused
) -> None:
    await door.admit(context, NoOperation())  # refused
