# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate mapping-table``: assign values to users and roles, which row filters compare with columns."""

from __future__ import annotations

from uuid import UUID

import click

from gateway.cli.management import Management, line, printable, with_api


@click.group("mapping-table")
def mapping_table() -> None:
    """Create mapping tables, and set the values of users and roles in them."""


@mapping_table.command()
@click.argument("name")
@click.option("--description", help="Text for administrators.")
@with_api()
def create(name: str, description: str | None, api: Management) -> None:
    """Create the mapping table NAME."""
    body = {"name": name} | ({} if description is None else {"description": description})
    made = api.send("POST", "/mapping-table", body=body).json()
    click.echo(f"created {printable(name)}: {made['id']}")


@mapping_table.command("list")
@with_api()
def list_tables(api: Management) -> None:
    """List the mapping tables of the project: id and name, separated by a tab."""
    for each in api.pages("/mapping-table", "mapping-tables"):
        click.echo(line(each["id"], each["name"]))


@mapping_table.command()
@click.argument("table")
@with_api()
def show(table: str, api: Management) -> None:
    """List the entries of TABLE (name or id): type and id of the principal, and its values, separated by tabs."""
    for each in api.pages(f"{api.path_of('mapping-table', 'mapping-tables', table)}/entries", "entries"):
        ((type, id),) = each["principal"].items()
        click.echo(line(type, id, *each["values"]))


@mapping_table.command()
@click.argument("table")
@with_api()
def delete(table: str, api: Management) -> None:
    """Delete TABLE (name or id). Tests of row filters that use it are false from then on."""
    api.send("DELETE", _path(api, table))
    click.echo(f"deleted {printable(table)}")


@mapping_table.command("set")
@click.argument("table")
@click.argument("values", nargs=-1)
@click.option("--user", help="Id of the user.")
@click.option("--role", type=click.UUID, help="Id of the role.")
@with_api()
def set_values(table: str, values: tuple[str, ...], user: str | None, role: UUID | None, api: Management) -> None:
    """Replace the values of one user or role in TABLE by VALUES. Without VALUES they are removed."""
    if (user is None) == (role is None):
        raise click.UsageError("give either --user or --role")
    principal = {"role": str(role)} if user is None else {"user": user}
    body = {"set": [{"principal": principal, "values": list(values)}]} if values else {"remove": [principal]}
    api.send("POST", f"{api.path_of('mapping-table', 'mapping-tables', table)}/entries", body=body)
    click.echo(f"{len(values)} values")


def _path(api: Management, table: str) -> str:
    return api.path_of("mapping-table", "mapping-tables", table)
