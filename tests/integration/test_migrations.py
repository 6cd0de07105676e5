# SPDX-License-Identifier: Apache-2.0
"""Databases from the first schema on are upgraded with their rows, and older ones are refused (docs/backup.md).

No migration removes what a process of the previous version still reads or writes while it serves.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar, TypeVarTuple
from uuid import uuid4

import asyncpg
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
from tests.support.rows.parts import Parts, closed_port

pytestmark = pytest.mark.servers

REVISIONS = [each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()][::-1]

#: A database that migrations 0034 to 0056 made, before they became one.
SCHEMA_0056 = Path(__file__).with_name("schema_0056.sql")

#: What a migration removed although the previous version used it, before the first release. A migration that is added
#: here cannot run while the previous version serves; the release notes must say so.
TOOK_AWAY: dict[str, set[str]] = {}

Columns = dict[tuple[str, str], tuple[str, bool]]
Rows = dict[str, dict[str, object]]

#: Columns that exclude another column: a staged table has no metadata, a table with a format is generic, and a task or
#: a queue belongs to a warehouse or to a project. The expiry of a grant changes the row of the server.
LEFT_OUT = {
    ("grants", "expires_at"),
    ("tables", "staged_by"),
    ("tables", "format"),
    ("task_queue_configs", "project_id"),
    ("tasks", "project_id"),
}

#: A constraint of the form `column in (…)`: the column and the first of the values.
_ONE_OF = re.compile(r"(\w+) = ANY \(\(?ARRAY\['([^']+)'")


Answer = TypeVar("Answer")
Given = TypeVarTuple("Given")


@pytest.fixture
def empty(parts: Parts) -> str:
    """Return the URL of an empty database."""

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


async def to(url: str, revision: str) -> None:
    """Migrate to a revision, without a transaction around the migrations: some build an index outside of one."""

    def upgrade(connection: Connection) -> None:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(upgrade)
            await connection.commit()
    finally:
        await engine.dispose()


def columns(connection: Connection) -> Columns:
    """Return {(table, column): (type, True if an insert may omit it)}."""
    look = inspect(connection)
    return {
        (table, each["name"]): (
            str(each["type"]),
            bool(each["nullable"] or each.get("default") or each.get("identity")),
        )
        for table in look.get_table_names()
        for each in look.get_columns(table)
    }


def partitions(connection: Connection) -> set[str]:
    """Return the names of partitions; their rows are rows of the partitioned table."""
    return set(connection.scalars(text("select relname from pg_class where relispartition and relkind = 'r'")))


def differences(connection: Connection) -> list[object]:
    """Return the differences between the tables of the database and those of the code."""
    skipped = partitions(connection)
    options = {"include_name": lambda name, type, parents: type != "table" or name not in skipped}
    found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=options), whole_schema())
    return found


def fill(connection: Connection) -> Rows:
    """Insert one row into every table, whatever its columns are; return the inserted values by table."""
    reflected = MetaData()
    reflected.reflect(connection)
    written: Rows = {}
    skipped = {"alembic_version", *partitions(connection)}
    for table in reflected.sorted_tables:
        if table.name in skipped:
            continue
        checks = [each["sqltext"] for each in inspect(connection).get_check_constraints(table.name)]
        known = {found[1]: found[2] for check in checks for found in _ONE_OF.finditer(check)}
        row: dict[str, object] = {}
        for column in table.columns:
            if column.identity is None and column.computed is None and (table.name, column.name) not in LEFT_OUT:
                row[column.name] = known.get(column.name) or _value(table.name, column, written)
        inserted = connection.execute(insert(table).values(row))
        if any(column.identity is not None for column in table.primary_key) and inserted.inserted_primary_key:
            row |= dict(inserted.inserted_primary_key._mapping)  # other tables refer to a key that PostgreSQL chose
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
            return (
                column.name != "takes_away"
            )  # a trigger changes the revisions of a transaction that takes rights away
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
    """Return the rows that are no longer found with all their values, by table; empty if none is missing."""
    reflected = MetaData()
    reflected.reflect(connection)
    missing = {}
    for name, row in written.items():
        table = reflected.tables[name]
        found = connection.execute(select(*(table.c[column] for column in row))).mappings().all()
        if row not in [dict(each) for each in found]:
            missing[name] = f"{row} became {found}"
    return missing


@pytest.mark.parametrize("start", REVISIONS)
async def test_database_of_any_known_revision_is_upgraded_and_keeps_its_rows(empty: str, start: str) -> None:
    await to(empty, start)
    if start != REVISIONS[-1]:
        with pytest.raises(
            SchemaMismatch, match=f"has schema {start}, but this version needs .*run `lakegate migrate`"
        ):
            await require_current_schema(empty)
    written = await _on(empty, fill)
    assert isinstance(written, dict)
    assert len(written) > 30
    await run_migrations(empty)
    await require_current_schema(empty)
    changed = await _on(empty, there, written)
    assert isinstance(changed, dict)
    assert changed == {}


@pytest.mark.parametrize("revision", ["0001", "0033", "0055"])
async def test_a_database_older_than_the_first_schema_is_refused_unchanged(empty: str, revision: str) -> None:
    await run_migrations(empty)
    await _on(
        empty,
        lambda connection: connection.execute(
            text("update alembic_version set version_num = :revision"), {"revision": revision}
        ),
    )
    before = await _on(empty, columns)
    way = f"has schema {revision}, but this version upgrades only from schema 0056 .* of the last version"
    for refused in (run_migrations, require_current_schema):
        with pytest.raises(SchemaMismatch, match=way):
            await refused(empty)
    assert await _on(empty, columns) == before


async def test_a_database_of_the_migrations_before_becomes_a_new_one_with_its_rows(empty: str) -> None:
    await run_migrations(empty)
    new = await _on(empty, catalog)
    assert {kind for kind, _, _ in new} >= {"columns", "constraint", "index", "function", "trigger", "comment"}
    await _on(empty, _execute, "drop schema public cascade")
    await _on(empty, _execute, "create schema public")
    await _restore(empty, SCHEMA_0056)
    before = await _on(empty, all_rows)
    assert len(before) > 50
    with pytest.raises(SchemaMismatch, match="has schema 0056, but this version needs .*run `lakegate migrate`"):
        await require_current_schema(empty)
    await run_migrations(empty)
    await require_current_schema(empty)
    assert await _on(empty, all_rows) == before
    assert sorted(new ^ await _on(empty, catalog)) == []


async def _restore(url: str, dump: Path) -> None:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(dump.read_text())
    finally:
        await connection.close()


def catalog(connection: Connection) -> set[tuple[str, str, str]]:
    """Return (kind, name, definition) of everything in the schema. The dates of partitions are left out.

    The names of `not null` are left out too: PostgreSQL chooses them, and shows `not null` of a column.
    """
    return {
        (kind, name, _PARTITION_END.sub("…", definition)) for kind, name, definition in connection.execute(_CATALOG)
    }


_PARTITION_END = re.compile(r"'[0-9a-f-]{36}'")
_CATALOG = text(
    """
    with relations as (
        select c.* from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relname <> 'alembic_version'
            and c.relkind in ('r', 'p', 'i', 'I', 'S', 'c'))
    select 'columns', c.relname, string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
            a.attnotnull, a.attidentity, a.attgenerated, a.attstorage, pg_get_expr(d.adbin, d.adrelid)), ', '
            order by a.attnum)
        from relations c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relkind in ('r', 'p', 'c') group by c.relname
    union all select 'relation', c.relname, concat_ws(' ', c.relkind, c.relpersistence, c.reloptions,
            pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid)) from relations c
    union all select 'constraint', c.relname || ' ' || r.conname, pg_get_constraintdef(r.oid)
        from relations c join pg_constraint r on r.conrelid = c.oid where r.contype <> 'n'
    union all select 'index', c.relname, pg_get_indexdef(c.oid) || ' ' || i.indisvalid
        from relations c join pg_index i on i.indexrelid = c.oid
    union all select 'trigger', c.relname || ' ' || t.tgname, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
        from relations c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
    union all select 'comment', c.relname || ' ' || t.tgname, obj_description(t.oid, 'pg_trigger')
        from relations c join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal
    union all select 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid) || coalesce(
            obj_description(p.oid, 'pg_proc'), '')
        from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prolang <> (
            select l.oid from pg_language l where l.lanname = 'c')
    union all select 'extension', e.extname, e.extversion from pg_extension e
    """
)


def all_rows(connection: Connection) -> dict[str, list[str]]:
    """Return the rows of all tables that have any, as JSON. The time of the migration is left out."""
    names = set(inspect(connection).get_table_names()) - {"alembic_version"}
    rows = {
        name: list(connection.scalars(text(f"select (to_jsonb(t) - 'history_since')::text from {name} t order by 1")))
        for name in names
    }
    return {name: found for name, found in rows.items() if found}


_STOPPED_TRIGGERS = """
    drop trigger tables_retire_location_of_gone on tables;
    alter table outbox disable trigger outbox_move_revisions;
    create or replace function take_location_back() returns trigger language plpgsql as 'begin return null; end';
