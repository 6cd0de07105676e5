# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate``: its subcommands, here and in the modules of this package.

A subcommand imports the packages that it needs when it runs, so that a small subcommand starts fast.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from gateway.cli.apply import apply, apply_schema, export
from gateway.cli.audit import audit
from gateway.cli.changes import changes
from gateway.cli.clients import client
from gateway.cli.common import Commands, ends_on, settings_for
from gateway.cli.conformance import conformance
from gateway.cli.data_policies import data_policy
from gateway.cli.database import migrate, require_our_database, wait_for_db
from gateway.cli.engines import engine
from gateway.cli.events import events
from gateway.cli.live_credentials import live_credentials
from gateway.cli.login import login as log_in  # the module keeps the name `gateway.cli.login`
from gateway.cli.login import logout, token
from gateway.cli.mapping_tables import mapping_table
from gateway.cli.models import model
from gateway.cli.policies import init, policy
from gateway.cli.repairs import authz, reopen_bootstrap, secrets
from gateway.cli.stack_status import DATA, status
from gateway.cli.tags import tag
from gateway.cli.trino import trino
from gateway.cli.verification import verify_scope
from gateway.cli.verifiers import contracts, require_verifiers
from gateway.cli.warehouses import warehouse

_FAILED = 1


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Lakegate: an Iceberg REST catalog that authorizes every operation."""


for _command in (
    apply,
    apply_schema,
    audit,
    authz,
    engine,
    events,
    export,
    changes,
    client,
    conformance,
    contracts,
    data_policy,
    init,
    live_credentials,
    log_in,
    logout,
    mapping_table,
    migrate,
    model,
    policy,
    reopen_bootstrap,
    secrets,
    status,
    tag,
    token,
    trino,
    verify_scope,
    wait_for_db,
    warehouse,
):
    main.add_command(_command)


@main.command()
def version() -> None:
    """Print the version."""
    try:
        click.echo(installed_version("lakegate"))
    except PackageNotFoundError:
        click.echo("unknown (not installed)")


@main.command()
def serve() -> None:
    """Serve the catalog and management APIs until SIGTERM or SIGINT."""
    from gateway import serving
    from gateway.settings import Settings

    settings = settings_for(Settings.require_serving)
    asyncio.run(require_verifiers(settings))
    asyncio.run(require_our_database(settings))
    try:
        serving.serve(settings)
    except serving.CannotListen as error:
        raise click.ClickException(f"cannot listen on {error}") from None


@main.command()
def healthcheck() -> None:
    """Query the health of the gateway at the address in the settings. Exit with 1 if it is unhealthy."""
    import httpx2

    settings = settings_for()
    # A wildcard address can be listened on, but not connected to.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.bind_ip, settings.bind_ip)
    address = f"http://{host}:{settings.listen_port}/health"
    try:
        answer = httpx2.get(address, timeout=5.0, trust_env=False)
    except httpx2.TransportError as error:
        raise click.ClickException(
            f"the gateway did not answer at {address}: {error}. The address is that of LAKEGATE__BIND_IP and "
            "LAKEGATE__LISTEN_PORT"
        ) from None
    click.echo(answer.text)
    if answer.status_code != httpx2.codes.OK:
        sys.exit(_FAILED)


def _redirect_uris(context: click.Context, parameter: click.Parameter, uris: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses. Raise BadParameter for one that no browser could return to (RFC 6749 section 3.1.2)."""
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname or "#" in uri:
            raise click.BadParameter(f"{uri} is no address such as http://localhost:3001/ui/callback.")
    return uris


@main.command()
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for addresses and keys, written when the stack is ready.",
)
@DATA
@click.option("--empty", is_flag=True, help="Do not bootstrap the server.")
@click.option(
    "--policies",
    type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
    help="Policy repository whose policies are added. Restart after a change.",
)
@click.option(
    "--redirect-uri",
    "redirect_uris",
    multiple=True,
    callback=_redirect_uris,
    help="Page of another program, such as a console, in which users may sign in. May be repeated.",
)
def up(ready_file: Path | None, data: Path, empty: bool, policies: Path | None, redirect_uris: tuple[str, ...]) -> None:
    """Run the gateway and all services that it needs on this machine, until Ctrl-C.

    The first start installs the missing programs, as `lakegate setup` does.
    """
    _install()
    from gateway.embedded import up as embedded

    _embedded(
        embedded.run(
            settings_for(),
            data=data.resolve(),
            ready_file=ready_file,
            empty=empty,
            policies=policies,
            redirect_uris=redirect_uris,
        )
    )


@main.command()
def demo() -> None:
    """Run the example pipeline on real data, then show requests that Lakegate allows and denies."""
    from gateway.embedded import demo as embedded

    sys.exit(_embedded(embedded.run(settings_for())))


@main.command()
@click.option("--with-spark", is_flag=True, help="Also download the archives that Spark needs (120 MB).")
def setup(with_spark: bool) -> None:
    """Install the programs that `lakegate up` needs, before its first start.

    Only missing programs are downloaded or built.
    """
    _install(with_spark=with_spark)


@main.command()
@click.option("--catalog", is_flag=True, help="Print only the routes of the Iceberg REST catalog.")
def openapi(catalog: bool) -> None:
    """Print the OpenAPI document of the HTTP APIs."""
    import json

    import gateway.features.all_routes  # noqa: F401 - the import registers every operation
    from gateway.api.openapi import is_catalog, openapi_document

    document = openapi_document(is_catalog) if catalog else openapi_document()
    click.echo(json.dumps(document, indent=2))


@main.command("settings-table", hidden=True)
def settings_table() -> None:
    """Print the table of all settings, the text of docs/settings.md."""
    from gateway import settings

    click.echo(settings.table(), nl=False)


def _install(*, with_spark: bool = False) -> None:
    """Install the missing programs of the stack. A failure ends the command with its remedy."""
    from rich.console import Console

    from gateway.embedded.errors import StackError
    from gateway.embedded.install import install

    try:
        install(settings_for(), Console(stderr=True), with_spark=with_spark)
    except StackError as error:
        raise click.ClickException(f"setup failed: {error}") from None


def _embedded(work: Coroutine[Any, Any, int | None]) -> int:
    from gateway.embedded.errors import StackError

    with ends_on(StackError):
        return asyncio.run(work) or 0
