# SPDX-License-Identifier: Apache-2.0
"""Migrate a database to the schema of this version, and reject a database with another schema."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from gateway.db.engine.database import outages
from gateway.db.schema.sql_functions import install_functions, missing_functions
from gateway.db.tables.excerpts import fill_excerpts

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = files("gateway.db") / "migrations"
_ONE_MIGRATION_AT_A_TIME = 0x1A4E0000
_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 0.2


class SchemaMismatch(Exception):
    """The schema of the database is not the one that this version needs."""


class SchemaBehind(SchemaMismatch):
    """The database has no schema yet, or an older one that `lakegate migrate` of this version upgrades."""


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config


async def run_migrations(
    url: str, *, tls: ssl.SSLContext | str = "prefer", waits: Callable[[], None] = lambda: None
) -> None:
    """Migrate to the newest schema. Several processes may call it at the same time: one migrates, the others wait.

    `url` is a SQLAlchemy URL for asyncpg. `waits` is called once if another process migrates. Raises SchemaMismatch if
    the schema is newer than this version, or older than the first one of this version. Raises DatabaseUnavailable if
    the database does not respond.
    """
    engine = create_async_engine(url, connect_args={"timeout": _CONNECT_SECONDS, "ssl": tls})
    try:
        with outages():
            async with engine.connect() as connection:
                await _migrate(connection, waits)
    finally:
        await engine.dispose()


async def _migrate(connection: AsyncConnection, waits: Callable[[], None]) -> None:
    """Migrate while holding the lock of migrations."""
    await _lock(connection, waits)
    try:
        await connection.run_sync(_upgrade)
        await connection.commit()
        await fill_excerpts(connection)
        await connection.commit()
    finally:
        await connection.execute(text("select pg_advisory_unlock(:key)"), {"key": _ONE_MIGRATION_AT_A_TIME})
        await connection.commit()


async def _lock(connection: AsyncConnection, waits: Callable[[], None]) -> None:
    """Wait for the lock of migrations without an open transaction.

    A statement that waits for a lock is a transaction. The migration in the other process would have to wait for its
    end before it can use a new index.
    """
    key = {"key": _ONE_MIGRATION_AT_A_TIME}
    waited = False
    while not await connection.scalar(text("select pg_try_advisory_lock(:key)"), key):
        await connection.commit()
        if not waited:
            waits()
            waited = True
        await asyncio.sleep(_RETRY_SECONDS)
    await connection.commit()


def _upgrade(connection: Connection) -> None:
    # Imported here: only migrations need Alembic, which uses as much memory as a worker's cache.
    from alembic import command
    from alembic.migration import MigrationContext

    found = MigrationContext.configure(connection).get_current_revision()
    # The rollback ends the transaction of the read: each migration has its own transaction.
    connection.rollback()
    if found is not None and found not in _known():
        raise SchemaMismatch(_foreign(found))
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # A restored or repaired database of the newest revision may lack some functions. If it lacks none, nothing changes.
    install_functions(connection)


async def require_current_schema(url: str, *, tls: ssl.SSLContext | str = "prefer") -> None:
    """Raise SchemaMismatch unless the database has exactly the schema of this version.

    Raises SchemaBehind if a migration by this version corrects it, and DatabaseUnavailable if the database does not
    respond.
    """
    engine = create_async_engine(url, connect_args={"timeout": _CONNECT_SECONDS, "ssl": tls})
    try:
        with outages():
            async with engine.connect() as connection:
                found = await _revision(connection)
                expected = max(_known())
                missing = await connection.run_sync(missing_functions) if found == expected else []
    finally:
        await engine.dispose()
    if missing:
        names = ", ".join(each.name for each in missing[:3])
        raise SchemaBehind(
            f"{len(missing)} functions and triggers of the database are not those of this version ({names}); run "
            "`lakegate migrate` of this version first"
        )
    if found == expected:
        return
    if found is None:
        raise SchemaBehind("the database has no schema; run `lakegate migrate` first")
    if found not in _known():
        raise SchemaMismatch(_foreign(found))
    raise SchemaBehind(
        f"the database has schema {found}, but this version needs schema {expected}; run `lakegate migrate` of this "
        "version first"
    )


async def _revision(connection: AsyncConnection) -> str | None:
    """Return the revision in Alembic's table. Return None if the database was never migrated."""
    if await connection.scalar(text("select to_regclass('alembic_version')")) is None:
        return None
    found: str | None = (await connection.execute(text("select version_num from alembic_version"))).scalar_one_or_none()
    return found


def _known() -> set[str]:
    """Return the revisions that this version can upgrade, and its own, which is the highest.

    They are the numbers at the beginning of the migrations' file names.
    """
    return {file.name[:4] for file in (_MIGRATIONS / "versions").iterdir() if file.name[:4].isdigit()}


def _foreign(found: str) -> str:
    """Return why a database with an unknown revision is refused, and what the operator can do, as text."""
    if found < min(_known()):
        return (
            f"the database has schema {found}, but this version upgrades only from schema {min(_known())} or later. "
            f"First run `lakegate migrate` of the last version that contains the steps before {min(_known())}, then "
            "that of this version (docs/backup.md, Upgrades)"
        )
    return (
        f"the database has schema {found}, which a newer version created; this version needs schema {max(_known())}. "
        "A schema cannot be downgraded, and nothing was changed. Run the newer version again; after a rollback with "
        "Helm, roll back to the release that ran it. Or stop all gateways and restore the backup from before its "
        "upgrade (docs/backup.md, Going back)"
    )
