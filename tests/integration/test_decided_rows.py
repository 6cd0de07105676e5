# SPDX-License-Identifier: Apache-2.0
"""Lists of access requests and break-glass activations read no rows of other users to which no grant leads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Select, create_mock_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from gateway.access.door.list_visibility import Holders
from gateway.db.grants import access_requests, break_glass
from gateway.db.grants.decided_rows import Selection

_DECIDING = frozenset({("table", "manage_grants"), ("warehouse", "manage_grants"), ("namespace", "manage_grants")})
_DIALECT: Any = create_mock_engine("postgresql://", lambda *_: None).dialect
_OTHERS = 3_000
_KINDS = {"access_requests": access_requests._REQUESTS, "break_glass_activations": break_glass._ACTIVATIONS}
_FURTHER = {
    "access_requests": ("duration, expires_at", "60, now() + interval '1 h'"),
    "break_glass_activations": ("minutes, status, latest_end", "15, 'pending', now() + interval '1 h'"),
}


class _Filled:
    """A transaction with many rows of other users elsewhere, a few on one table, and a few of the user `me`."""

    def __init__(self, connection: AsyncConnection, table: str) -> None:
        self.connection, self.table = connection, table
        self.warehouse, self.thing = uuid4(), uuid4()

    async def insert(self, principal: str, warehouse: UUID, type: str, on: UUID | None, count: int) -> None:
        """Insert rows on an object, on a different one each without `on`."""
        further, values = _FURTHER[self.table]
        statement = (
            f"insert into {self.table} (id, principal, project_id, warehouse_id, object_type, object_id, name, "
            f"privileges, reason, {further}) select gen_random_uuid(), :principal, 'p', :warehouse, :type, "
            "coalesce(cast(:on as uuid), gen_random_uuid())::text, 'n', '{select}', 'r', "
            f"{values} from generate_series(1, :count)"
        )
        given = {"principal": principal, "warehouse": warehouse, "type": type, "on": on, "count": count}
        await self.connection.execute(text(statement), given)

    async def grant(self, privilege: str, type: str, on: UUID) -> None:
        """Grant a privilege to the user `me`."""
        await self.connection.execute(
            text(
                "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
                "values (gen_random_uuid(), :privilege, 'user', 'me', :type, :on, 'x')"
            ),
            {"privilege": privilege, "type": type, "on": str(on)},
        )

    async def read(self, own: bool | None = None) -> tuple[int, int]:
        """Return (the rows of a page, the rows of the table that PostgreSQL reads for it)."""
        selection = Selection(
            user="me", holders=Holders("me", ()), deciding=_DECIDING, project_id=None, own=own, limit=100
        )
        return await self.cost(_KINDS[self.table].page(selection))

    async def cost(self, statement: Select[Any]) -> tuple[int, int]:
        """Return (the rows of a statement, the rows of the table that PostgreSQL reads for it)."""
        compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True})
        found = await self.connection.exec_driver_sql(f"explain (analyze, format json) {compiled}")
        explained = found.scalar_one()
        plan = explained if isinstance(explained, list) else json.loads(explained)
        scans = [node for node in _nodes(plan[0]["Plan"]) if node.get("Relation Name") == self.table]
        read = sum(
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))
            * node["Actual Loops"]
            for node in scans
        )
        return plan[0]["Plan"]["Actual Rows"], read


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", []):
        yield from _nodes(each)


@asynccontextmanager
async def _filled(url: str, table: str) -> AsyncIterator[_Filled]:
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            made = _Filled(connection, table)
            await connection.execute(text("insert into projects (id, name, name_key) values ('p', 'p', 'p')"))
            await made.insert("other", uuid4(), "table", None, _OTHERS)
            await made.insert("other", made.warehouse, "table", made.thing, 5)
            await made.insert("me", uuid4(), "table", None, 3)
            await connection.execute(text(f"analyze {table}"))
            yield made
            await connection.rollback()
    finally:
        await engine.dispose()


@pytest.mark.parametrize("table", sorted(_KINDS))
async def test_a_page_reads_only_rows_of_the_caller_and_rows_that_its_grants_lead_to(url: str, table: str) -> None:
    async with _filled(url, table) as made:
        # `select` on the table does not let the user decide, so its rows are not read either.
        await made.grant("select", "table", made.thing)
        assert await made.read() == (3, 6)
        await made.grant("manage_grants", "table", made.thing)
        found, read = await made.read()
        assert found == 8
        assert read <= 2 * found
        assert (await made.read(own=True))[0] == 3
        assert (await made.read(own=False))[0] == 5


@pytest.mark.parametrize("table", sorted(_KINDS))
async def test_a_grant_on_a_warehouse_leads_to_the_rows_of_this_warehouse_only(url: str, table: str) -> None:
    async with _filled(url, table) as made:
        await made.grant("manage_grants", "warehouse", made.warehouse)
        found, read = await made.read(own=False)
        assert (found, read <= 2 * found) == (5, True)


async def test_a_bundle_is_read_by_its_index(url: str) -> None:
    async with _filled(url, "access_requests") as made:
        bundle = uuid4()
        together = text("update access_requests set bundle = :bundle where warehouse_id = :warehouse returning id")
        (first, *_) = (
            await made.connection.execute(together, {"bundle": bundle, "warehouse": made.warehouse})
        ).scalars()
        await made.connection.execute(text("analyze access_requests"))
        for id, found in ((bundle, 5), (first, 1), (uuid4(), 0)):
            # Each row is read once for its id and once for its columns.
            assert await made.cost(access_requests._bundled(id)) == (found, 2 * found)
