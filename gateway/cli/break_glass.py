# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate break-glass``: take rights in an emergency, confirm, end and review activations."""

from __future__ import annotations

from typing import Any, Final

import click

from gateway.cli.access_requests import ROW_COLUMNS, add_step, in_warehouse, requested_objects, row_fields
from gateway.cli.management import Management, line, with_api
from gateway.cli.output import print_lines

_PATH: Final = "/access/break-glass"
_STATUSES: Final = ("pending", "active", "ended", "lapsed", "reviewed")


@click.group("break-glass")
def break_glass() -> None:
    """Take rights in an emergency, and confirm, end and review activations."""


@break_glass.command()
@click.argument("privileges", nargs=-1, required=True, type=click.Choice(["describe", "select", "modify"]))
@in_warehouse
@click.option("--minutes", type=click.IntRange(15, 60), default=15, show_default=True, help="Time of the rights.")
@click.option("--reason", required=True, help="Reason, which the reviewer sees.")
@click.option("--second-person", is_flag=True, help="Wait for the confirmation of another principal.")
@with_api()
def start(
    privileges: tuple[str, ...], minutes: int, reason: str, second_person: bool, api: Management, **at: Any
) -> None:
    """Take PRIVILEGES on an object, by default on the warehouse. Print the id, the status and the end."""
    on, *further = requested_objects(api, {"role": None, "on_project": None, **at})
    if further:
        raise click.UsageError("give at most one of --namespace, --table, --view and --generic-table")
    body = {"object": on, "privileges": list(privileges), "reason": reason, "minutes": minutes}
    made = api.send("POST", _PATH, body=body | ({"second-person": True} if second_person else {})).json()
    click.echo(line(made["id"], made["status"], made.get("ends-at", "")))


@break_glass.command("list")
@click.option("--status", type=click.Choice(_STATUSES), help="Only activations with this status.")
@with_api(project=False)
def list_activations(status: str | None, api: Management) -> None:
    """List your activations, and those that you may confirm or review, oldest first: a line for each.

    The fields are separated by tabs: id, status, user, privileges, object type, name, end, reason.
    """
    rows = api.pages(_PATH, "activations", {} if status is None else {"status": status})
    print_lines(ROW_COLUMNS, (row_fields(each, each.get("ended-at", each.get("ends-at", ""))) for each in rows))


add_step(break_glass, _PATH, "confirm", "Confirmed.", "Confirm the activation of another user as the second person.")
add_step(break_glass, _PATH, "end", "Ended.", "End an activation before its time, or withdraw a pending one.")
add_step(
    break_glass,
    _PATH,
    "review",
    "Reviewed.",
    "Close the review of another user's activation that ended.",
    "finding: Result of the review.",
)
