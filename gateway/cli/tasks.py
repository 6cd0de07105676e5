# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate tasks``: background tasks of a project or a warehouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from gateway.cli.catalog_client import ReferenceType, with_finder
from gateway.cli.output import Row, print_object, print_rows, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference

_STATUSES: Final = ("RUNNING", "SCHEDULED", "STOPPING", "CANCELLED", "SUCCESS", "FAILED")
_COLUMNS: Final = ("task-id", "queue-name", "status", "object", "scheduled-for", "attempt")
_IN = click.option(
    "--warehouse",
    "within",
    type=ReferenceType("warehouse"),
    help="Warehouse of the tasks. Default: tasks of the project.",
)
_TASKS = click.argument("ids", type=click.UUID, nargs=-1, required=True, metavar="TASK...")


@click.group()
def tasks() -> None:
    """List background tasks, such as deletions of files, and stop, cancel or run them."""


@tasks.command("list")
@_IN
@click.option(
    "--status",
    "statuses",
    type=click.Choice(_STATUSES, case_sensitive=False),
    multiple=True,
    help="Only tasks with this status. May be repeated.",
)
@click.option(
    "--queue", "queues", multiple=True, help="Only tasks of this queue, such as soft_deletion. May be repeated."
)
@with_format
@with_finder
def list_tasks(
    within: Reference | None, statuses: tuple[str, ...], queues: tuple[str, ...], finder: Finder, form: str
) -> None:
    """List the tasks of a warehouse, or of the project, newest first.

    Example: lakegate tasks list --warehouse demo --status FAILED
    """
    body: dict[str, Any] = {"status": list(statuses)} if statuses else {}
    body |= {"queue-name": list(queues)} if queues else {}
    print_rows(form, _COLUMNS, _rows(finder, within, body), empty="There are no such tasks that you can see.")


@tasks.command()
@click.argument("id", type=click.UUID, metavar="TASK")
@_IN
@with_format
@with_finder
def show(id: UUID, within: Reference | None, finder: Finder, form: str) -> None:
    """Show a task with its attempts.

    Example: lakegate tasks show 01a22757-67e8-7591-871d-1da0bd48c59a --warehouse demo
    """
    path, project = _path(finder, within)
    print_object(form, finder.session.api.get(f"{path}/by-id/{id}", project=project))


def _control(name: str, action: str, done: str, help: str) -> None:
    """Add a command that controls tasks."""

    @tasks.command(name, help=f"{help}\n\nExample: lakegate tasks {name} TASK --warehouse demo")
    @_TASKS
    @_IN
    @with_finder
    def run(ids: tuple[UUID, ...], within: Reference | None, finder: Finder) -> None:
        path, project = _path(finder, within)
        body = {"action": {"action-type": action}, "task-ids": [str(each) for each in ids]}
        finder.session.api.change("POST", f"{path}/control", body, project=project)
        click.echo(f"{done}: {len(ids)}")


_control("cancel", "cancel", "cancelled", "Cancel tasks, so that they never run. A dropped table is then kept.")
_control("stop", "stop", "stopping", "End the present attempt of tasks. They are tried again later.")
_control("run", "run-now", "scheduled", "Run tasks as soon as possible.")


def _path(finder: Finder, within: Reference | None) -> tuple[str, str]:
    """Return (path of the tasks, id of the project for the request)."""
    project = finder.project()
    address = project if within is None else finder.find(within)
    return f"{finder.session.located.path(address)}/task", finder.session.located.id(project)


def _rows(finder: Finder, within: Reference | None, body: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the tasks of all pages. The list is a POST request, with the page token in its body."""
    path, project = _path(finder, within)
    page: Mapping[str, str] = {}
    while True:
        found = finder.session.api.ask(f"{path}/list", {**body, **page}, project=project)
        for each in found["tasks"]:
            yield {**each, "object": ".".join(each.get("entity-name") or ())}
        if not (token := found.get("next-page-token")):
            return
        page = {"page-token": token}