"""


def _execute(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement)


async def test_missing_disabled_and_altered_functions_are_refused_and_installed_again(empty: str) -> None:
    await run_migrations(empty)
    whole = await _on(empty, catalog)
    for each in _STOPPED_TRIGGERS.strip().splitlines():
        await _on(empty, _execute, each.strip(" ;"))
        with pytest.raises(SchemaMismatch, match="1 functions and triggers of the database are not .*lakegate migrate"):
            await require_current_schema(empty)
        await run_migrations(empty)
        await require_current_schema(empty)
        assert await _on(empty, catalog) == whole


async def test_a_second_migration_installs_no_function(empty: str) -> None:
    """Replacing a trigger locks its table, and gateways may serve meanwhile."""
    await run_migrations(empty)
    before = await _on(empty, _writers)
    await run_migrations(empty)
    assert await _on(empty, _writers) == before


def _writers(connection: Connection) -> set[tuple[object, ...]]:
    """Return each function and trigger with the transaction that wrote it."""
    written = text("select oid, xmin::text from pg_proc union all select oid, xmin::text from pg_trigger")
    return {tuple(row) for row in connection.execute(written)}


async def test_migrated_schema_equals_the_tables_of_the_code(empty: str) -> None:
    await run_migrations(empty)
    assert await _on(empty, differences) == []


async def test_no_migration_removes_objects_that_the_previous_version_uses(empty: str) -> None:
    before: Columns = {}
    wrong: list[str] = []
    for revision in REVISIONS:
        await to(empty, revision)
        after = await _on(empty, columns)
        assert isinstance(after, dict)
        tables = {table for table, _ in before}
        taken = {key for key in before if key not in after}
        changed = {key for key in before if key in after and after[key][0] != before[key][0]}
        # A process that does not know a new column omits it when it inserts a row.
        demanded = {key for key in after if key[0] in tables and key not in before and not after[key][1]}
        found = {".".join(key) for key in taken | changed | demanded}
        wrong += [f"{revision}: {each}" for each in sorted(found - TOOK_AWAY.get(revision, set()))]
        before = after
    assert wrong == []


async def test_a_failed_migration_is_rolled_back_and_can_be_repeated(empty: str) -> None:
    """Each migration runs in its own transaction; the first one fails because a table already exists."""
    await _on(empty, lambda connection: connection.execute(text("create table warehouses ()")))
    with pytest.raises(ProgrammingError, match="warehouses"):
        await run_migrations(empty)
    assert await _on(empty, lambda connection: inspect(connection).get_table_names()) == ["warehouses"]
    with pytest.raises(SchemaMismatch, match="no schema"):
        await require_current_schema(empty)
    await _on(empty, lambda connection: connection.execute(text("drop table warehouses")))
    await run_migrations(empty)
    await require_current_schema(empty)


_NEXT = f"{int(REVISIONS[-1]) + 1:04}"
_NEXT_MIGRATION = f"""
from alembic import op

