# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate``. Its subcommands are here and in the modules of this package.

A subcommand imports the packages that it needs when it runs, so that a small subcommand starts fast.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

import click

from gateway.cli.access_lists import what_can, who_can
from gateway.cli.access_requests import access
from gateway.cli.apply import apply, apply_schema, export
from gateway.cli.audit import audit
from gateway.cli.audit_search import search as audit_search
from gateway.cli.break_glass import break_glass
from gateway.cli.changes import changes, contracts, require_verifiers
from gateway.cli.clients import client
from gateway.cli.common import Commands, settings_for
from gateway.cli.completion import completion
from gateway.cli.conformance import conformance
from gateway.cli.credentials import live_credentials, verify_scope
from gateway.cli.data_policies import data_policy
from gateway.cli.database import migrate, require_our_database, wait_for_db
from gateway.cli.deleted import deleted, undrop
from gateway.cli.engines import engine
from gateway.cli.events import events
from gateway.cli.grants import grant, grants, revoke
from gateway.cli.login import login as log_in  # keeps the name `gateway.cli.login` for the module
from gateway.cli.login import logout, token
from gateway.cli.mapping_tables import mapping_table
from gateway.cli.model_diff import model_diff
from gateway.cli.model_prove import model_prove
from gateway.cli.models import model
from gateway.cli.nouns import GROUPS, NounGroup
from gateway.cli.policies import init, policy
from gateway.cli.policy_diff import policy_diff
from gateway.cli.profiles import profile, with_profile
from gateway.cli.questions import can, explain, whoami
from gateway.cli.repairs import authz, reopen_bootstrap, secrets
from gateway.cli.stack import demo, pipeline, setup, status, up
from gateway.cli.tags import tag
from gateway.cli.tasks import tasks
from gateway.cli.trino import trino
from gateway.cli.warehouses import warehouse

_FAILED = 1


def _without_colours(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Print no colours if the variable NO_COLOR has any value."""
    if value:
        context.color = False


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@with_profile
@click.option(
    "--no-color", envvar="NO_COLOR", hidden=True, is_eager=True, expose_value=False, callback=_without_colours
)
def main() -> None:
    """Lakegate: an Iceberg REST catalog that authorizes every operation.

    Examples: lakegate tables list demo, lakegate explain read_data table/demo/hr.people
    """


for _command in (
    access,
    apply,
    apply_schema,
    audit,
    authz,
    break_glass,
    engine,
    events,
    can,
    explain,
    export,
    grant,
    grants,
    changes,
    client,
    completion,
    conformance,
    contracts,
    data_policy,
    deleted,
    demo,
    init,
    live_credentials,
    log_in,
    logout,
    mapping_table,
    migrate,
    model,
    pipeline,
    policy,
    profile,
    reopen_bootstrap,
    revoke,
    secrets,
    setup,
    status,
    tag,
    tasks,
    token,
    trino,
    undrop,
    up,
    verify_scope,
    wait_for_db,
    warehouse,
    what_can,
    who_can,
    whoami,
):
    main.add_command(_command)


_FURTHER = {"warehouses": warehouse, "tags": tag, "data-policies": data_policy, "mapping-tables": mapping_table}
for _name in GROUPS:
    main.add_command(NounGroup(_name, _FURTHER.get(_name)))

#: Short names of commands of the group `access`.
for _name in ("request", "requests", "approve", "deny", "withdraw"):
    main.add_command(access.commands[_name])

audit.add_command(audit_search)
model.add_command(model_diff)
access.add_command(who_can)
access.add_command(what_can)
model.add_command(model_prove)
policy.add_command(policy_diff)


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
