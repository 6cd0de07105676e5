# SPDX-License-Identifier: Apache-2.0
"""Cost of moving a namespace: the number of statements does not depend on its size."""

from __future__ import annotations

import time
from uuid import UUID, uuid4

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.db.engine.database import Database
from gateway.db.grants import grants
from gateway.db.tables import namespace_move, namespaces
from gateway.iceberg.identifiers import Namespace
from tests.support.rows.parts import Parts, Rows, add_table, resolved_inner, resolved_outer


async def _fill(connection: AsyncConnection, rows: Rows, count: int) -> None:
    """Create this many namespaces in the inner one, each with a table that has an owner."""
    for number in range(count):
        space, table = uuid4(), uuid4()
        values = {
            "id": space,
            "warehouse": rows.warehouses[0],
            "parent": rows.inner,
            "ancestors": [rows.outer, rows.inner],
            "levels": [str(rows.outer), str(rows.inner), f"n{number}"],
            "key": f"{rows.outer}\x1f{rows.inner}\x1fn{number}",
        }
        await connection.execute(
            text(
                "insert into namespaces (id, warehouse_id, parent_id, ancestors, levels, path_key, properties) "
                "values (:id, :warehouse, :parent, :ancestors, :levels, :key, '{}')"
            ),
            values,
        )
        kind = ("table", "view", "generic_table")[number % 3]
        await add_table(connection, table, rows.warehouses[0], space, kind=kind)
        on = ObjectKey(ObjectType(kind), str(table))
        owner = (rows.ann, rows.ben)[number % 2]
        await grants.grant(connection, privilege=Privilege.OWNERSHIP, principal=owner, on=on, by="test")


async def _move(database: Database, rows: Rows, *, to_top: bool) -> tuple[int, float]:
    """Move the inner namespace; return (number of SQL statements, seconds)."""
    sent: list[str] = []
    parent = None if to_top else resolved_outer(rows)
    to = Namespace((str(rows.inner),) if to_top else (str(rows.outer), str(rows.inner)))

    def note(_: object, __: object, statement: str, *___: object) -> None:
        sent.append(statement)

    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    began = time.monotonic()
    try:
        async with database.transaction() as connection:
            at = await resolved_inner(connection, rows)
            sent.clear()
            subtree = await namespace_move.lock(connection, at, parent=parent)
            assert subtree is not None
            await namespace_move.move(connection, subtree, project_id=rows.project, to=to)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return len(sent), time.monotonic() - began


async def _world(database: Database, count: int) -> Rows:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
        await _fill(connection, rows, count)
    return rows


async def test_namespace_move_statement_count_is_independent_of_its_size(parts: Parts) -> None:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=30)
    try:
        few, _ = await _move(database, await _world(database, 2), to_top=True)
        rows = await _world(database, 500)
        many, seconds = await _move(database, rows, to_top=True)
        assert (many, few) == (few, few)
        assert few <= 12
        assert seconds < 60
        async with database.read() as connection:
            await _require_paths(connection, rows, (str(rows.inner),), [rows.inner])
            pending = (await connection.execute(text("select id from outbox where takes_away"))).all()
        # The edges, and the traverse tuples of two owners on the outer namespace: none for each object inside.
        assert len(pending) == 2 + 2
        await _move(database, rows, to_top=False)
        async with database.read() as connection:
            await _require_paths(connection, rows, (str(rows.outer), str(rows.inner)), [rows.outer, rows.inner])
    finally:
        await database.close()


async def _require_paths(
    connection: AsyncConnection, rows: Rows, levels: tuple[str, ...], ancestors: list[UUID]
) -> None:
    """Check that all 500 namespaces are below the inner one, in each column that stores their path."""
    found = (
        await connection.execute(
            text("select levels, path_key, ancestors from namespaces where parent_id = :id"), {"id": rows.inner}
        )
    ).all()
    assert len(found) == 500
    for row in found:
        assert tuple(row.levels[:-1]) == levels
        assert row.path_key == "\x1f".join(row.levels)
        assert list(row.ancestors) == ancestors


async def test_a_path_begins_with_the_spelling_that_the_parent_has_when_the_change_commits(parts: Parts) -> None:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=30)
    try:
        rows = await _world(database, 0)
        parent, warehouse = resolved_outer(rows), rows.warehouses[0]
        spelled = str(rows.outer).upper()
        async with database.transaction() as connection:
            # A rename that changes letter case only, after the parent was resolved.
            await connection.execute(
                text("update namespaces set levels = array[cast(:name as text)] where id = :id"),
                {"name": spelled, "id": rows.outer},
            )
            made = uuid4()
            assert await namespaces.create(
                connection,
                id=made,
                warehouse_id=warehouse,
                parent=parent,
                namespace=parent.namespace.child("new"),
                properties={},
            )
            at = await resolved_inner(connection, rows)
            subtree = await namespace_move.lock(connection, at, parent=parent)
            assert subtree is not None
            to = parent.namespace.child("Renamed")
            await namespace_move.move(connection, subtree, project_id=rows.project, to=to)
            query = "select levels from namespaces where id = any(:ids) order by levels"
            found = await connection.execute(text(query), {"ids": [made, rows.inner]})
            assert [list(row.levels) for row in found] == [[spelled, "Renamed"], [spelled, "new"]]
    finally:
        await database.close()
