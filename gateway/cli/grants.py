# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate grants``, ``grant`` and ``revoke``: list and change the privileges on an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.access_requests import FOR
from gateway.cli.catalog_client import ReferenceType, with_finder
from gateway.cli.management import printable
from gateway.cli.output import Row, print_rows, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference

_COLUMNS = ("privilege", "principal", "object", "expires-at", "granted-by", "reason")
_OBJECT = click.argument("reference", type=ReferenceType(), metavar="OBJECT")


@click.group()
def grants() -> None:
    """List grants. `lakegate grant` and `lakegate revoke` change them."""


@grants.command("list")
@click.argument("reference", type=ReferenceType(), metavar="[OBJECT]", required=False)
@click.option("--principal", type=ReferenceType(), help="Only grants of user/ID, user/EMAIL or role/NAME.")
@click.option("--history", is_flag=True, help="List ended grants instead, with the reason of the end.")
@with_format
@with_finder
def list_grants(
    reference: Reference | None, principal: Reference | None, history: bool, finder: Finder, form: str
) -> None:
    """List the grants on OBJECT, or those of a principal in the project. Default: your own.

    Example: lakegate grants list table/demo/hr.people
    """
    if history and reference is None:
        raise click.UsageError("--history needs OBJECT")
    query = {} if principal is None else _query(finder, principal)
    columns = _COLUMNS
    if reference is None:
        path, project = "/management/v1/grants", finder.session.located.id(finder.project())
    else:
        address = finder.find(reference)
        path = f"{finder.session.located.path(address)}/grants{'/history' if history else ''}"
        project = finder.session.located.project(address) or ""
    if history:
        columns = ("privilege", "principal", "object", "granted-by", "ended-at", "end-reason")
    found = finder.session.api.pages(path, "grants", project=project, query=query)
    print_rows(form, columns, _rows(finder, reference, found), empty="There are no such grants that you can see.")


@click.command()
@click.argument("privileges", metavar="PRIVILEGE[,PRIVILEGE]")
@_OBJECT
@click.option(
    "--to",
    "principals",
    type=ReferenceType(),
    multiple=True,
    required=True,
    help="user/ID, user/EMAIL or role/NAME. May be repeated.",
)
@FOR
@click.option("--until", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]), help="End of the grant, in UTC.")
@click.option("--reason", help="Reason, which reviewers see.")
@with_finder
def grant(
    privileges: str,
    reference: Reference,
    principals: tuple[Reference, ...],
    duration: int | None,
    until: datetime | None,
    reason: str | None,
    finder: Finder,
) -> None:
    """Grant privileges on OBJECT. A grant that exists already stays as it is.

    Example: lakegate grant select table/demo/hr.people --to role/analysts --for 7d --reason "quarterly report"
    """
    if duration is not None and until is not None:
        raise click.UsageError("--for and --until exclude each other")
    end = until.replace(tzinfo=UTC) if until is not None else None
    if duration is not None:
        end = datetime.now(UTC) + timedelta(seconds=duration)
    further = {} if reason is None else {"reason": reason}
    further |= {} if end is None else {"expires-at": end.isoformat()}
    _change(finder, "writes", privileges, reference, principals, further)
    ends = "" if end is None else f", until {end:%Y-%m-%d %H:%M} UTC"
    click.echo(f"granted {_sentence(privileges, reference, 'to', principals)}{ends}")


@click.command()
@click.argument("privileges", metavar="PRIVILEGE[,PRIVILEGE]")
@_OBJECT
@click.option(
    "--from",
    "principals",
    type=ReferenceType(),
    multiple=True,
    required=True,
    help="user/ID, user/EMAIL or role/NAME. May be repeated.",
)
@with_finder
def revoke(privileges: str, reference: Reference, principals: tuple[Reference, ...], finder: Finder) -> None:
    """Revoke privileges on OBJECT. A grant that does not exist is no error.

    Example: lakegate revoke select table/demo/hr.people --from role/analysts
    """
    _change(finder, "deletes", privileges, reference, principals, {})
    click.echo(f"revoked {_sentence(privileges, reference, 'from', principals)}")
    click.echo(
        "Credentials that were issued before stay valid until they expire: `lakegate live-credentials`.", err=True
    )


def _change(
    finder: Finder,
    member: str,
    privileges: str,
    reference: Reference,
    principals: tuple[Reference, ...],
    further: Mapping[str, str],
) -> None:
    """Send one request with each privilege for each principal."""
    address, located = finder.find(reference), finder.session.located
    entries = [
        {"privilege": privilege.strip(), "principal": principal_of(finder, each), **further}
        for each in principals
        for privilege in privileges.split(",")
    ]
    path = f"{located.path(address)}/grants"
    finder.session.api.change("POST", path, {member: entries}, project=located.project(address))


def principal_of(finder: Finder, reference: Reference) -> dict[str, str]:
    """Return a user or role in the form of the API. Another kind ends the command."""
    from gateway.apply.state import Kind

    if reference.kind not in (Kind.USER, Kind.ROLE):
        raise click.UsageError(f"{reference} is no principal. Give user/ID, user/EMAIL or role/NAME.")
    return {str(reference.kind): finder.session.located.id(finder.find(reference))}


def _query(finder: Finder, reference: Reference) -> dict[str, str]:
    [(kind, id)] = principal_of(finder, reference).items()
    return {f"principal{kind.title()}": id}


def _sentence(privileges: str, reference: Reference, word: str, principals: tuple[Reference, ...]) -> str:
    names = ", ".join(str(each) for each in principals)
    return printable(f"{privileges} on {reference} {word} {names}")


def _rows(finder: Finder, on: Reference | None, grants: Iterator[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield grants with references instead of ids, as far as the caller sees the names."""
    roles: dict[str, str] | None = None
    for each in grants:
        [(kind, id)] = each["principal"].items()
        if kind == "role" and roles is None:
            roles = _role_names(finder)
        named = (roles or {}).get(id, id) if kind == "role" else id
        object = str(on) if on is not None else resource_text(each["resource"])
        yield {**each, "principal": f"{kind}/{named}", "object": object}


def _role_names(finder: Finder) -> dict[str, str]:
    """Return {id: name} of the roles that the caller sees. Without the right to list them, there are none."""
    from gateway.apply.client import ApiError
    from gateway.apply.state import Kind

    try:
        return {id: address.name for address, id, _ in finder.rows(Kind.ROLE, finder.project())}
    except ApiError:
        return {}


def resource_text(resource: Mapping[str, Any]) -> str:
    """Return the object of a grant as a reference with ids."""
    kind = str(resource["type"]).replace("_", "-")
    if kind == "column":
        return f"column/{resource['warehouse-id']}/{resource['table-id']}/{resource.get('column', '')}"
    inside = kind in ("namespace", "table", "view", "generic-table")
    parts = [resource.get("warehouse-id")] if inside else []
    parts += [] if kind == "server" else [resource.get(f"{kind}-id") or resource.get(f"{kind}-definition-id")]
    return "/".join([kind, *(str(each) for each in parts if each)])
