# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate access``: request access to objects, and decide about requests of other users."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from gateway.cli.catalog_client import ReferenceType, finder_of
from gateway.cli.management import Management, as_uuid, line, warehouse_named, with_api
from gateway.cli.output import print_lines

if TYPE_CHECKING:
    from gateway.apply.references import Reference

_REQUESTS: Final = "/access/requests"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION: Final = re.compile(r"(\d{1,9})([smhd])")
_STATUSES: Final = ("pending", "approved", "denied", "withdrawn", "expired", "ended")

_ID: Final = click.argument("id", type=click.UUID)


class _Duration(click.ParamType[int]):
    """A duration such as `2d`, `8h`, `30m` or `90s`, converted to seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the duration in seconds."""
        found = _DURATION.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration. Write 2d, 8h, 30m or 90s.", param, ctx)
        return int(found[1]) * _SECONDS[found[2]]


FOR: Final[Callable[..., Any]] = click.option("--for", "duration", type=_Duration(), help="Duration, such as 2d or 8h.")


_WITHIN: Final = {
    "generic_table": "NAMESPACE.TABLE of a generic table.",
    "view": "NAMESPACE.VIEW.",
    "table": "NAMESPACE.TABLE.",
    "namespace": "Namespace, with dots between its levels.",
}


