# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate migrate`` and ``wait-for-db``, and the checks of the database before ``serve``."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from gateway.cli.common import (
    command_fault,
    ends_on,
    postgres_address,
    postgres_tls,
    run_on_services,
    settings_for,
    trust,
)
from gateway.cli.models import about_models, opened_models, operator

if TYPE_CHECKING:
    from gateway.settings import Settings

_SECONDS_BETWEEN_CHECKS = 2.0


@click.command()
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Change nothing. Exit with 1 unless this version can serve. List grants of former grantors.",
)
@click.option(
    "--wait",
    "seconds",
    default=0.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="With --check: seconds to wait for the database and for a migration by another process.",
)
def migrate(only_check: bool, seconds: float) -> None:
    """Upgrade the database schema and the relationship model, and activate the model. Repeated and concurrent runs are
    safe.
    """
    if only_check:
        _check(seconds)
        return
    if seconds:
        raise click.UsageError("--wait needs --check")
    from gateway.db.migrate import SchemaMismatch, run_migrations
    from gateway.settings import Settings
    from gateway.settings.postgres import asyncpg_url

    settings = settings_for(Settings.write_url)

    def waits() -> None:
        click.echo("waiting for another `lakegate migrate`, which migrates this database now …", err=True)

    async def run(settings: Settings) -> str:
        await run_migrations(asyncpg_url(settings.write_url()), tls=postgres_tls(settings), waits=waits)
        async with opened_models(settings) as models:
            return await models.upgrade(by=operator())

    with ends_on(SchemaMismatch):
        model = about_models(run, settings)
    click.echo(f"the database has the newest schema; the relationship model is {model}")


def _check(seconds: float) -> None:
    """Exit with 1 unless the database has the schema that this version needs. Wait for it at most `seconds`."""
    from gateway.access.dependency_errors import DatabaseUnavailable
    from gateway.db.migrate import SchemaBehind, SchemaMismatch, require_current_schema
    from gateway.settings import Settings
    from gateway.settings.postgres import asyncpg_url

    settings = settings_for(Settings.write_url)
    deadline = time.monotonic() + seconds

    async def check() -> None:
        waited = False
        while True:
            try:
                await require_current_schema(asyncpg_url(settings.write_url()), tls=postgres_tls(settings))
                return
            except (SchemaBehind, DatabaseUnavailable) as refused:
                notice = command_fault(refused) or str(refused)
                # A schema newer than this version ends the wait immediately: this version has no migration that could
                # help.
                if time.monotonic() >= deadline:
                    raise
                if not waited:
                    click.echo(f"waiting for up to {seconds:.0f} seconds: {notice}", err=True)
                    waited = True
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)

    try:
        run_on_services(settings, check())
    except (DatabaseUnavailable, SchemaMismatch) as refused:
        raise click.ClickException(f"this version cannot serve: {command_fault(refused) or refused}") from None
    click.echo("the database has the schema of this version")
    _list_former_grants(settings)


def _list_former_grants(settings: Settings) -> None:
    """List the grants that their grantors could not give now. They do not prevent this version from starting."""
    from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
    from gateway.settings import SettingsError

    async def read() -> list[str]:
        async with opened_models(settings) as models:
            return [each.line() for each in await models.former_grants()]

    try:
        lines = run_on_services(settings, read())
    except (DatabaseUnavailable, DecisionEngineUnavailable, SettingsError) as outage:
        click.echo(f"the grants were not checked: {command_fault(outage) or outage}", err=True)
        return
    if lines:
        click.echo(
            f"{len(lines)} grants were given by principals that could not give them now. They stay in force. Let a "
            "security administrator of the project grant each again, or revoke it:"
        )
    for line in lines:
        click.echo(f"  {line}")


@click.command("wait-for-db")
@click.option("-r", "--retries", default=15, show_default=True, type=click.IntRange(min=0), help="Number of retries.")
@click.option(
    "-b", "--backoff", default=2.0, show_default=True, help="Seconds between two attempts, and timeout of each."
)
def wait_for_db(retries: int, backoff: float) -> None:
    """Wait until the primary database accepts connections. Exit with 1 if it does not."""
    from gateway.settings import Settings
    from lakegate.local.pg_ready import accepts_connections

    host, port = postgres_address(settings_for(Settings.write_url))

    async def wait() -> bool:
        for attempt in range(retries + 1):
            if await accepts_connections(host, port, timeout=backoff):
                return True
            if attempt == 0 and retries:
                click.echo(f"waiting for PostgreSQL at {host}:{port} …", err=True)
            if attempt < retries:
                await asyncio.sleep(backoff)
        return False

    if not asyncio.run(wait()):
        raise click.ClickException(f"PostgreSQL at {host}:{port} accepted no connection in {retries + 1} attempts")


async def require_our_database(settings: Settings) -> None:
    """End the command if the database has another schema version or encryption key, or was restored from a backup. End
    it also if the secret store refuses the gateway.

    In these cases each worker process would fail. An unreachable database does not end the command here: each worker
    process logs the reason and ends. An unreachable secret store does not end it either: worker processes serve
    requests that do not need it.
    """
    from gateway.access.dependency_errors import DatabaseUnavailable
    from gateway.assembly.secret_stores import NoSuchSecretStore, open_secret_stores
    from gateway.db.credentials.credentials import StorageCredentials
    from gateway.db.credentials.secrets import Sealer, SecretUnreadable
    from gateway.db.engine.database import Database
    from gateway.db.migrate import SchemaMismatch, require_current_schema
    from gateway.db.warehouses.servers import RestoredDatabase, require_same_database
    from gateway.secret_stores.port import SecretStoreRefused
    from gateway.settings.postgres import asyncpg_url

    url = asyncpg_url(settings.write_url())
    try:
        sealer = Sealer(settings.encryption_keys())
    except ValueError as unfit:
        raise click.ClickException(f"PG_ENCRYPTION_KEY is invalid: {unfit}") from None
    tls = postgres_tls(settings)
    database = Database(url, pool_size=1, acquire_timeout=settings.pg_acquire_timeout, tls=tls)
    try:
        await require_current_schema(url, tls=tls)
        async with AsyncExitStack() as stack:
            stores = open_secret_stores(settings, trust(), database, sealer, stack)
            await StorageCredentials(database, stores).check()
        async with database.read() as connection:
            await require_same_database(connection)
    except (NoSuchSecretStore, RestoredDatabase, SchemaMismatch, SecretStoreRefused, SecretUnreadable) as refused:
        raise click.ClickException(f"cannot serve: {refused}") from None
    except DatabaseUnavailable:
        return
    finally:
        await database.close()
