# SPDX-License-Identifier: Apache-2.0
"""Code that subcommands share: settings, certificates, calls of services, and errors that end a subcommand."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

import click

from gateway.cli.exit_codes import ExitCode
from gateway.cli.texts import write_sections

if TYPE_CHECKING:
    import ssl

    from gateway.settings import Settings
    from gateway.tls import Trust


class Commands(click.Group):
    """A group of commands. If a service does not respond or refuses, the command ends with one line instead of a
    traceback.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        write_sections(self, ctx, formatter)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (click.Abort, KeyboardInterrupt):
            click.echo("Interrupted.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # A reader such as `head` has what it wants. Later output would fail again when the process ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(ExitCode.DONE)
        except Exception as error:
            message = command_fault(error)
            if message is None:
                raise
            raise click.ClickException(message) from None


def command_fault(error: Exception) -> str | None:
    """Return the message for an error of PostgreSQL, of a decision engine or of a refusal; None for other errors."""
    from gateway.db.pools.connection_errors import connection_fault

    return connection_fault(error) or (str(error) if isinstance(error, start_failures()) else None)


DIFFERS = ExitCode.DIFFERS


def settings_for(require: Callable[[Settings], object] | None = None) -> Settings:
    """Read the settings. Invalid settings end the command with a message."""
    from gateway import settings

    try:
        read = settings.load()
        if require is not None:
            require(read)
    except settings.SettingsError as error:
        raise click.ClickException(f"the settings are invalid\n{error}") from None
    return read


@contextmanager
def ends_on(*expected: type[Exception]) -> Iterator[None]:
    """Context manager. End the command with the message of an expected error in the block."""
    try:
        yield
    except expected as error:
        raise click.ClickException(str(error)) from None


def quiet_settings(
    require: Literal["write_url", "require_encryption_key", "require_secret_stores"] = "write_url",
    level: str = "WARNING",
) -> Settings:
    """Read the settings of a command that uses the services. Log only messages of this level or above, to standard
    error.

    If the method `require` of the settings raises an error, the command ends with its message.
    """
    from gateway.settings import Settings
    from gateway.telemetry.logs import configure_logging

    configure_logging(level=level, stream=sys.stderr.buffer)
    return settings_for(getattr(Settings, require))


def trust() -> Trust:
    """Return the trusted certificate authorities. Unusable certificates end the command with a message."""
    from gateway.settings import certificate_sources
    from gateway.tls import CertificatesUnusable

    try:
        return _trusted(*certificate_sources())
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def tls_for(address: str) -> ssl.SSLContext:
    """Return the TLS context for an address. Without TLS it trusts nothing: reading certificates takes long."""
    import ssl

    return trust().context if address.startswith("https") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _trusted(file: str | None, directory: str | None) -> Trust:
    """Read the certificates once in a command: those of a system take a third of a second."""
    from gateway.tls import trusted

    return trusted(file, directory)


def postgres_tls(settings: Settings) -> ssl.SSLContext | str:
    """Return the TLS configuration for PostgreSQL. Unusable certificates end the command with a message."""
    from gateway.tls import CertificatesUnusable, for_postgres

    try:
        return for_postgres(settings.postgres_tls_mode(), trust(), settings.pg_ssl_root_cert)
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def start_failures() -> tuple[type[Exception], ...]:
    """Return the classes of errors that end a subcommand with their message: refusals, and outages of dependencies."""
    from gateway.access.dependency_errors import (
        AuditUnavailable,
        CommitUnknown,
        DatabaseUnavailable,
        DecisionEngineUnavailable,
    )
    from gateway.db.migrate import SchemaMismatch
    from gateway.db.warehouses.servers import RestoredDatabase
    from gateway.features.tuples.reconcile import EmptyStore
    from gateway.fga.model import ModelNotReady
    from gateway.iceberg.errors import CatalogError
    from gateway.tls import CertificatesUnusable

    outages = (AuditUnavailable, CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable)
    refusals = (CatalogError, CertificatesUnusable, ModelNotReady, EmptyStore, RestoredDatabase, SchemaMismatch)
    return (*refusals, *outages)


Answer = TypeVar("Answer")

_PATIENCE_SECONDS = 2.0
_PORTS = {"http": 80, "https": 443}


def run_on_services(settings: Settings, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of `work`. If it takes several seconds, print which service in the settings does not respond.

    `Commands` turns errors of `work` into messages. Each wait of `work` for a connection must have a time limit.
    """
    return asyncio.run(_announced(settings, work))


async def _announced(settings: Settings, work: Coroutine[Any, Any, Answer]) -> Answer:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
    if not done:
        for name in await _silent(settings):
            if not task.done():
                click.echo(f"no answer yet from {name} …", err=True)
    return await task


async def _silent(settings: Settings) -> list[str]:
    """Return the services that accept no connection now, each with its address."""
    from lakegate.local.pg_ready import accepts_connections

    host, port = postgres_address(settings)
    engines = {"OpenFGA": settings.openfga.endpoint, "OPA": settings.opa.url}
    tries = {f"PostgreSQL at {host}:{port}": accepts_connections(host, port, timeout=_PATIENCE_SECONDS)}
    for name, url in engines.items():
        parts = urlsplit(url)
        at = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))
        tries[f"{name} at {at[0]}:{at[1]}"] = _accepts(*at)
    answers = await asyncio.gather(*tries.values())
    return [name for name, answered in zip(tries, answers, strict=True) if not answered]


def postgres_address(settings: Settings) -> tuple[str, int]:
    """Return (host, port) of the primary database. Raises SettingsError if its URL is missing."""
    url = urlsplit(settings.write_url().reveal())
    return url.hostname or "127.0.0.1", url.port or 5432


async def _accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