def in_warehouse(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a warehouse or objects in it."""
    for kind, help in _WITHIN.items():
        command = click.option(f"--{kind.replace('_', '-')}", kind, multiple=True, help=help)(command)
    on = click.option("--on", "on", type=ReferenceType(), multiple=True, help="Object, such as table/demo/hr.people.")
    command = on(command)
    return click.option("--warehouse", help="Name or id of the warehouse of the object.")(command)


@click.group()
def access() -> None:
    """Request access to objects, and decide about requests of other users."""


@access.command()
@click.argument("privileges", nargs=-1, required=True)
@in_warehouse
@click.option("--role", type=click.UUID, help="Id of a role.")
@click.option("--on-project", help="Id of a project.")
@click.option("--reason", required=True, help="Reason, which approvers see.")
@FOR
@click.option("--dry-run", is_flag=True, help="Request nothing. Show what the request would open, and who decides.")
@with_api()
def request(
    privileges: tuple[str, ...], reason: str, duration: int | None, dry_run: bool, api: Management, **at: Any
) -> None:
    """Request PRIVILEGES, such as select, on an object. Print the id of the request.

    Example: lakegate request select --on table/demo/hr.people --for 2d --reason "quarterly report"

    Other options name the object in parts. With --warehouse alone, it is the warehouse. --on, --namespace, --table,
    --view and --generic-table can be repeated to request several objects together. Then the printed id is that of all
    requests.

    With --dry-run, each privilege is a line. The fields are separated by tabs: object type, name, privilege, right that
    approvers need, numbers of objects that it opens too, and approvers if you may know them.
    """
    items = [{"object": on, "privileges": list(privileges)} for on in requested_objects(api, at)]
    body: dict[str, Any] = {"items": items, "reason": reason}
    body |= {} if duration is None else {"duration-seconds": duration}
    if dry_run:
        for item in api.send("POST", f"{_REQUESTS}/dry-run", body=body).json()["items"]:
            for privilege in item["privileges"]:
                click.echo(_tried_line(item, privilege))
        return
    made = api.send("POST", _REQUESTS, body=body).json()
    click.echo(made.get("bundle", made["id"]))


@access.command("requests")
@click.option("--mine", is_flag=True, help="Only requests that you made.")
@click.option("--to-decide", is_flag=True, help="Only pending requests about which you may decide.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only requests with this status.")
@with_api(project=False)
def list_requests(mine: bool, to_decide: bool, status: str | None, api: Management) -> None:
    """List your requests, and those about which you may decide, oldest first: a line for each.

    The fields are separated by tabs: request, status, user, privileges, object type, name, end, reason. Requests that
    were made together have a further field: their common id.
    """
    if to_decide and (mine or status):
        raise click.UsageError("--to-decide excludes --mine and --status")
    query = {"mine": "false", "status": "pending"} if to_decide else {"mine": "true"} if mine else {}
    query |= {} if status is None else {"status": status}
    rows = api.pages(_REQUESTS, "access-requests", query)
    print_lines((*ROW_COLUMNS, "together"), (_request_fields(each) for each in rows))


@access.command()
@_ID
@with_api(project=False)
def show(id: UUID, api: Management) -> None:
    """Show a request as JSON."""
    click.echo(json.dumps(api.send("GET", f"{_REQUESTS}/{id}").json(), indent=2))


@access.command()
@_ID
@click.option("--privilege", "privileges", multiple=True, help="Grant only these privileges.")
@click.option("--only", multiple=True, type=click.UUID, help="Of requests made together, approve only this one.")
@FOR
@click.option("--comment", help="Comment that the requester sees.")
@with_api(project=False)
def approve(
    id: UUID,
    privileges: tuple[str, ...],
    only: tuple[UUID, ...],
    duration: int | None,
    comment: str | None,
    api: Management,
) -> None:
    """Approve a request, or less than was requested. The privileges are granted at once, and expire."""
    body: dict[str, Any] = {} if comment is None else {"comment": comment}
    body |= {"privileges": list(privileges)} if privileges else {}
    body |= {"requests": [str(each) for each in only]} if only else {}
    body |= {} if duration is None else {"duration-seconds": duration}
    api.send("POST", f"{_REQUESTS}/{id}/approve", body=body)
    click.echo("Approved.")


def requested_objects(api: Management, at: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that the options select, in the form of the API."""
    if at["on"]:
        if any(at[name] for name in ("warehouse", "role", "on_project", *_WITHIN)):
            raise click.UsageError("--on excludes the other options that name objects")
        return [_named(api, each) for each in at["on"]]
    warehouse, role, project = at["warehouse"], at["role"], at["on_project"]
    within = [(kind, name) for kind in reversed(_WITHIN) for name in at[kind]]
    if sum(each is not None for each in (warehouse, role, project)) != 1 or (within and not warehouse):
        raise click.UsageError(
            "give --on; or --warehouse, with or without --namespace, --table, --view and --generic-table; or --role; "
            "or --on-project"
        )
    if role is not None:
        return [{"type": "role", "role-id": str(role)}]
    if project is not None:
        return [{"type": "project", "project-id": project}]
    id = as_uuid(warehouse) or warehouse_named(api, warehouse, warehouse).id
    return [_within(id, *each) for each in within] or [{"type": "warehouse", "warehouse-id": id}]


def _named(api: Management, reference: Reference) -> dict[str, Any]:
    """Return an object in the form of the API. Objects in a warehouse keep their names: they may be invisible."""
    kind, names = str(reference.kind), reference.names
    if kind == "project":
        return {"type": kind, **({"project-id": names[0]} if names else {})}
    if kind in ("role", "tag", "data-policy"):
        with finder_of(api) as finder:
            return {"type": kind, f"{kind}-id": finder.session.located.id(finder.find(reference))}
    if reference.warehouse is None or kind == "column":
        raise click.UsageError(f"access to {reference} cannot be requested")
    name = reference.warehouse
    id = {"type": kind, "warehouse-id": as_uuid(name) or warehouse_named(api, str(reference), name).id}
    if kind == "warehouse":
        return id
    if kind == "namespace":
        return {**id, "namespace": list(names)}
    if len(names) == 1:
        return {**id, f"{kind}-id": names[0]}
    return {**id, "namespace": list(names[:-1]), "name": names[-1]}


def _within(id: str, kind: str, name: str) -> dict[str, Any]:
    """Return an object in the warehouse with this id, by its name with dots, in the form of the API."""
    levels = name.split(".")
    if kind == "namespace":
        return {"type": kind, "warehouse-id": id, "namespace": levels}
    if len(levels) < 2:
        raise click.UsageError(f"--{kind.replace('_', '-')} needs NAMESPACE.NAME")
    return {"type": kind.replace("_", "-"), "warehouse-id": id, "namespace": levels[:-1], "name": levels[-1]}


def _tried_line(item: dict[str, Any], privilege: dict[str, Any]) -> str:
    """Return a privilege of a dry run as one line."""
    opens = ", ".join(f"{each['count']} {each['type']}" for each in item.get("opens", ()))
    deciders = [f"{kind}:{id}" for each in privilege.get("deciders", ()) for kind, id in each.items()]
    approvers = ", ".join(deciders + ["and more"] * privilege.get("more", False))
    shown = privilege["privilege"], privilege["granted-with"], opens, approvers
    return line(item["object"]["type"], item["name"], *shown)


#: The fields of `row_fields`.
ROW_COLUMNS: Final = ("id", "status", "user", "privileges", "type", "name", "end", "reason")


def _request_fields(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the fields of a request. Those of a bundle have one more."""
    together = (row["bundle"],) if "bundle" in row else ()
    return (*row_fields(row, row.get("ends-at", row["expires-at"]), row.get("granted")), *together)


def row_fields(row: dict[str, Any], end: str, privileges: list[str] | None = None) -> tuple[str, ...]:
    """Return the fields of a request or an activation, with its end."""
    given = ",".join(privileges or row["privileges"])
    user, on = row["principal"]["user"], row["object"]["type"]
    return row["id"], row["status"], user, given, on, row["name"], end, row["reason"]


def add_step(group: click.Group, path: str, step: str, done: str, help: str, text: str | None = None) -> None:
    """Add the command for a step of a row to the group. It prints `done`.

    `text` is the name and help of a text that the step needs, separated by a colon.
    """
    member, _, about = (text or "").partition(": ")

    @with_api(project=False)
    def run(id: UUID, api: Management, **body: str) -> None:
        api.send("POST", f"{path}/{id}/{step}", body=body or None)
        click.echo(done)

    options = [click.Option([f"--{member}"], required=True, help=about)] if member else []
    command = click.command(step, help=help)(_ID(run))
    command.params += options
    group.add_command(command)


add_step(access, _REQUESTS, "deny", "Denied.", "Deny a request.", "reason: Reason, which the requester sees.")
add_step(access, _REQUESTS, "withdraw", "Withdrawn.", "Withdraw a pending request that you made.")
add_step(access, _REQUESTS, "remind", "Announced again.", "Announce a pending request that you made again.")
add_step(
    access,
    _REQUESTS,
    "end",
    "Ended.",
    "End the access of an approved request early: your own, or one that you may grant.",
)