revision = "{_NEXT}"
down_revision = "{REVISIONS[-1]}"


def upgrade():
    op.execute("create table second (id integer)")
    op.execute("select * from third")
"""


async def test_a_failed_migration_keeps_the_earlier_migrations(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "migrations"
    shutil.copytree(str(migrate._MIGRATIONS), copy, ignore=shutil.ignore_patterns("__pycache__"))
    second = copy / "versions" / f"{_NEXT}_second.py"
    second.write_text(_NEXT_MIGRATION)
    monkeypatch.setattr(migrate, "_MIGRATIONS", copy)
    with pytest.raises(ProgrammingError, match="third"):
        await run_migrations(empty)
    assert "second" not in await _on(empty, lambda connection: inspect(connection).get_table_names())
    with pytest.raises(
        SchemaMismatch,
        match=f"has schema {REVISIONS[-1]}, but this version needs schema {_NEXT}; run `lakegate migrate`",
    ):
        await require_current_schema(empty)
    second.write_text(_NEXT_MIGRATION.replace("third", "second"))
    await run_migrations(empty)
    await require_current_schema(empty)


async def test_a_database_of_a_newer_version_is_refused_unchanged(empty: str) -> None:
    await run_migrations(empty)
    await _on(empty, lambda connection: connection.execute(text("update alembic_version set version_num = '9999'")))
    for refused in (run_migrations, require_current_schema):
        with pytest.raises(SchemaMismatch, match="schema 9999, which a newer version created"):
            await refused(empty)


async def test_missing_schema_and_unreachable_database_are_different_errors(empty: str) -> None:
    with pytest.raises(SchemaMismatch, match="no schema; run `lakegate migrate`"):
        await require_current_schema(empty)
    with pytest.raises(DatabaseUnavailable), closed_port() as port:
        await require_current_schema(f"postgresql+asyncpg://u:p@127.0.0.1:{port}/d")


async def test_concurrent_migrations_all_reach_the_current_schema(empty: str) -> None:
    """One that waits has no transaction: the other one waits for the end of all of them while it builds an index."""
    await asyncio.gather(*(run_migrations(empty) for _ in range(3)))
    await require_current_schema(empty)
    revisions = "select count(*) from alembic_version"
    assert await _on(empty, lambda connection: connection.scalar(text(revisions))) == 1
