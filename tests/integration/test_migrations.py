# SPDX-License-Identifier: Apache-2.0
"""Databases from the first schema on are upgraded with their rows, and older ones are refused (docs/backup.md).

No migration removes what a process of the previous version still reads or writes while it serves.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
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
    Table,
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

pytestmark = pytest.mark.servers

REVISIONS = [each.revision for each in ScriptDirectory.from_config(migrate._config()).walk_revisions()][::-1]

#: SHA-256 of `first_schema.sql`.
FIRST_SCHEMA = "f7a1e02e375731cd344a6d9b2a28c4801fdb9454b4a41167c869190d2e11489f"

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


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with running_parts() as parts:
        yield parts


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
    # Migration 0051 ends the trust that posted outputs of engines gave.
    assert changed.keys() == ({"engine_probes"} & written.keys() if start < "0051" else set())


async def test_enforcers_before_the_probes_count_for_thirty_days(empty: str) -> None:
    await to(empty, "0045")
    await _on(empty, _with_enforcers)
    await run_migrations(empty)
    found = await _on(empty, _warned)
    assert [engine for engine, _ in found] == ["engine", "in role"], "an expired grant and another privilege give none"
    assert {round(days) for _, days in found} == {30}


def _with_enforcers(connection: Connection) -> None:
    """Insert a warehouse with an enforcer, a role of enforcers, an expired enforcer and a user that only reads."""
    written = fill(connection)
    connection.execute(text("delete from grants"))
    warehouse, sample = str(written["warehouses"]["id"]), written["grants"]
    past = datetime(2020, 1, 1, tzinfo=UTC)
    reflected = Table("grants", MetaData(), autoload_with=connection)
    for kind, on, privilege, principal, type, expires in (
        ("warehouse", warehouse, "enforcer", "engine", "user", None),
        ("warehouse", warehouse, "enforcer", "role", "role", None),
        ("role", "role", "assignee", "in role", "user", None),
        ("warehouse", warehouse, "enforcer", "expired", "user", past),
        ("warehouse", warehouse, "select", "reader", "user", None),
    ):
        row: dict[str, object] = {"object_type": kind, "object_id": on, "privilege": privilege}
        row |= {"principal_id": principal, "principal_type": type, "expires_at": expires}
        connection.execute(insert(reflected).values({**sample, **row} | ({"id": uuid4()} if "id" in sample else {})))


def _warned(connection: Connection) -> list[tuple[str, float]]:
    """Return the engines that count without a probe, with the remaining days."""
    days = "extract(epoch from warn_until - clock_timestamp()) / 86400"
    rows = connection.execute(text(f"select engine, {days} from engine_probes order by engine"))  # constant
    return [(engine, float(remaining)) for engine, remaining in rows]


async def test_paths_below_a_namespace_get_its_spelling(empty: str) -> None:
    await to(empty, "0051")
    await _on(empty, _with_spellings)
    await run_migrations(empty)
    expected = [["SALES2"], ["Sales"], ["Sales", "EU"], ["Sales", "EU", "Raw"], ["Sales", "us"]]
    assert await _on(empty, _levels) == expected


def _with_spellings(connection: Connection) -> None:
    """Insert namespaces whose paths spell the namespaces above them in another way."""
    written = fill(connection)
    reflected = Table("namespaces", MetaData(), autoload_with=connection)
    top, below, warehouse = uuid4(), uuid4(), written["warehouses"]["id"]
    spaces: tuple[tuple[object, list[object], list[str]], ...] = (
        (top, [], ["Sales"]),
        (below, [top], ["SALES", "EU"]),
        (uuid4(), [top, below], ["sales", "eu", "Raw"]),
        (uuid4(), [top], ["Sales", "us"]),
        (uuid4(), [], ["SALES2"]),
    )
    for id, ancestors, levels in spaces:
        row: dict[str, object] = {
            "id": id,
            "ancestors": ancestors,
            "levels": levels,
            "path_key": "\x1f".join(levels).lower(),
        }
        parent = ancestors[-1] if ancestors else None
        row |= {"parent_id": parent, "warehouse_id": warehouse, "properties": {}}
        connection.execute(insert(reflected).values(row))


def _levels(connection: Connection) -> list[list[str]]:
    query = """select levels from namespaces where path_key like 'sales%' order by levels collate "C" """
    rows = connection.execute(text(query))
    return [row.levels for row in rows]


def test_first_schema_never_changes() -> None:
    """Databases with this revision exist, so a change must be a new migration that they receive too."""
    schema = (files("gateway.db") / "migrations" / "versions" / "first_schema.sql").read_bytes()
    assert hashlib.sha256(schema).hexdigest() == FIRST_SCHEMA


@pytest.mark.parametrize("revision", ["0001", "0033"])
async def test_a_database_older_than_the_first_schema_is_refused_unchanged(empty: str, revision: str) -> None:
    await run_migrations(empty)
    await _on(
        empty,
        lambda connection: connection.execute(
            text("update alembic_version set version_num = :revision"), {"revision": revision}
        ),
    )
    before = await _on(empty, columns)
    way = f"has schema {revision}, but this version upgrades only from schema 0034 .* of the last version"
    for refused in (run_migrations, require_current_schema):
        with pytest.raises(SchemaMismatch, match=way):
            await refused(empty)
    assert await _on(empty, columns) == before


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


_SIGNATURE_OF_BEFORE = (
    "create function search_signature(key text) returns bit(256) language sql immutable as 'select null::bit(256)'"
)


async def test_an_interrupted_index_is_built_again(empty: str) -> None:
    """A build that ends early leaves an index that PostgreSQL does not use, and the revision of the step before."""
    await to(empty, "0034")
    await _on(empty, lambda connection: connection.execute(text("create index tables_signature_idx on tables (kind)")))
    await _on(empty, lambda connection: connection.execute(text(_SIGNATURE_OF_BEFORE)))
    await run_migrations(empty)
    await require_current_schema(empty)
    definition = "select pg_get_indexdef('tables_signature_idx'::regclass)"
    assert "search_signature" in await _on(empty, lambda connection: connection.scalar(text(definition)))
