# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate live-credentials``: list credentials that left the gateways and have not expired."""

from __future__ import annotations

import click

from gateway.cli.common import ends_on, quiet_settings
from gateway.cli.services import run_on_services


@click.command("live-credentials")
@click.option("--warehouse", help="Id or name of the warehouse. Default: all.")
@click.option("--table", help="Id of a table or generic table, or its name `<namespace>.<name>` in the warehouse.")
@click.option(
    "--user", help="Id `<provider>~<subject>` of a user that received the credential, lent its right, or is the engine."
)
def live_credentials(warehouse: str | None, table: str | None, user: str | None) -> None:
    """List the live credentials, the oldest first: a line for each, with its fields separated by tabs.

    The fields are: time by which it has expired, user, engine or `-`, level, prefix, session name, table id, id. The
    name of a deleted table is unknown; give its id. The last line on standard error is the number of credentials.
    """
    from gateway import app
    from gateway.features.live_credentials.live_credentials import NotFound

    settings = quiet_settings()
    with ends_on(NotFound):
        found = run_on_services(settings, app.live_credentials(settings, warehouse, table, user))
    for each in found:
        until = each.live_until.isoformat(timespec="seconds")
        names = (each.principal, each.engine or "-", each.level, each.prefix, each.session_name)
        click.echo("\t".join((until, *names, str(each.table_id or each.generic_table_id), str(each.id))))
    click.echo(f"live credentials: {len(found)}", err=True)
