# SPDX-License-Identifier: Apache-2.0
"""List live credentials for an operator with access to the database: `lakegate live-credentials`."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from gateway.db import live_credentials
from gateway.db.engine import Connection, Database
from gateway.db.live_credentials import Selection
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.protocol.live_credentials import LiveCredential

_AT_A_TIME: Final = 1000


class NotFound(Exception):
    """No warehouse or table has the given name, or several have."""


async def find(
    database: Database, *, warehouse: str | None, table: str | None, user: str | None
) -> list[LiveCredential]:
    """Return the live credentials, the oldest first. None selects all.

    `warehouse` is an id or a name. `table` is an id, or the dotted name of a table in the warehouse. Raises NotFound
    and DatabaseUnavailable.
    """
    found: list[LiveCredential] = []
    async with database.read() as connection:
        selection = await _selection(connection, warehouse, table, user)
        while True:
            after = found[-1].id if found else None
            rows = await live_credentials.page(connection, selection, after=after, limit=_AT_A_TIME)
            found += rows
            if len(rows) < _AT_A_TIME:
                return found


async def _selection(connection: Connection, warehouse: str | None, table: str | None, user: str | None) -> Selection:
    warehouse_id = None if warehouse is None else _uuid(warehouse)
    if warehouse is not None and warehouse_id is None:
        ids = await live_credentials.warehouses_named(connection, warehouse)
        if len(ids) != 1:
            raise NotFound(f"{len(ids)} warehouses are named {warehouse!r}; give the id of the warehouse")
        (warehouse_id,) = ids
    table_id = None if table is None else _uuid(table)
    if table is not None and table_id is None:
        levels = table.split(".")
        if warehouse_id is None or len(levels) < 2:
            raise NotFound("give the id of the table, or its name <namespace>.<name> together with --warehouse")
        identifier = TableIdentifier(Namespace(tuple(levels[:-1])), levels[-1])
        table_id = await live_credentials.table_named(connection, warehouse_id, identifier)
        if table_id is None:
            raise NotFound(f"the warehouse has no table {table!r}; give the id of a deleted table")
    return Selection(warehouse_id=warehouse_id, table_id=table_id, user=user)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
