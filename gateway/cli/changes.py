# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate changes``, for changes that wait for approval, and ``lakegate contracts``, for data
contracts.

``lakegate changes`` sends the token of the logged-in user, so that the gateway decides, and records the approver. The
check of verifiers before `lakegate serve` starts worker processes is here too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from gateway.cli.common import ends_on
from gateway.cli.management import Management, printable, with_api

if TYPE_CHECKING:
    from gateway.settings import Settings


_WAREHOUSE = click.option("--warehouse", type=click.UUID, required=True, help="Id of the warehouse.")


@click.group()
def changes() -> None:
    """List and show changes that wait for approval, and approve or reject them."""


@changes.command("list")
@_WAREHOUSE
@with_api(project=False)
@click.option("--all", "all_", is_flag=True, help="Also list decided, used and lapsed tickets.")
def list_changes(warehouse: UUID, api: Management, all_: bool) -> None:
    """List the tickets that you requested or may decide about, oldest first: a line for each.

    The fields are separated by tabs: ticket, status, kind of change, object type, name, requester, end, reasons.
    """
    query = {} if all_ else {"status": "pending"}
    for each in api.pages(_path(warehouse), "change-tickets", query):
        names = (each["id"], each["status"], each["kind"], each["object-type"], each["name"], each["principal"])
        click.echo("\t".join((*names, each["expires-at"], "; ".join(each["reasons"]))))


@changes.command()
@click.argument("ticket", type=click.UUID)
@_WAREHOUSE
@with_api(project=False)
@click.option("--json", "as_json", is_flag=True, help="Print the ticket as JSON.")
def show(ticket: UUID, warehouse: UUID, api: Management, as_json: bool) -> None:
    """Show the change of a ticket: who requested it and when, the reasons of each verifier, and the updates."""
    found = api.send("GET", _path(warehouse, ticket)).json()
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(ticket_lines(found)))


@changes.command()
@click.argument("ticket", type=click.UUID)
@_WAREHOUSE
@with_api(project=False)
@click.option("--comment", help="Comment for the record.")
def approve(ticket: UUID, warehouse: UUID, api: Management, comment: str | None) -> None:
    """Approve the change of a ticket. Its requester then runs the statement again."""
    api.send("POST", _path(warehouse, ticket, "/approve"), body={"comment": comment} if comment else {})
    click.echo("Approved. The requester can run the statement again.")


@changes.command()
@click.argument("ticket", type=click.UUID)
@_WAREHOUSE
@with_api(project=False)
@click.option("--comment", help="Comment that the requester sees.")
def reject(ticket: UUID, warehouse: UUID, api: Management, comment: str | None) -> None:
    """Reject the change of a ticket. The gateway refuses the statement until the rejection expires."""
    api.send("POST", _path(warehouse, ticket, "/reject"), body={"comment": comment} if comment else {})
    click.echo("Rejected.")


def ticket_lines(ticket: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show a ticket. Control characters are removed from texts of clients, and updates are printed
    in ASCII.
    """
    change = ticket["change"]
    kind, object_type = (change["kind"].replace("_", " "), change["object"][0].replace("_", " "))
    yield f"ticket:    {ticket['id']}"
    yield f"status:    {ticket['status']}, ends {ticket['expires-at']}"
    yield f"change:    {kind} of the {object_type} {printable(ticket['name'])}"
    if destination := change.get("destination"):
        yield f"new name:  {printable('.'.join(destination))}"
    yield f"requested: by {printable(ticket['principal'])} at {ticket['created-at']}"
    if "decided-by" in ticket:
        comment = f": {printable(ticket['comment'])}" if ticket.get("comment") else ""
        yield f"decided:   by {printable(ticket['decided-by'])} at {ticket['decided-at']}{comment}"
    if "used-at" in ticket:
        yield f"used:      at {ticket['used-at']}"
    yield "reasons:"
    for verifier, reasons in _by_verifier(ticket["reasons"]).items():
        yield f"  {printable(verifier)}:"
        yield from (f"    - {printable(reason)}" for reason in reasons)
    yield "updates:" if change["updates"] else "updates:   none"
    for update in change["updates"]:
        action = printable(str(update.get("action", "update")))
        members = {name: value for name, value in update.items() if name != "action"}
        yield f"  - {action}: {json.dumps(members)}" if members else f"  - {action}"
    for title, member in (("properties", "properties"), ("new object", "new"), ("based on", "base")):
        if change.get(member):
            yield f"{title}: {json.dumps(change[member])}"


def _by_verifier(reasons: list[str]) -> dict[str, list[str]]:
    """Group reasons of the form `verifier: text` into {verifier: texts}. Reasons without a name are under ''."""
    found: dict[str, list[str]] = {}
    for reason in reasons:
        name, colon, text = reason.partition(": ")
        found.setdefault(name if colon else "", []).append(text if colon else reason)
    return found


def _path(warehouse: UUID, ticket: UUID | None = None, below: str = "") -> str:
    return f"/warehouse/{warehouse}/change-tickets{'' if ticket is None else f'/{ticket}'}{below}"


@click.group()
def contracts() -> None:
    """Commands on data contracts."""


@contracts.command("check")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def check(directory: Path) -> None:
    """Check the data contracts in a directory, and list their tables and owners.

    Exit with 1 if a file is invalid. A gateway with these files would not start.
    """
    from gateway.verification.contracts import ContractInvalid, load_contracts

    with ends_on(ContractInvalid, OSError):
        found = load_contracts(directory)
    for contract in found.contracts:
        table = contract.table
        name = table.id or ".".join((table.warehouse or "", *table.namespace, table.name or ""))
        click.echo(f"{contract.name}: {name} ({', '.join(contract.owners)})")
    click.echo(f"valid contracts: {len(found.contracts)}")


async def require_verifiers(settings: Settings) -> None:
    """End the command if a verifier in the settings cannot be opened, because each worker process would fail too."""
    if not settings.verifiers:
        return
    from gateway.assembly.extensions import NoSuchExtension
    from gateway.assembly.verifiers import open_verifiers
    from gateway.cli.common import trust
    from gateway.settings import SettingsError
    from gateway.telemetry.health import HealthMonitor

    try:
        async with AsyncExitStack() as stack:
            open_verifiers(settings, trust(), None, HealthMonitor(), stack)
    except (NoSuchExtension, SettingsError) as refused:
        raise click.ClickException(f"cannot serve: {refused}") from None
