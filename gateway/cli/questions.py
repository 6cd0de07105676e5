# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate whoami``, ``can`` and ``explain``: the caller, and decisions with their reasons."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from gateway.cli.catalog_client import ReferenceType, with_finder
from gateway.cli.exit_codes import ExitCode
from gateway.cli.grants import principal_of
from gateway.cli.management import Command, Management, printable, with_api
from gateway.cli.output import print_object, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference

_PRINCIPAL = click.option("--principal", type=ReferenceType(), help="user/ID, user/EMAIL or role/NAME. Default: you.")


@click.command()
@with_format
@with_api(project=False)
def whoami(api: Management, form: str) -> None:
    """Show the user of the token, as the gateway sees it.

    Example: lakegate whoami
    """
    print_object(form, api.send("GET", "/whoami").json())


def _question(command: Command) -> Command:
    """Add the arguments of a question about an action on an object."""
    named = click.argument("reference", type=ReferenceType(), metavar="OBJECT")
    return click.argument("action")(named(_PRINCIPAL(with_format(with_finder(command)))))


@click.command()
@_question
def can(action: str, reference: Reference, principal: Reference | None, finder: Finder, form: str) -> None:
    """Print whether you, or another principal, may take ACTION on OBJECT. Exit with 3 if not.

    Example: lakegate can read_data table/demo/hr.people --principal user/bob@example.com
    """
    answer = finder.session.api.ask("/management/v1/permissions/check", _check(finder, action, reference, principal))
    if form == "table":
        restricted = ": data policies restrict the table" if answer.get("restricted") else ""
        click.echo(f"{'yes' if answer['allowed'] else 'no'}{restricted}")
    else:
        print_object(form, answer)
    if not answer["allowed"]:
        sys.exit(ExitCode.DIFFERS)


@click.command()
@click.argument("action", required=False)
@click.argument("reference", type=ReferenceType(), metavar="[OBJECT]", required=False)
@_PRINCIPAL
@click.option("--at", "moment", help="A past moment, such as 2026-11-02T09:30:00Z. Default: now.")
@click.option("--denial", type=click.UUID, help="Explain a refused request instead, by the id in its message.")
@with_format
@with_finder
def explain(
    action: str | None,
    reference: Reference | None,
    principal: Reference | None,
    moment: str | None,
    denial: UUID | None,
    finder: Finder,
    form: str,
) -> None:
    """Explain why a principal may or may not take ACTION on OBJECT: grants, rules, policies, and what would change it.

    Example: lakegate explain read_data table/demo/hr.people --principal user/bob@example.com
    """
    api = finder.session.api
    if denial is not None:
        if action is not None:
            raise click.UsageError("--denial excludes ACTION and OBJECT")
        found = api.get(f"/management/v1/access/denials/{denial}")
    elif action is None or reference is None:
        raise click.UsageError("give ACTION and OBJECT, such as read_data table/demo/hr.people, or --denial")
    else:
        body = _check(finder, action, reference, principal) | ({} if moment is None else {"at": moment})
        found = api.ask("/management/v1/access/explain", body)
    if form == "table":
        click.echo("\n".join(map(printable, explanation_lines(found.get("explanation", found)))))
    else:
        print_object(form, found)


def _check(finder: Finder, action: str, reference: Reference, principal: Reference | None) -> dict[str, Any]:
    """Return the body of a question."""
    from gateway.apply.references import object_of

    [(kind, fields)] = object_of(finder, finder.find(reference)).items()
    identity = {} if principal is None else {"identity": principal_of(finder, principal)}
    return {"operation": {kind: {"action": action, **fields}}, **identity}


def explanation_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show an explanation."""
    yield found.get("summary") or f"{_party(found['principal'])}: {found['decision']}"
    yield f"decision: {found['decision']}"
    relationships = found["relationships"]
    for witness in relationships.get("witnesses", ()):
        yield "because:"
        yield from (f"  - {_fact(fact)}" for fact in witness["facts"])
    if relationships.get("another-grant"):
        yield "because: grants that you may not read"
    for repair in relationships.get("repairs", ()):
        grants = (
            f"{each['privilege']} on {_party(each['object'])} to {_party(each['principal'])}"
            for each in repair["grants"]
        )
        yield f"would be allowed with: {' and '.join(grants)}"
    policies = found.get("policies", {})
    yield from (f"guardrail: {each['message']} ({each['code']})" for each in policies.get("reasons", ()))
    yield from (f"depends on: {each}" for each in policies.get("depends-on", ()))
    yield from (f"data policy: {each['name']}" for each in found.get("data-policies", ()))
    yield from (f"also blocked by: {each}" for each in found.get("blocked-by", ()))
    if found.get("until"):
        yield f"until: {found['until']}"


def _party(party: Mapping[str, str]) -> str:
    return f"{party['type'].replace('_', '-')}/{party.get('name') or party['id']}"


def _fact(fact: Mapping[str, Any]) -> str:
    grants = ", ".join(
        f"by {each['granted-by']} at {each['granted-at']}"
        + (f", reason: {each['reason']}" if each.get("reason") else "")
        for each in fact.get("grants", ())
    )
    return f"{_party(fact['subject'])} {fact['relation']} {_party(fact['object'])}" + (f" ({grants})" if grants else "")
