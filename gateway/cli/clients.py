# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate client``: register machine identities, so that they can get grants before their first request.

A registered client is a user record of the type `application`. The record gives no right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import click

from gateway.cli.management import Management, at_a_gateway, printable

_PRIVILEGES = ("inspector", "delegate", "enforcer", "describe", "select", "create", "modify")
_PROJECT = click.option("--project", help="Id of the project. Default: the default project of the gateway.")


@click.group()
def client() -> None:
    """Register machine identities such as Trino, list and show them."""


@client.command()
@click.argument("identity")
@click.option("--name", required=True, help="Name in lists, such as trino.")
@click.option(
    "--grant", "privileges", multiple=True, type=click.Choice(_PRIVILEGES), help="Privilege to grant. May be repeated."
)
@click.option(
    "--on",
    "objects",
    multiple=True,
    metavar="OBJECT",
    help="Where to grant: warehouse/NAME, warehouse/ID, or project. May be repeated.",
)
@_PROJECT
@at_a_gateway
def register(
    identity: str,
    name: str,
    privileges: tuple[str, ...],
    objects: tuple[str, ...],
    project: str | None,
    gateway: str | None,
    token: str | None,
) -> None:
    """Register a client, and grant it each --grant on each --on. It need not have sent a request before.

    IDENTITY is the id of the provider, a tilde, and the subject of the client's tokens: oidc~trino. A repeated command
    changes nothing that holds already. Only server administrators and operators can register clients.
    """
    _require_identity(identity)
    if bool(privileges) != bool(objects):
        raise click.UsageError("give --grant and --on together: what to grant, and where")
    api = Management.of(gateway, token, project)
    # Names of objects are resolved first, so that a mistyped name changes nothing.
    places = [(each, _grants_path(api, each)) for each in dict.fromkeys(objects)]
    answer = api.send("POST", "/user", body={"id": identity, "name": name, "user-type": "application"})
    user = answer.json()
    if user["user-type"] != "application":
        raise click.ClickException(
            f"{identity} is registered as a {user['user-type']}, not as an application. Check the subject. Grant "
            "privileges to persons with the grants API."
        )
    click.echo(f"{'registered' if answer.status_code == 201 else 'already registered:'} {printable(identity)}")
    for place, path in places:
        writes = [{"privilege": each, "principal": {"user": identity}} for each in dict.fromkeys(privileges)]
        api.send("POST", path, body={"writes": writes})
        click.echo(f"granted {', '.join(dict.fromkeys(privileges))} on {printable(place)}")


@client.command("list")
@at_a_gateway
def list_clients(gateway: str | None, token: str | None) -> None:
    """List the registered clients in the order of their ids: id, name, and time of registration, separated by tabs."""
    api = Management.of(gateway, token)
    for user in _users(api):
        if user["user-type"] == "application":
            click.echo("\t".join((printable(user["id"]), printable(user["name"]), user["created-at"])))


@client.command()
@click.argument("identity")
@_PROJECT
@at_a_gateway
@click.option("--json", "as_json", is_flag=True, help="Print the record and the grants as JSON.")
def show(identity: str, project: str | None, gateway: str | None, token: str | None, as_json: bool) -> None:
    """Show a client and its direct grants in the project."""
    _require_identity(identity)
    api = Management.of(gateway, token, project)
    user = api.send("GET", f"/user/{quote(identity, safe='~')}").json()
    grants = list(_grants(api, identity))
    if as_json:
        click.echo(json.dumps({"client": user, "grants": grants}, indent=2))
        return
    click.echo(f"id:         {printable(user['id'])}")
    click.echo(f"name:       {printable(user['name'])}")
    click.echo(f"type:       {user['user-type']}")
    click.echo(f"registered: {user['created-at']}")
    click.echo("grants:" if grants else "grants:     none")
    for grant in grants:
        click.echo(f"  - {grant_line(grant)}")


def grant_line(grant: dict[str, Any]) -> str:
    """Return the privilege, object and expiry of a grant as one line."""
    resource = grant["resource"]
    kind = resource["type"]
    id = resource.get(f"{kind}-id") or resource.get("warehouse-id") or resource.get("project-id") or ""
    ends = f", until {grant['expires-at']}" if "expires-at" in grant else ""
    return printable(f"{grant['privilege']} on {kind} {id}".rstrip() + ends)


def _require_identity(identity: str) -> None:
    """End the command unless the identity has the form of a user id."""
    provider, tilde, subject = identity.partition("~")
    if not (provider and tilde and subject):
        raise click.UsageError(
            f"{identity!r} is not an identity. Write the id of the identity provider, a tilde and the subject (the "
            "claim sub) of the client's tokens, for example oidc~trino."
        )


def _grants_path(api: Management, place: str) -> str:
    """Return the path of the grants on an object that `--on` names. An unknown object ends the command."""
    kind, _, name = place.partition("/")
    if kind == "project" and not name:
        return "/project/grants"
    if kind != "warehouse" or not name:
        raise click.UsageError(f"--on {place}: write warehouse/NAME, warehouse/ID or project")
    warehouses = api.send("GET", "/warehouse", query={"warehouseStatus": "active"}).json()["warehouses"]
    # As in paths, a text in the form of a UUID is always an id: another warehouse can have it as its name.
    member, wanted = ("name", name) if (id := _as_uuid(name)) is None else ("id", id)
    found = [each["id"] for each in warehouses if each[member] == wanted]
    if not found:
        raise click.ClickException(
            f"--on {place}: you see no active warehouse of this name or id in the project. Check the name, and select "
            "another project with --project."
        )
    return f"/warehouse/{found[0]}/grants"


def _as_uuid(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _users(api: Management) -> Iterator[dict[str, Any]]:
    yield from _pages(api, "/user", "users", {})


def _grants(api: Management, identity: str) -> Iterator[dict[str, Any]]:
    yield from _pages(api, "/grants", "grants", {"principalUser": identity})


def _pages(api: Management, path: str, member: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    page: str | None = None
    while True:
        answer = api.send("GET", path, query={**query, **({} if page is None else {"pageToken": page})}).json()
        yield from answer[member]
        page = answer.get("next-page-token")
        if page is None:
            return
