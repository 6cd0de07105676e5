# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate data-policy preview``: print rows of a table as a user sees them through trusted engines.

The caller reads the table with its own rights, and applies the restrictions of the user, which the gateway gives to the
owner of the policies. So it needs no right to act for the user, and sees no row or value that it could not read itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gateway.cli.management import Management, printable, with_api
from gateway.cli.previewed_table import Preview, preview_of

if TYPE_CHECKING:
    from lakegate.reader import RestrictedTable

UNKNOWN = "Note: claims and groups in the user's own token are unknown here. Tests with claims are false."
"""Printed to the standard error after each answer about a user that is only named."""
_ROWS = 10
_MOST_ROWS = 1000


@click.command()
@click.option("--warehouse", required=True, help="Name of the warehouse.")
@click.option(
    "--table", required=True, help="The table: NAMESPACE.TABLE, with a dot between the levels of a namespace."
)
@click.option("--as", "principal", required=True, help="Id of the user, such as oidc~ann.")
@click.option("--column", "columns", multiple=True, help="A column to read. May be repeated. Default: all columns.")
@click.option("--limit", type=click.IntRange(1, _MOST_ROWS), default=_ROWS, show_default=True, help="Number of rows.")
@with_api(project=False)
def preview(warehouse: str, table: str, principal: str, columns: tuple[str, ...], limit: int, api: Management) -> None:
    """Print rows of a table as a user reads them, one JSON object in a line.

    The caller must own the data policies that restrict the user, and must be able to read the table without
    restrictions. Roles by groups in the user's own token do not count, and tests with claims of that token are false.
    """
    seen = preview_of(api, warehouse, tuple(table.split(".")), principal)
    for row in _rows(_as_user(seen, _opened(api, warehouse, table)), columns, limit):
        click.echo(row)
    click.echo(UNKNOWN, err=True)


def _opened(api: Management, warehouse: str, table: str) -> RestrictedTable:
    """Load the table as the caller. A refusal ends the command with its message."""
    try:
        from lakegate.reader import LoadFailed, Reader, RestrictionNotSupported
    except ImportError as missing:
        raise click.ClickException(
            f"the package {missing.name} is not installed; the preview needs the extra: pip install 'lakegate[reader]'"
        ) from None
    try:
        return Reader(api.base, warehouse, api.token).table(table)
    except (LoadFailed, RestrictionNotSupported, ValueError) as error:
        raise click.ClickException(printable(str(error))) from None


def _as_user(seen: Preview, opened: RestrictedTable) -> RestrictedTable:
    """Return the table with the restrictions of the user."""
    from lakegate.reader import ReadFailed, RestrictionNotSupported, decode

    try:
        return opened.restricted_by(decode(json.dumps(seen.read_restrictions)), seen.metadata_location)
    except (ReadFailed, RestrictionNotSupported) as error:
        raise click.ClickException(printable(str(error))) from None


def _rows(opened: RestrictedTable, columns: tuple[str, ...], limit: int) -> list[str]:
    """Return the rows as JSON. A refusal ends the command with its message."""
    from lakegate.reader import ReadFailed, RestrictionNotSupported

    try:
        found = opened.to_arrow(columns or None, limit=limit)
    except (ReadFailed, RestrictionNotSupported, ValueError) as error:
        raise click.ClickException(printable(str(error))) from None
    return [json.dumps(row, default=_text) for row in found.to_pylist()]


def _text(value: object) -> str:
    """Return values that JSON lacks as text: bytes in hexadecimal, dates and times in ISO 8601."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
