# SPDX-License-Identifier: Apache-2.0
"""Bringing a database to this version's schema, and refusing to serve one that is not."""

from __future__ import annotations

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

_ONE_MIGRATION_AT_A_TIME = 0x1A4E0000


class SchemaMismatch(Exception):
    """The database's schema is not the one this version works with."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("gateway.db") / "migrations"))
    return config


async def run_migrations(url: str) -> None:
    """Migrate to the newest schema. Several processes may call it at once: one migrates, the others wait.

    `url` is a SQLAlchemy URL for asyncpg.
    """
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("select pg_advisory_lock(:key)"), {"key": _ONE_MIGRATION_AT_A_TIME})
            await connection.commit()
            try:
                await connection.run_sync(_upgrade)
                await connection.commit()
            finally:
                await connection.execute(text("select pg_advisory_unlock(:key)"), {"key": _ONE_MIGRATION_AT_A_TIME})
                await connection.commit()
    finally:
        await engine.dispose()


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


async def require_current_schema(url: str) -> None:
    """Raise SchemaMismatch unless the database has exactly this version's schema."""
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            found = await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())
    finally:
        await engine.dispose()
    expected = ScriptDirectory.from_config(_config()).get_current_head()
    if found != expected:
        raise SchemaMismatch(f"the database has schema {found}, this version needs {expected}: run `lakegate migrate`")
