# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate audit search``: search the audit log of a gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.access_requests import FOR
from gateway.cli.catalog_client import ReferenceType, with_finder
from gateway.cli.grants import principal_of
from gateway.cli.output import Row, print_rows, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference

_SEARCH: Final = "/management/v1/audit/search"
_COLUMNS: Final = ("at", "user", "operation", "outcome", "object", "id")
_OUTCOMES: Final = ("allowed", "hidden", "forbidden", "unavailable", "unauthenticated")


@click.command()
@click.argument("reference", type=ReferenceType(), metavar="[OBJECT]", required=False)
@click.option("--principal", type=ReferenceType("user"), help="Only records of this user.")
@click.option(
    "--operation", "operations", multiple=True, help="Only this operation, such as load_table. May be repeated."
)
@click.option("--outcome", "outcomes", type=click.Choice(_OUTCOMES), multiple=True, help="Only this outcome.")
@click.option("--request", "request_id", help="Id of a request, of an error or of a trace.")
@FOR
@with_format
@with_finder
def search(
    reference: Reference | None,
    principal: Reference | None,
    operations: tuple[str, ...],
    outcomes: tuple[str, ...],
    request_id: str | None,
    duration: int | None,
    finder: Finder,
    form: str,
) -> None:
    """Search the audit log about OBJECT and its contents, newest first. Default: the server, in the last day.

    --for is the length of the time until now. The privilege auditor on the server, project or warehouse is needed.

    Example: lakegate audit search table/demo/hr.people --for 7d --outcome forbidden
    """
    body: dict[str, Any] = _place(finder, reference)
    body |= {"operations": list(operations)} if operations else {}
    body |= {"outcomes": list(outcomes)} if outcomes else {}
    body |= {} if request_id is None else {"request-id": request_id}
    body |= {} if principal is None else {"actor": principal_of(finder, principal)["user"]}
    if duration is not None:
        body["since"] = (datetime.now(UTC) - timedelta(seconds=duration)).isoformat()
    print_rows(form, _COLUMNS, _rows(finder, body), empty="There are no such records.")


def _place(finder: Finder, reference: Reference | None) -> dict[str, Any]:
    """Return the part of the request that selects the place and the object."""
    from gateway.apply.references import TABULARS
    from gateway.apply.state import Kind

    address = None if reference is None else finder.find(reference)
    if address is None or address.kind is Kind.SERVER:
        return {}
    id = finder.session.located.id(address)
    if address.kind is Kind.PROJECT:
        found = finder.session.api.get("/management/v1/project", project=id)
        return {"project-id": found["project-id"]}
    if address.kind not in (Kind.WAREHOUSE, Kind.NAMESPACE, *TABULARS):
        raise click.UsageError(f"give a project, a warehouse or an object in one, not {reference}")
    place = {"warehouse-id": finder.session.located.id(address.within(Kind.WAREHOUSE))}
    if address.kind is Kind.WAREHOUSE:
        return place
    if address.kind is Kind.NAMESPACE:
        return {**place, "below": {"type": "namespace", "id": id}}
    return {**place, "object": {"type": address.kind.replace("-", "_"), "id": id}}


def _rows(finder: Finder, body: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the records of all pages. A page can be empty although more follow."""
    page: Mapping[str, str] = {}
    while True:
        found = finder.session.api.ask(_SEARCH, {**body, **page})
        for each in found["records"]:
            yield {**each, **_summary(each)}
        if not (token := found.get("next-page-token")):
            return
        page = {"page-token": token}


def _summary(record: Mapping[str, Any]) -> Row:
    """Return the columns of a record: its user, and the operations, outcomes and objects of its decisions."""
    decisions = record["decisions"]
    objects = [
        f"{each['type'].replace('_', '-')}/{each.get('name') or each.get('id') or ''}".rstrip("/")
        for decision in decisions
        for each in decision.get("objects", ())
    ]
    return {
        "user": record["actor"]["id"],
        "operation": list(dict.fromkeys(each["operation"] for each in decisions)),
        "outcome": list(dict.fromkeys(each["outcome"] for each in decisions)),
        "object": list(dict.fromkeys(objects)),
    }
