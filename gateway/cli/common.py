# SPDX-License-Identifier: Apache-2.0
"""What verbs begin with: settings, certificates, and what ends them with a text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import ssl

    from gateway.settings import Settings
    from gateway.tls import Trust


DIFFERS = 3
"""The exit code of a verb that found something left to be done."""


def settings_for(require: Callable[[Settings], object] | None = None) -> Settings:
    """Read the settings; a problem with them ends the command with its description."""
    from gateway import settings

    try:
        read = settings.load()
        if require is not None:
            require(read)
    except settings.SettingsError as error:
        raise click.ClickException(f"the settings cannot be used\n{error}") from None
    return read


def trust() -> Trust:
    """Whom to trust; certificates that cannot be used end the command."""
    from gateway.settings import certificate_sources
    from gateway.tls import CertificatesUnusable, trusted

    try:
        return trusted(*certificate_sources())
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def postgres_tls(settings: Settings) -> ssl.SSLContext | str:
    """TLS towards PostgreSQL; certificates that cannot be used end the command."""
    from gateway.tls import CertificatesUnusable, for_postgres

    try:
        return for_postgres(settings.postgres_tls_mode(), trust(), settings.pg_ssl_root_cert)
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def start_failures() -> tuple[type[Exception], ...]:
    """What keeps a verb from starting its parts or from passing the door, each with a text for people."""
    from gateway.access.dependency_errors import (
        AuditUnavailable,
        CommitUnknown,
        DatabaseUnavailable,
        DecisionEngineUnavailable,
    )
    from gateway.db.migrate import SchemaMismatch
    from gateway.db.servers import RestoredDatabase
    from gateway.fga.model import ModelNotReady
    from gateway.iceberg.errors import CatalogError
    from gateway.tasks.reconcile import NothingToGoBy
    from gateway.tls import CertificatesUnusable

    outages = (AuditUnavailable, CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable)
    refusals = (CatalogError, CertificatesUnusable, ModelNotReady, NothingToGoBy, RestoredDatabase, SchemaMismatch)
    return (*refusals, *outages)
