# SPDX-License-Identifier: Apache-2.0
"""The data policy revision under concurrent changes: it is null only while no policy is bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Connection, Database
from gateway.db.policies import data_policies, data_policy_bindings
from gateway.db.policies.data_policy_bindings import Bound
from gateway.db.policies.data_policy_revisions import touch
from tests.support.rows.parts import Rows

MASK = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "email"}]}


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    made = Database(url, pool_size=4, acquire_timeout=30)
    yield made
    await made.close()


@pytest.fixture
async def rows(database: Database) -> Rows:
    made = Rows()
    async with database.transaction() as connection:
        await made.insert(connection)
    return made


async def policy(connection: Connection, rows: Rows) -> UUID:
    id = uuid4()
    document = {
        "name": str(id), "description": None, "definition": MASK, "applies_to": "everyone", "allow_append": False,
    }  # fmt: skip
    await data_policies.create(connection, id=id, project_id=rows.project, document=document, tag_ids={}, by="oidc~ann")
    return id


async def bind(connection: Connection, rows: Rows, id: UUID) -> None:
    bound = Bound("table", rows.table, rows.warehouses[0])
    await data_policy_bindings.bind(connection, id, [bound], by="oidc~ann")
    await data_policy_bindings.touch_warehouses(connection, id)


async def revisions(database: Database, rows: Rows) -> list[UUID | None]:
    """Return the revisions of both warehouses."""
    statement = text("select id, data_policy_revision as it from warehouses")
    async with database.transaction() as connection:
        found = {row.id: row.it for row in await connection.execute(statement)}
    return [found[id] for id in rows.warehouses]


async def test_unbinding_waits_for_a_concurrent_binding(database: Database, rows: Rows) -> None:
    """Without the lock the last unbinding would not see the new binding, and would switch the policies off."""
    async with database.transaction() as connection:
        first, second = await policy(connection, rows), await policy(connection, rows)
        await bind(connection, rows, first)

    async def unbind() -> None:
        async with database.transaction() as connection:
            await data_policy_bindings.unbind(connection, first, [rows.table])
            await touch(connection, project_id=rows.project, warehouse_id=rows.warehouses[0])

    async with database.transaction() as connection:
        await bind(connection, rows, second)
        unbinding = asyncio.create_task(unbind())
        async with asyncio.timeout(60), database.transaction() as other:
            waiting = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
            while not (await other.execute(waiting)).scalar_one():
                await asyncio.sleep(0.05)
                # Otherwise this transaction keeps its first snapshot of `pg_stat_activity`.
                await other.execute(text("select pg_stat_clear_snapshot()"))
    await unbinding
    here, beside = await revisions(database, rows)
    assert here is not None
    assert beside is None, "the other warehouse has no binding and costs nothing"


async def test_a_tag_concerns_the_warehouses_that_carry_it(database: Database, rows: Rows) -> None:
    tag = uuid4()
    async with database.transaction() as connection:
        id = await policy(connection, rows)
        await connection.execute(
            text(
                "insert into tags (id, project_id, name, name_key, scope, value_kind) "
                "values (:id, :project, 'pii', 'pii', '{table}', 'marker')"
            ),
            {"id": tag, "project": rows.project},
        )
        await data_policy_bindings.bind(connection, id, [Bound("tag", tag, None)], by="oidc~ann")
        await data_policy_bindings.touch_warehouses(connection, id)
    assert await revisions(database, rows) == [None, None]
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, attached_by) "
                "values (:tag, :warehouse, 'table', :table, 'oidc~ann')"
            ),
            {"tag": tag, "warehouse": rows.warehouses[0], "table": rows.table},
        )
        await touch(connection, project_id=rows.project, warehouse_id=rows.warehouses[0])
    before = await revisions(database, rows)
    assert before[0] is not None
    assert before[1] is None
    async with database.transaction() as connection:
        await data_policy_bindings.touch_warehouses(connection, id)
        (covered,) = await data_policy_bindings.covered(connection, id, after=None, limit=2)
        assert covered.id == rows.table
    after = await revisions(database, rows)
    assert after[0] not in (None, before[0])
