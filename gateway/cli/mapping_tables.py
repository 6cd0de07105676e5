# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate mapping-table``: values of users and roles that row filters use."""

from __future__ import annotations

from uuid import UUID

import click

from gateway.cli.clients import pages
from gateway.cli.data_policies import PROJECT
from gateway.cli.management import Management, at_a_gateway, printable


@click.group("mapping-table")
def mapping_table() -> None:
    """Create mapping tables, and set the values of users and roles in them."""


@mapping_table.command()
@click.argument("name")
@click.option("--description", help="Text for administrators.")
@PROJECT
@at_a_gateway
def create(name: str, description: str | None, project: str | None, gateway: str | None, token: str | None) -> None:
    """Create the mapping table NAME."""
    body = {"name": name} | ({} if description is None else {"description": description})
    made = Management.of(gateway, token, project).send("POST", "/mapping-table", body=body).json()
    click.echo(f"created {printable(name)}: {made['id']}")


@mapping_table.command("list")
@PROJECT
@at_a_gateway
def list_tables(project: str | None, gateway: str | None, token: str | None) -> None:
    """List the mapping tables of the project: id and name, separated by a tab."""
    api = Management.of(gateway, token, project)
    for each in pages(api, "/mapping-table", "mapping-tables", {}):
        click.echo(f"{each['id']}\t{printable(each['name'])}")


@mapping_table.command()
@click.argument("table")
@PROJECT
@at_a_gateway
def show(table: str, project: str | None, gateway: str | None, token: str | None) -> None:
    """List the entries of TABLE (name or id): type and id of the principal, and its values, separated by tabs."""
    api = Management.of(gateway, token, project)
    for each in pages(api, f"{_path(api, table)}/entries", "entries", {}):
        ((type, id),) = each["principal"].items()
        click.echo("\t".join((type, printable(id), *map(printable, each["values"]))))


@mapping_table.command()
@click.argument("table")
@PROJECT
@at_a_gateway
def delete(table: str, project: str | None, gateway: str | None, token: str | None) -> None:
    """Delete TABLE (name or id). Tests of row filters that use it are false from then on."""
    api = Management.of(gateway, token, project)
    api.send("DELETE", _path(api, table))
    click.echo(f"deleted {printable(table)}")


@mapping_table.command("set")
@click.argument("table")
@click.argument("values", nargs=-1)
@click.option("--user", help="Id of the user.")
@click.option("--role", type=click.UUID, help="Id of the role.")
@PROJECT
@at_a_gateway
def set_values(
    table: str,
    values: tuple[str, ...],
    user: str | None,
    role: UUID | None,
    project: str | None,
    gateway: str | None,
    token: str | None,
) -> None:
    """Replace the values of one user or role in TABLE by VALUES. Without VALUES they are removed."""
    if (user is None) == (role is None):
        raise click.UsageError("give either --user or --role")
    principal = {"role": str(role)} if user is None else {"user": user}
    api = Management.of(gateway, token, project)
    body = {"set": [{"principal": principal, "values": list(values)}]} if values else {"remove": [principal]}
    api.send("POST", f"{_path(api, table)}/entries", body=body)
    click.echo(f"{len(values)} values")


def _path(api: Management, table: str) -> str:
    """Return the path of a mapping table by its id or name. An unknown name ends the command."""
    try:
        return f"/mapping-table/{UUID(table)}"
    except ValueError:
        pass
    for each in pages(api, "/mapping-table", "mapping-tables", {}):
        if each["name"] == table:
            return f"/mapping-table/{each['id']}"
    raise click.ClickException(
        f"the project has no mapping table {printable(table)}. List them with `lakegate mapping-table list`."
    )
