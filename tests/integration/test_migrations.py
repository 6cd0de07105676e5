# SPDX-License-Identifier: Apache-2.0
"""Databases of every earlier version become today's, with what is in them, and no step takes away what the process of
the version before still reads or writes while it goes on serving (docs/operator.md, "Upgrades").
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar, TypeVarTuple
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    ARRAY,
    UUID,
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db import migrate
from gateway.db.migrate import SchemaMismatch, require_current_schema, run_migrations
from gateway.db.schema.whole import whole_schema
from tests.integration.parts import Parts, closed_port, running_parts

REVISIONS = [each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()][::-1]

#: Steps that took away something the version before used, before there was a release that anybody could run. A step
#: that is added here cannot be made while the version before serves: then the release says so.
TOOK_AWAY: dict[str, set[str]] = {}

Columns = dict[tuple[str, str], tuple[str, bool]]
Rows = dict[str, dict[str, object]]

#: What excludes another column: a staged table has no metadata, one with a format is generic, a task or queue is a
#: warehouse's or a project's.
LEFT_OUT = {
    ("tables", "staged_by"),
    ("tables", "format"),
    ("task_queue_configs", "project_id"),
    ("tasks", "project_id"),
}

#: Where a constraint says `column in (…)`: the first of the values.
_ONE_OF = re.compile(r"(\w+) = ANY \(\(?ARRAY\['([^']+)'")


Answer = TypeVar("Answer")
Given = TypeVarTuple("Given")


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with running_parts() as parts:
        yield parts


@pytest.fixture
def empty(parts: Parts) -> str:
    """The URL of a database with nothing in it."""

    async def clear() -> None:
        engine = create_async_engine(parts.database_url)
        async with engine.begin() as connection:
            await connection.execute(text("drop schema public cascade"))
            await connection.execute(text("create schema public"))
        await engine.dispose()

    asyncio.run(clear())
    return parts.database_url


async def _on(url: str, work: Callable[[Connection, *Given], Answer], *arguments: *Given) -> Answer:
    engine = create_async_engine(url)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work, *arguments)
    finally:
        await engine.dispose()


def to(connection: Connection, revision: str) -> None:
    config = migrate._config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def columns(connection: Connection) -> Columns:
    """(type, whether a row may leave it out) by (table, column)."""
    look = inspect(connection)
    return {
        (table, each["name"]): (
            str(each["type"]),
            bool(each["nullable"] or each.get("default") or each.get("identity")),
        )
        for table in look.get_table_names()
        for each in look.get_columns(table)
    }


def fill(connection: Connection) -> Rows:
    """One row in every table, whatever its columns are; what was written, by table."""
    reflected = MetaData()
    reflected.reflect(connection)
    written: Rows = {}
    for table in reflected.sorted_tables:
        if table.name == "alembic_version":
            continue
        checks = [each["sqltext"] for each in inspect(connection).get_check_constraints(table.name)]
        known = {found[1]: found[2] for check in checks for found in _ONE_OF.finditer(check)}
        row: dict[str, object] = {}
        for column in table.columns:
            if column.identity is None and column.computed is None and (table.name, column.name) not in LEFT_OUT:
                row[column.name] = known.get(column.name) or _value(table.name, column, written)
        connection.execute(insert(table).values(row))
        written[table.name] = row
    return written


def _value(table: str, column: Column[object], written: Rows) -> object:
    for key in column.foreign_keys:
        parent = written.get(key.column.table.name)
        return None if parent is None else parent[key.column.name]
    match column.type:
        case UUID():
            return uuid4()
        case Boolean():
            return True
        case Integer():
            return 1
        case Float() | Numeric():
            return 0.5
        case DateTime():
            return datetime(2030, 1, 1, tzinfo=UTC)
        case LargeBinary():
            return bytes(32)  # as long as a digest
        case ARRAY():
            return []
        case JSONB():
            return {"a": "b"}
        case _:
            return f"{table} {column.name}"


def there(connection: Connection, written: Rows) -> dict[str, str]:
    """What is missing of the rows that were written: nothing, when every value is still in its table and column."""
    reflected = MetaData()
    reflected.reflect(connection)
    missing = {}
    for name, row in written.items():
        table = reflected.tables[name]
        found = connection.execute(select(*(table.c[column] for column in row))).mappings().all()
        if row not in [dict(each) for each in found]:
            missing[name] = f"{row} became {found}"
    return missing


@pytest.mark.parametrize("start", REVISIONS[:-1])
async def test_a_database_of_any_version_becomes_todays_with_all_that_is_in_it(empty: str, start: str) -> None:
    await _on(empty, to, start)
    with pytest.raises(SchemaMismatch, match=f"has schema {start}, this version needs .*run `lakegate migrate`"):
        await require_current_schema(empty)
    written = await _on(empty, fill)
    assert isinstance(written, dict)
    assert len(written) > 8
    await run_migrations(empty)
    await require_current_schema(empty)
    assert await _on(empty, there, written) == {}


async def test_what_the_migrations_make_is_what_the_code_expects(empty: str) -> None:
    await run_migrations(empty)
    differences = await _on(
        empty, lambda connection: compare_metadata(MigrationContext.configure(connection), whole_schema())
    )
    assert differences == []


async def test_no_step_takes_away_what_the_version_before_uses(empty: str) -> None:
    before: Columns = {}
    wrong: list[str] = []
    for revision in REVISIONS:
        await _on(empty, to, revision)
        after = await _on(empty, columns)
        assert isinstance(after, dict)
        tables = {table for table, _ in before}
        taken = {key for key in before if key not in after}
        changed = {key for key in before if key in after and after[key][0] != before[key][0]}
        # A process that does not know a new column leaves it out when it writes a row.
        demanded = {key for key in after if key[0] in tables and key not in before and not after[key][1]}
        found = {".".join(key) for key in taken | changed | demanded}
        wrong += [f"{revision}: {each}" for each in sorted(found - TOOK_AWAY.get(revision, set()))]
        before = after
    assert wrong == []


async def test_a_step_that_fails_keeps_those_before_it_and_is_repeated(empty: str) -> None:
    """Each step has a transaction of its own: a long run that fails late does not begin anew."""
    await _on(empty, lambda connection: connection.execute(text("create table former_table_names ()")))
    with pytest.raises(ProgrammingError, match="former_table_names"):
        await run_migrations(empty)
    with pytest.raises(SchemaMismatch, match="has schema 0030"):
        await require_current_schema(empty)
    await _on(empty, lambda connection: connection.execute(text("drop table former_table_names")))
    await run_migrations(empty)
    await require_current_schema(empty)


async def test_a_database_that_a_newer_version_made_is_refused_and_left_alone(empty: str) -> None:
    await run_migrations(empty)
    await _on(empty, lambda connection: connection.execute(text("update alembic_version set version_num = '9999'")))
    for refused in (run_migrations, require_current_schema):
        with pytest.raises(SchemaMismatch, match="schema 9999, which a newer version made"):
            await refused(empty)


async def test_one_without_a_schema_and_one_that_is_away_are_told_apart(empty: str) -> None:
    with pytest.raises(SchemaMismatch, match="no schema yet: run `lakegate migrate`"):
        await require_current_schema(empty)
    with pytest.raises(DatabaseUnavailable), closed_port() as port:
        await require_current_schema(f"postgresql+asyncpg://u:p@127.0.0.1:{port}/d")


async def test_two_that_migrate_at_once_both_end_with_todays_schema(empty: str) -> None:
    await asyncio.gather(run_migrations(empty), run_migrations(empty))
    await require_current_schema(empty)


_OWNERS = """
    insert into grants (
        id, privilege, principal_type, principal_id, object_type, object_id, granted_by, granted_at, expires_at)
    values
        (gen_random_uuid(), 'ownership', 'user', 'oidc~anna', 'warehouse', :one, 'oidc~anna', now(), null),
        (gen_random_uuid(), 'ownership', 'role', :two, 'warehouse', :one, 'oidc~root', now(), '2199-01-01Z'),
        (gen_random_uuid(), 'ownership', 'user', 'oidc~late', 'warehouse', :one, 'oidc~root', now(), '2001-01-01Z'),
        (gen_random_uuid(), 'modify', 'user', 'oidc~bert', 'warehouse', :one, 'oidc~root', now(), null),
        (gen_random_uuid(), 'ownership', 'user', 'oidc~cara', 'namespace', :two, 'oidc~cara', now(), null)
