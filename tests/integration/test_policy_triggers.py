# SPDX-License-Identifier: Apache-2.0
"""Triggers that keep data policies with generic tables, and column names with the files of deleted tables."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.nouns import refs
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedNamespace
from gateway.db.engine.database import Database
from gateway.db.policies.data_policy_bindings import covered, of_policy
from gateway.db.policies.policy_inputs import PolicyRows
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tables import retired_locations
from gateway.iceberg.identifiers import Namespace
from tests.support.rows.parts import Rows, add_table, resolved_outer
from tests.support.rows.policy_rows import add, add_policy

DOCUMENT = {
    "current-schema-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": [{"id": 1, "name": "nick", "type": "string", "required": False}]},
        {"schema-id": 1, "fields": [{"id": 1, "name": "email", "type": "string", "required": False}]},
    ],
}


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    made = Database(url, pool_size=2, acquire_timeout=30)
    yield made
    await made.close()


async def governed(database: Database) -> tuple[Rows, UUID, UUID]:
    """Insert rows; return them with a generic table in `inner` and the policy that is bound to `outer`."""
    rows, lake = Rows(), uuid4()
    async with database.transaction() as connection:
        await rows.insert(connection)
        await add_table(connection, lake, rows.warehouses[0], rows.inner, kind="generic_table")
        await connection.execute(text("delete from former_columns"))
    policy = await add_policy(database, rows, "p")
    await add(
        database,
        "insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by)"
        " values (:policy, 'namespace', :on, :warehouse, 'x')",
        policy=policy,
        on=rows.outer,
        warehouse=rows.warehouses[0],
    )
    await add(database, "update warehouses set data_policy_revision = gen_random_uuid()")
    return rows, lake, policy


async def bound_to(database: Database, rows: Rows, lake: UUID) -> set[str]:
    """Return the ids of the policies of a generic table, as decisions read them."""
    ref = refs.TabularRef(refs.GenericTable, rows.warehouses[0], lake)
    row = (await DatabaseResolver(database).resolve([ref], Actor.user(rows.users[0]))).rows[ref]
    assert isinstance(row, ResolvedGenericTable)
    found = (await PolicyRows(database).inputs([row]))[lake]
    assert found is not None
    return {each.policy.id for each in found.bound}


async def test_a_generic_table_has_the_policies_above_it_and_keeps_them_when_it_leaves(database: Database) -> None:
    rows, lake, policy = await governed(database)
    assert await bound_to(database, rows, lake) == {str(policy)}
    apart = await _apart(database, rows)
    await add(database, "update tables set namespace_id = :to where id = :id", to=apart.id, id=lake)
    assert await bound_to(database, rows, lake) == {str(policy)}
    async with database.read() as connection:
        kinds = {(row.object_id, row.kind) for row in await of_policy(connection, policy)}
        affected = {(row.id, row.kind) for row in await covered(connection, policy, after=None, limit=9)}
    assert kinds == {(rows.outer, None), (lake, "generic_table")}
    assert affected == {(rows.table, "table"), (lake, "generic_table")}


async def test_files_of_a_dropped_generic_table_carry_its_policies(database: Database) -> None:
    rows, lake, policy = await governed(database)
    new, apart = uuid4(), await _apart(database, rows)
    async with database.transaction() as connection:
        await _place(connection, lake)
        await connection.execute(text("delete from tables where id = :id"), {"id": lake})
        assert await _carry(connection, apart, new)
        assert not await _carry(connection, apart, uuid4(), location="s3://b/other")
        assert not await _carry(connection, resolved_outer(rows), uuid4()), "the same container has the policy"
    async with database.read() as connection:
        found = await connection.execute(
            text("select policy_id from data_policy_bindings where object_id = :id"), {"id": new}
        )
        assert set(found.scalars()) == {policy}


@pytest.mark.parametrize("document", [json.dumps(DOCUMENT), '{"schemas": [{"fields": "broken"}]}', "no JSON"])
async def test_a_deleted_table_leaves_the_names_of_its_columns_to_its_files(database: Database, document: str) -> None:
    """A registration of an older file then finds the newer names. No document prevents the deletion."""
    rows, _, _ = await governed(database)
    new = uuid4()
    async with database.transaction() as connection:
        await _place(connection, rows.table)
        await connection.execute(
            text("update tables set metadata = :document where id = :id"),
            {"document": document.encode(), "id": rows.table},
        )
        await connection.execute(text("delete from tables where id = :id"), {"id": rows.table})
        await _carry(connection, resolved_outer(rows), new)
    async with database.read() as connection:
        found = await connection.execute(
            text("select field_id, name from former_columns where table_id = :id"), {"id": new}
        )
        names = {tuple(row) for row in found}
    assert names == ({(1, "nick"), (1, "email")} if "nick" in document else set())


async def test_a_table_of_a_project_without_data_policies_and_tags_leaves_no_names(database: Database) -> None:
    rows, _, _ = await governed(database)
    await add(database, "delete from data_policies")
    await add(database, "update tables set metadata = :it", it=json.dumps(DOCUMENT).encode())
    await add(database, "delete from tables where id = :id", id=rows.table)
    async with database.read() as connection:
        assert (await connection.execute(text("select count(*) from former_columns"))).scalar_one() == 0


async def _place(connection: AsyncConnection, id: UUID) -> None:
    """Set the location of a table."""
    statement = "update tables set location = 's3://b/t', location_key = 's3://b/t/' where id = :id"
    await connection.execute(text(statement), {"id": id})


async def _apart(database: Database, rows: Rows) -> ResolvedNamespace:
    """Insert a namespace without policies."""
    outer, apart = resolved_outer(rows), uuid4()
    await add(
        database,
        "insert into namespaces (id, warehouse_id, ancestors, levels, path_key, properties)"
        " values (:id, :warehouse, '{}', array['apart'], 'apart', '{}')",
        id=apart,
        warehouse=rows.warehouses[0],
    )
    return ResolvedNamespace(id=apart, warehouse=outer.warehouse, namespace=Namespace(("apart",)), ancestors=())


async def _carry(
    connection: AsyncConnection, namespace: ResolvedNamespace, to: UUID, location: str = "s3://b/t"
) -> bool:
    return await retired_locations.carry_policies(
        connection,
        to=ObjectKey(ObjectType.TABLE, str(to)),
        namespace=namespace,
        file=None,
        above=[(location, f"{location}/")],
    )
