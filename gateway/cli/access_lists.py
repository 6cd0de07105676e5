# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate access who-can`` and ``lakegate access what-can``: list access with its reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import click

from gateway.cli.catalog_client import ReferenceType, finder_of
from gateway.cli.management import Command, Management, line, with_api
from gateway.cli.output import print_lines

_WHO_CAN = "/access/who-can"
_WHAT_CAN = "/access/what-can"
_IN_WAREHOUSES = ("table", "view", "generic_table")
_SECONDS = 60.0


def _about_an_object(command: Command) -> Command:
    """Add the options that select an object. The command gets the parameter `at` with the given ids by type."""
    for option in (
        click.option("--server", is_flag=True, help="The server."),
        click.option("--data-policy", type=click.UUID, help="Id of a data policy."),
        click.option("--tag", type=click.UUID, help="Id of a tag."),
        click.option("--role", type=click.UUID, help="Id of a role."),
        click.option("--generic-table", type=click.UUID, help="Id of a generic table of the warehouse."),
        click.option("--view", type=click.UUID, help="Id of a view of the warehouse."),
        click.option("--table", type=click.UUID, help="Id of a table of the warehouse."),
        click.option("--namespace", type=click.UUID, help="Id of a namespace."),
        click.option("--warehouse", type=click.UUID, help="Id of a warehouse."),
    ):
        command = option(command)
    named = click.argument("reference", type=ReferenceType(), required=False, metavar="[OBJECT]")
    return named(with_api()(command))


def _object(api: Management, at: Mapping[str, Any]) -> dict[str, dict[str, str]] | None:
    """Return the object of the options in the form of a request. Return the project, if one is given, or else None."""
    given = {name: str(value) for name, value in at.items() if isinstance(value, UUID)}
    if (reference := at["reference"]) is not None:
        from gateway.apply.references import object_of

        if given or at["server"]:
            raise click.UsageError("give one object")
        with finder_of(api) as finder:
            return object_of(finder, finder.find(reference))
    warehouse = given.pop("warehouse", None)
    if len(given) + bool(at["server"]) > 1:
        raise click.UsageError("give one object")
    for name, id in given.items():
        word = name.replace("_", "-")
        if name not in _IN_WAREHOUSES:
            return {word: {f"{word}-id": id}}
        if warehouse is None:
            raise click.UsageError(f"--{word} needs --warehouse")
        return {word: {"warehouse-id": warehouse, f"{word}-id": id}}
    if warehouse is not None:
        return {"warehouse": {"warehouse-id": warehouse}}
    if at["server"]:
        return {"server": {}}
    return None if api.project is None else {"project": {"project-id": api.project}}


def _rows(api: Management, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of all pages."""
    token: str | None = None
    while True:
        asked = body if token is None else {**body, "page-token": token}
        answer = api.send("POST", path, body=asked, seconds=_SECONDS).json()
        yield from answer["rows"]
        token = answer.get("next-page-token")
        if token is None:
            return


@click.command("who-can")
@click.argument("action")
@click.option("--expand", type=click.UUID, help="Id of a role: list its members that may.")
@click.option("--at", "moment", help="A past moment, such as 2026-11-02T09:30:00Z. Default: now.")
@click.option("--json", "as_json", is_flag=True, help="Print each row as JSON.")
@_about_an_object
def who_can(action: str, expand: UUID | None, moment: str | None, as_json: bool, api: Management, **at: Any) -> None:
    """List the principals that may take ACTION, such as read_data, on an object: principal, end and reason, separated
    by tabs.

    OBJECT is a name such as table/demo/hr.people; options give it by ids. Without an object, the answer is about the
    project of --project.

    Example: lakegate who-can read_data table/demo/hr.people
    """
    object = _object(api, at)
    if object is None:
        raise click.UsageError("give an object, or --project")
    body: dict[str, Any] = {"action": action, "object": object}
    body |= {} if expand is None else {"expand": str(expand)}
    body |= {} if moment is None else {"at": moment}
    rows = _rows(api, _WHO_CAN, body)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    lines = ((_principal(row["principal"]), _end(row), _reason(row)) for row in rows)
    print_lines(("principal", "end", "reason"), lines)


@click.command("what-can")
@click.option("--user", help="Id of a user. Default: the caller.")
@click.option("--as-role", type=click.UUID, help="Id of a role, whose rights alone count.")
@click.option("--action", help="List this action only.")
@click.option("--at", "moment", help="A past moment, such as 2026-11-02T09:30:00Z. Default: now.")
@click.option("--json", "as_json", is_flag=True, help="Print each row as JSON.")
@_about_an_object
def what_can(
    user: str | None,
    as_role: UUID | None,
    action: str | None,
    moment: str | None,
    as_json: bool,
    api: Management,
    **at: Any,
) -> None:
    """List what a principal may do in an object: the object, actions, end and reason, separated by tabs.

    OBJECT is a name such as warehouse/demo; options give it by ids. Actions on all contents of the object begin with
    the type of the contents. Without an object, the answer is about the whole server.

    Example: lakegate what-can warehouse/demo
    """
    if user is not None and as_role is not None:
        raise click.UsageError("--user and --as-role exclude each other")
    body: dict[str, Any] = {"object": _object(api, at), "action": action, "at": moment}
    body["principal"] = {"user": user} if user else {"role": str(as_role)} if as_role else None
    for row in _rows(api, _WHAT_CAN, {name: value for name, value in body.items() if value is not None}):
        if as_json:
            click.echo(json.dumps(row))
            continue
        resource = _resource(row["resource"])
        for held in row["held"]:
            click.echo(line(resource, " ".join(held["actions"]), _end(held), _reason(held)))
        for type, actions in row.get("contents", {}).items():
            click.echo(line(resource, f"{type}: {' '.join(actions)}", "", "contents"))


def _principal(principal: Mapping[str, str]) -> str:
    return " ".join(f"{type} {id}" for type, id in principal.items())


def _resource(resource: Mapping[str, Any]) -> str:
    """Return the type of an object, and the id that names it."""
    type = str(resource["type"])
    return f"{type} {resource.get(f'{type}-id') or resource.get('column') or ''}".strip()


def _end(row: Mapping[str, Any]) -> str:
    return "unknown" if row.get("end-unknown") else str(row.get("end", "none"))


def _reason(row: Mapping[str, Any]) -> str:
    return ", ".join(_fact(fact) for fact in row["reason"])


def _fact(fact: Mapping[str, Any]) -> str:
    if fact["fact"] in ("another grant", "contents"):
        return str(fact["fact"])
    by = f" by {fact['granted-by']}" if "granted-by" in fact else ""
    return f"{fact['privilege']} of {_principal(fact['principal'])} on {_resource(fact['resource'])}{by}"
