# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate client``: register machine identities, so that they can get grants before their first request.

A registered client is a user record of the type `application`. The record gives no right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

import click

from gateway.cli.catalog_client import ReferenceType, path_of_object
from gateway.cli.management import Management, as_uuid, line, printable, warehouse_named, with_api

_PRIVILEGES = ("inspector", "delegate", "enforcer", "describe", "select", "create", "modify")


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
    help="Where to grant: an object by its name, such as warehouse/demo or table/demo/hr.people, or project. May be "
    "repeated.",
)
@click.option("--for-user", "users", multiple=True, help="delegate: a user for whom it may act. May be repeated.")
@click.option(
    "--for-role", "roles", multiple=True, type=click.UUID, help="delegate: a role for whose members it may act."
)
@click.option("--for-administrators", "administrators", is_flag=True, help="delegate: also act for administrators.")
@click.option("--from-network", "networks", multiple=True, help="delegate: a network (CIDR) it may act from.")
@with_api()
def register(
    identity: str,
    name: str,
    privileges: tuple[str, ...],
    objects: tuple[str, ...],
    users: tuple[str, ...],
    roles: tuple[UUID, ...],
    administrators: bool,
    networks: tuple[str, ...],
    api: Management,
) -> None:
    """Register a client, and grant it each --grant on each --on. It need not have sent a request before.

    IDENTITY is the id of the provider, a tilde, and the subject of the client's tokens: oidc~trino. A repeated command
    changes nothing that holds already. Only server administrators and operators can register clients.
    Without limits, delegate includes every user except administrators. Present limits are never removed.
    """
    _require_identity(identity)
    if bool(privileges) != bool(objects):
        raise click.UsageError("give --grant and --on together: what to grant, and where")
    limits = _limits(users, roles, administrators, networks)
    if limits and "delegate" not in privileges:
        raise click.UsageError("--for-user, --for-role, --for-administrators and --from-network need --grant delegate")
    # Names of objects are resolved first, so that a mistyped name changes nothing.
    places = [(each, _grants_path(api, each)) for each in dict.fromkeys(objects)]
    if "delegate" in privileges and not limits:
        for place, path in places:
            _require_no_limits(api, identity, place, path)
    answer = api.send("POST", "/user", body={"id": identity, "name": name, "user-type": "application"})
    user = answer.json()
    if user["user-type"] != "application":
        raise click.ClickException(
            f"{identity} is registered as a {user['user-type']}, not as an application. Check the subject. Grant "
            "privileges to persons with the grants API."
        )
    click.echo(f"{'registered' if answer.status_code == 201 else 'already registered:'} {printable(identity)}")
    for place, path in places:
        writes = [
            {"privilege": each, "principal": {"user": identity}}
            | ({"acts-for": limits} if limits and each == "delegate" else {})
            for each in dict.fromkeys(privileges)
        ]
        api.send("POST", path, body={"writes": writes})
        click.echo(f"granted {', '.join(dict.fromkeys(privileges))} on {printable(place)}")


@client.command("list")
@with_api(project=False)
def list_clients(api: Management) -> None:
    """List the registered clients in the order of their ids: id, name, and time of registration, separated by tabs."""
    for user in api.pages("/user", "users"):
        if user["user-type"] == "application":
            click.echo(line(user["id"], user["name"], user["created-at"]))


@client.command()
@click.argument("identity")
@with_api()
@click.option("--json", "as_json", is_flag=True, help="Print the record and the grants as JSON.")
def show(identity: str, api: Management, as_json: bool) -> None:
    """Show a client and its direct grants in the project."""
    _require_identity(identity)
    user = api.send("GET", f"/user/{quote(identity, safe='~')}").json()
    grants = list(api.pages("/grants", "grants", {"principalUser": identity}))
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
    """Return the privilege, object, expiry and limits of a grant as one line."""
    resource = grant["resource"]
    kind = resource["type"]
    id = resource.get(f"{kind}-id") or resource.get("warehouse-id") or resource.get("project-id") or ""
    ends = f", until {grant['expires-at']}" if "expires-at" in grant else ""
    limits = f"; {limits_line(grant['acts-for'])}" if "acts-for" in grant else ""
    return printable(f"{grant['privilege']} on {kind} {id}".rstrip() + ends + limits)


def limits_line(limits: Mapping[str, Any]) -> str:
    """Return the limits of a grant of `delegate` as text."""
    named = [*limits.get("users", ()), *(f"members of role {role}" for role in limits.get("roles", ()))]
    if limits["administrators"] and not named and "networks" not in limits:
        return "limits: none"
    who = ", ".join(named) or "every user"
    administrators = "" if limits["administrators"] else ", never administrators"
    networks = f", from {', '.join(limits['networks'])}" if "networks" in limits else ""
    return f"limits: for {who}{administrators}{networks}"


def _limits(
    users: tuple[str, ...], roles: tuple[UUID, ...], administrators: bool, networks: tuple[str, ...]
) -> dict[str, Any]:
    """Return `acts-for` with those limits that are given; empty if none is given."""
    given: dict[str, Any] = {"users": list(users), "roles": [str(role) for role in roles], "networks": list(networks)}
    found = {name: value for name, value in given.items() if value}
    return found | ({"administrators": True} if administrators else {})


def _require_no_limits(api: Management, identity: str, place: str, path: str) -> None:
    """End the command if the client has a limited grant of `delegate` there, because a grant without limits would widen
    it.
    """
    for grant in api.pages(path, "grants"):
        limits = grant.get("acts-for", {})
        same = grant["privilege"] == "delegate" and grant["principal"].get("user") == identity
        if same and any(name in limits for name in ("users", "roles", "networks")):
            raise click.ClickException(
                f"{printable(identity)} has delegate on {printable(place)} with {printable(limits_line(limits))}. A "
                "grant without limits would widen it. Repeat the limits, leave out --grant delegate, or revoke that "
                "grant first."
            )


def _require_identity(identity: str) -> None:
    """End the command with a message unless the identity has the form of a user id."""
    provider, tilde, subject = identity.partition("~")
    if not (provider and tilde and subject):
        raise click.UsageError(
            f"{identity!r} is not an identity. Write the id of the identity provider, a tilde and the subject (the "
            "claim sub) of the client's tokens, for example oidc~trino."
        )


def _grants_path(api: Management, place: str) -> str:
    """Return the path of the grants on the object in `--on`. An unknown object ends the command."""
    kind, _, name = place.partition("/")
    if kind == "project" and not name:
        return "/project/grants"
    if kind == "warehouse" and name:
        return f"/warehouse/{warehouse_named(api, place, name).id}/grants"
    warehouse, _, id = name.rpartition("/")
    if kind in ("namespace", "table") and warehouse and (below := as_uuid(id)) is not None:
        return f"/warehouse/{warehouse_named(api, place, warehouse).id}/{kind}/{below}/grants"
    return path_of_object(api, ReferenceType().convert(place, None, None), "/grants")
