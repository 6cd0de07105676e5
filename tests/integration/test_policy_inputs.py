# SPDX-License-Identifier: Apache-2.0
"""Data policies of tables and values of mapping tables, read from a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns import refs
from gateway.access.nouns.resolved import ResolvedTable
from gateway.db.engine.database import Database
from gateway.db.policies.policy_inputs import PolicyRows
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.obligations.data_policies import Mask, PolicyInputs
from lakegate.restrictions.actions import Action
from tests.support.rows.parts import Rows
from tests.support.rows.policy_rows import add, add_policy


@pytest.fixture(params=[True, False], ids=["direct", "sqlalchemy"])
async def database(url: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    made = Database(url, pool_size=2, acquire_timeout=30, direct_reads=request.param)
    yield made
    await made.close()


async def bind(database: Database, policy: UUID, type: str, on: UUID, recorded: list[int] | None = None) -> None:
    """Insert a binding."""
    await add(
        database,
        "insert into data_policy_bindings (policy_id, object_type, object_id, recorded_fields, bound_by) "
        "values (:policy, :type, :on, :recorded, 'x')",
        policy=policy,
        type=type,
        on=on,
        recorded=recorded or [],
    )


async def resolved(database: Database, rows: Rows, *, revised: bool = True) -> ResolvedTable:
    """Return the table's row, after a new data policy revision."""
    if revised:
        await add(database, "update warehouses set data_policy_revision = gen_random_uuid()")
    await add(database, "update tables set metadata_location = 'm1'")
    ref = refs.TabularRef(refs.Table, rows.warehouses[0], rows.table)
    row = (await DatabaseResolver(database).resolve([ref], Actor.user(rows.users[0]))).rows[ref]
    assert isinstance(row, ResolvedTable)
    return row


async def inputs(database: Database, rows: Rows) -> PolicyInputs:
    """Return the inputs of the table, read by a new cache."""
    row = await resolved(database, rows)
    found = (await PolicyRows(database).inputs([row]))[row.id]
    assert found is not None
    return found


async def test_policies_of_the_table_its_containers_and_their_tags_are_read(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    policies = {name: await add_policy(database, rows, name) for name in ("t", "n", "o", "w", "g", "f", "elsewhere")}
    tag, column_tag = uuid4(), uuid4()
    for id, name in ((tag, "secret"), (column_tag, "personal")):
        await add(
            database,
            "insert into tags (id, project_id, name, name_key, scope, value_kind) "
            "values (:id, :project, :name, :name, '{}', 'marker')",
            id=id,
            project=rows.project,
            name=name,
        )
    for tag_id, type, on, field in ((tag, "namespace", rows.outer, None), (column_tag, "column", rows.table, 7)):
        await add(
            database,
            "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, attached_by) "
            "values (:tag, :warehouse, :type, :on, :field, 'x')",
            tag=tag_id,
            warehouse=rows.warehouses[0],
            type=type,
            on=on,
            field=field,
        )
    await bind(database, policies["t"], "table", rows.table, [3, 4])
    await bind(database, policies["n"], "namespace", rows.inner, [9])
    await bind(database, policies["o"], "namespace", rows.outer)
    await bind(database, policies["w"], "warehouse", rows.warehouses[0])
    await bind(database, policies["g"], "tag", tag)
    await bind(database, policies["f"], "tag", column_tag)
    await bind(database, policies["elsewhere"], "namespace", rows.other)
    await add(
        database,
        "insert into data_policy_releases (policy_id, table_id, field_id, released_by) values (:p, :t, 5, 'x')",
        p=policies["t"],
        t=rows.table,
    )
    await add(database, "insert into former_columns (table_id, field_id, name) values (:t, 8, 'email')", t=rows.table)
    found = await inputs(database, rows)
    expected = {
        (policies["t"], None, (3, 4), (5,)),
        (policies["n"], None, (), ()),
        (policies["o"], None, (), ()),
        (policies["w"], None, (), ()),
        (policies["g"], str(tag), (), ()),
        (policies["f"], str(column_tag), (), ()),
    }
    assert {(UUID(each.policy.id), each.tag, each.recorded, each.released) for each in found.bound} == expected
    definition = found.bound[0].policy.definition
    assert isinstance(definition, Mask)
    assert definition.action is Action.MASK_ALPHANUM
    assert set(found.tagged_fields) == {(str(tag), None), (str(column_tag), 7)}
    assert dict(found.tag_names) == {str(tag): "secret", str(column_tag): "personal"}
    assert found.former_columns == ((8, "email"),)


async def test_a_tag_on_a_column_of_another_table_is_not_read(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    tag = uuid4()
    await add(
        database,
        "insert into tags (id, project_id, name, name_key, scope, value_kind) "
        "values (:id, :project, 'a', 'a', '{}', 'marker')",
        id=tag,
        project=rows.project,
    )
    await add(
        database,
        "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, attached_by) "
        "values (:tag, :warehouse, 'column', :on, 7, 'x')",
        tag=tag,
        warehouse=rows.warehouses[0],
        on=rows.view,
    )
    assert await inputs(database, rows) == PolicyInputs()


async def test_inputs_are_read_again_after_a_new_revision_and_only_then(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    policy, reader = await add_policy(database, rows, "p"), PolicyRows(database)
    before = await resolved(database, rows)
    assert (await reader.inputs([before]))[rows.table] == PolicyInputs()
    await bind(database, policy, "table", rows.table)
    assert (await reader.inputs([before]))[rows.table] == PolicyInputs(), "expected the cached inputs"
    after = await reader.inputs([await resolved(database, rows)])
    assert after[rows.table] != PolicyInputs()
    moved = msgspec.structs.replace(before, namespace=msgspec.structs.replace(before.namespace, ancestors=()))
    assert (await reader.inputs([moved]))[rows.table] != PolicyInputs(), "expected a new read after a move"


async def test_a_policy_that_cannot_be_read_is_reported_and_not_skipped(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    policy = await add_policy(database, rows, "later", {"kind": "something-new"})
    await bind(database, policy, "warehouse", rows.warehouses[0])
    row = await resolved(database, rows)
    assert await PolicyRows(database).inputs([row]) == {rows.table: None}


async def test_values_are_those_of_the_user_and_the_given_roles(database: Database) -> None:
    rows, table = Rows(), uuid4()
    async with database.transaction() as connection:
        await rows.insert(connection)
    await add(
        database,
        "insert into mapping_tables (id, project_id, name, name_key) values (:id, :project, 'Regions', 'regions')",
        id=table,
        project=rows.project,
    )
    given = (("user", rows.users[0], "EU"), ("user", rows.users[1], "US"), ("role", str(rows.role), "AS"))
    for type, principal, value in given:
        await add(
            database,
            "insert into mapping_entries (mapping_id, principal_type, principal_id, value) values (:t, :k, :p, :v)",
            t=table,
            k=type,
            p=principal,
            v=value,
        )
    reader, name = PolicyRows(database), ["regions", "none"]
    roles = [str(rows.role)]
    assert await reader.mapped(rows.project, name, rows.users[0], roles) == (("regions", ("AS", "EU")), ("none", ()))
    assert await reader.mapped(rows.project, name, "", roles) == (("regions", ("AS",)), ("none", ()))
    assert await reader.mapped(rows.project, name, rows.users[1], ()) == (("regions", ("US",)), ("none", ()))
    assert await reader.mapped("other", name, rows.users[0], roles) == (("regions", ()), ("none", ()))
