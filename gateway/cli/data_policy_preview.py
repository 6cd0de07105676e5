# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate data-policy preview``: print rows of a table as a user sees them through trusted engines.

The caller is a trusted service: it needs `delegate` and `enforcer`, and acts for the user by token exchange. So the
gateway decides and records the preview as a read of the user through the service.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gateway.cli.management import Management, at_a_gateway, printable

if TYPE_CHECKING:
    from lakegate.reader import Reader

UNKNOWN = "Note: claims and groups in the user's own token are unknown here. Tests with claims are false."
"""Printed to the standard error after each answer about a user that is only named."""
_ROWS = 10
_MOST_ROWS = 1000


@click.command()
@click.option("--warehouse", required=True, help="Name of the warehouse.")
@click.option(
    "--table", required=True, help="The table: NAMESPACE.TABLE, with a dot between the levels of a namespace."
)
@click.option(
    "--as", "principal", required=True, help="Id of the user, such as oidc~ann, at the provider of the caller."
)
@click.option("--column", "columns", multiple=True, help="A column to read. May be repeated. Default: all columns.")
@click.option("--limit", type=click.IntRange(1, _MOST_ROWS), default=_ROWS, show_default=True, help="Number of rows.")
@at_a_gateway
def preview(
    warehouse: str,
    table: str,
    principal: str,
    columns: tuple[str, ...],
    limit: int,
    gateway: str | None,
    token: str | None,
) -> None:
    """Print rows of a table as a user reads them, one JSON object in a line.

    The caller's identity needs the privileges `delegate` and `enforcer` on the warehouse. The user is only named: roles
    that the user gets from groups in the own token do not count, and tests with claims of that token are false.
    """
    management = Management.of(gateway, token)
    reader = _reader(management, warehouse, subject_of(management, principal))
    for row in _rows(reader, table, columns, limit):
        click.echo(row)
    click.echo(UNKNOWN, err=True)


def subject_of(management: Management, principal: str) -> str:
    """Return the user's subject. A user of another provider than the caller's ends the command."""
    provider, separator, subject = principal.partition("~")
    if not separator or not subject:
        raise click.UsageError("--as must be the id of a user, such as oidc~ann")
    caller = str(management.send("GET", "/whoami").json()["id"])
    if caller.partition("~")[0] != provider:
        raise click.ClickException(
            f"the user must belong to the identity provider of the caller ({printable(caller)}): token exchange names "
            "users by their subject at that provider"
        )
    return subject


def _reader(management: Management, warehouse: str, subject: str) -> Reader:
    try:
        from lakegate.reader import Reader
    except ImportError as missing:
        raise click.ClickException(
            f"the package {missing.name} is not installed; the preview needs the extra: pip install 'lakegate[reader]'"
        ) from None
    return Reader(management.base, warehouse, management.token).as_named(subject)


def _rows(reader: Reader, table: str, columns: tuple[str, ...], limit: int) -> list[str]:
    """Return the rows as JSON. A refusal ends the command with its message."""
    from lakegate.reader import ExchangeFailed, LoadFailed, ReadFailed, RestrictionNotSupported

    try:
        found = reader.table(table).to_arrow(columns or None, limit=limit)
    except (ExchangeFailed, LoadFailed, ReadFailed, RestrictionNotSupported, ValueError) as error:
        raise click.ClickException(printable(str(error))) from None
    return [json.dumps(row, default=_text) for row in found.to_pylist()]


def _text(value: object) -> str:
    """Return values that JSON lacks as text: bytes in hexadecimal, dates and times in ISO 8601."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