"""


async def test_owners_of_warehouses_keep_the_right_to_change_the_storage(empty: str) -> None:
    """Model 1.6: `modify` no longer gives it, so the owners of the day receive the grant, as their ownership ends."""
    ids = {"one": str(uuid4()), "two": str(uuid4())}
    await _on(empty, to, "0027")
    await _on(empty, lambda connection: connection.execute(text(_OWNERS), ids))
    await run_migrations(empty)

    def found(connection: Connection) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        given = connection.execute(
            text(
                "select principal_id, object_type, object_id, granted_by, extract(year from expires_at)::int "
                "from grants where privilege = 'manage_storage' order by principal_type, principal_id"
            )
        )
        waiting = connection.execute(
            text("select subject_type, subject_id, object_id, takes_away, warehouse_id::text from outbox order by 1")
        )
        return [tuple(row) for row in given], [tuple(row) for row in waiting]

    given, waiting = await _on(empty, found)
    assert given == [
        (ids["two"], "warehouse", ids["one"], "oidc~root", 2199),
        ("oidc~anna", "warehouse", ids["one"], "oidc~anna", None),
    ]
    assert waiting == [
        ("role", ids["two"], ids["one"], False, ids["one"]),
        ("user", "oidc~anna", ids["one"], False, ids["one"]),
    ]
