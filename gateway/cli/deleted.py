# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate deleted`` and ``lakegate undrop``: list and restore dropped tables and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.catalog_client import ReferenceType, with_finder
from gateway.cli.exit_codes import ExitCode, Failure
from gateway.cli.management import printable
from gateway.cli.output import Row, print_rows, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference
    from gateway.apply.state import Address


@click.group()
def deleted() -> None:
    """List dropped tables and views that can be restored. `lakegate undrop` restores them."""


@deleted.command("list")
@click.argument("within", type=ReferenceType("namespace", "warehouse"), metavar="WAREHOUSE[/NAMESPACE]")
@with_format
@with_finder
def list_deleted(within: Reference, finder: Finder, form: str) -> None:
    """List the dropped objects of a warehouse or namespace, and until when each can be restored.

    Example: lakegate deleted list demo
    """
    address = finder.find(within)
    rows = (_row(address, each) for each in _listed(finder, address))
    columns = ("name", "id", "deleted-at", "expiration-date")
    print_rows(form, columns, rows, empty="There are no dropped objects that you can see.")


@click.command()
@click.argument("references", type=ReferenceType(), nargs=-1, required=True, metavar="OBJECT...")
@with_finder
def undrop(references: tuple[Reference, ...], finder: Finder) -> None:
    """Restore dropped tables or views of a warehouse, all or none. Of several with one name, give the id.

    Example: lakegate undrop table/demo/hr.people
    """
    from gateway.apply.references import TABULARS

    if len({each.warehouse for each in references}) > 1 or any(each.kind not in TABULARS for each in references):
        raise click.UsageError("give tables, views or generic tables of one warehouse")
    warehouse = finder.warehouse(references[0])
    targets = [{"type": str(each.kind), "id": _id_of(finder, warehouse, each)} for each in references]
    path = f"{finder.session.located.path(warehouse)}/deleted-tabulars/undrop"
    finder.session.api.change("POST", path, {"targets": targets})
    for each in references:
        click.echo(f"restored {printable(str(each))}")


def _listed(finder: Finder, on: Address) -> Iterator[Mapping[str, Any]]:
    """Yield the dropped objects of a warehouse or namespace."""
    from gateway.apply.state import Kind

    located = finder.session.located
    query = {"namespaceId": located.id(on)} if on.kind is Kind.NAMESPACE else {}
    path = f"{located.path(on.within(Kind.WAREHOUSE))}/deleted-tabulars"
    yield from finder.session.api.pages(path, "tabulars", query=query)


def _row(on: Address, found: Mapping[str, Any]) -> Row:
    """Return a dropped object with its reference."""
    from gateway.apply.references import Reference
    from gateway.apply.state import Kind

    kind = Kind(found["typ"].replace("_", "-"))
    named = Reference(kind, (*found["namespace"], found["name"]), on.within(Kind.WAREHOUSE).name)
    return {**found, "name": str(named)}


def _id_of(finder: Finder, warehouse: Address, reference: Reference) -> str:
    """Return the id of a dropped object. An unknown or ambiguous name ends the command."""
    from gateway.apply.references import NotFound
    from gateway.apply.session import is_uuid
    from gateway.iceberg.identifiers import fold

    if len(reference.names) == 1 and is_uuid(reference.names[0]):
        return reference.names[0]
    wanted = [fold(each) for each in reference.names]
    ids = [
        each["id"]
        for each in _listed(finder, warehouse)
        if each["typ"].replace("_", "-") == reference.kind
        and [fold(name) for name in (*each["namespace"], each["name"])] == wanted
    ]
    if not ids:
        raise NotFound(f"dropped {reference}")
    if len(ids) > 1:
        choices = ", ".join(f"{reference.kind}/{reference.warehouse}/{id}" for id in ids)
        raise Failure(f"several dropped objects have the name {printable(str(reference))}: {choices}", ExitCode.USAGE)
    return str(ids[0])
