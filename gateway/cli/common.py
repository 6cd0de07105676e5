# SPDX-License-Identifier: Apache-2.0
"""Shared code of the subcommands: settings, certificates, and errors that end a subcommand with a message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    import ssl

    from gateway.settings import Settings
    from gateway.tls import Trust


class Commands(click.Group):
    """A group of commands. A service that does not answer or refuses ends each with one line, not with a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            message = command_fault(error)
            if message is None:
                raise
            raise click.ClickException(message) from None


def command_fault(error: Exception) -> str | None:
    """Return the message for an error of PostgreSQL or a decision engine, or for a refusal; None for other errors."""
    from gateway.db.pools.connection_errors import connection_fault

    return connection_fault(error) or (str(error) if isinstance(error, start_failures()) else None)


DIFFERS = 3
"""The exit code of a subcommand that found remaining work."""


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
    """Context manager. End the command with the message of an expected error of the block."""
    try:
        yield
    except expected as error:
        raise click.ClickException(str(error)) from None


def quiet_settings(
    require: Literal["write_url", "require_encryption_key", "require_secret_stores"] = "write_url",
    level: str = "WARNING",
) -> Settings:
    """Read the settings of a command on the services, and log only what has this level, to standard error.

    Settings that lack what the method `require` returns or checks end the command with a message.
    """
    from gateway.settings import Settings
    from gateway.telemetry.logs import configure_logging

    configure_logging(level=level, stream=sys.stderr.buffer)
    return settings_for(getattr(Settings, require))


def trust() -> Trust:
    """Return the trusted certificate authorities. Unusable certificates end the command with a message."""
    from gateway.settings import certificate_sources
    from gateway.tls import CertificatesUnusable, trusted

    try:
        return trusted(*certificate_sources())
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def postgres_tls(settings: Settings) -> ssl.SSLContext | str:
    """Return the TLS configuration for PostgreSQL. Unusable certificates end the command with a message."""
    from gateway.tls import CertificatesUnusable, for_postgres

    try:
        return for_postgres(settings.postgres_tls_mode(), trust(), settings.pg_ssl_root_cert)
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def start_failures() -> tuple[type[Exception], ...]:
    """Return the error classes that end a subcommand with their message: refusals, and outages of dependencies."""
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
