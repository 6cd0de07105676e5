# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate data-policy preview`` and ``view``, about the rows and values that a user may see.

`preview` prints the rows of a table as a user would see them under data policies that the caller owns. It reads the
table with the caller's rights, and applies the restrictions of the user, which the gateway returns to the owner of the
policies. So the caller needs no right to act for the user, and sees no row or value that it could not read itself.
`view` shows no data: it prints a SELECT statement that returns these rows and values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from gateway.cli.common import trust
from gateway.cli.management import Management, printable, warehouse_named, with_api

if TYPE_CHECKING:
    from gateway.obligations.compilers.sql import Dialect
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
    """Load the table with the caller's rights. A refusal ends the command with its message."""
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
    """Return the table with the restrictions of the user applied."""
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
    """Return a value that JSON does not support as text: bytes in hexadecimal, dates and times in ISO 8601."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@click.command()
@click.option("--warehouse", required=True, help="Name of the warehouse.")
@click.option(
    "--table", required=True, help="The table: NAMESPACE.TABLE, with a dot between the levels of a namespace."
)
@click.option("--as", "principal", required=True, help="Id of the user, such as oidc~ann.")
@click.option(
    "--dialect", type=click.Choice(["duckdb", "spark", "trino"]), required=True, help="The engine that runs the text."
)
@click.option("--source", help="The table in SQL of that engine, or a subquery. Default: the quoted name of the table.")
@with_api(project=False)
def view(warehouse: str, table: str, principal: str, dialect: str, source: str | None, api: Management) -> None:
    """Print a SELECT with the rows and values of a table that a user may see now.

    The caller must own the data policies that restrict the user. Roles that the user gets from groups in the own token
    do not count. The text does not follow later changes of policies.
    """
    click.echo(_view_text(api, warehouse, principal, tuple(table.split(".")), _dialect(dialect), source))


def _dialect(name: str) -> Dialect:
    from gateway.obligations.compilers import duckdb, spark, trino

    return {"duckdb": duckdb.DIALECT, "spark": spark.DIALECT, "trino": trino.DIALECT}[name]


def _view_text(
    api: Management, warehouse: str, principal: str, table: tuple[str, ...], dialect: Dialect, source: str | None
) -> str:
    """Load the schema and return the text of the view. A refusal ends the command with its message."""
    import msgspec

    from gateway.obligations.compilers.sql import view_text
    from gateway.obligations.projections import RestrictionNotExpressible
    from lakegate.spark.catalog_client import CatalogClient
    from lakegate.spark.config import RestCatalog
    from lakegate.spark.errors import PipelineError
    from lakegate.spark.restrictions import restrictions_of

    seen = preview_of(api, warehouse, table, principal)
    catalog = RestCatalog(uri=f"{api.base}/catalog", warehouse=warehouse, token=api.token)
    client = CatalogClient(catalog, trust().context)
    try:
        own = client.load(table, api.token)
        loaded = msgspec.structs.replace(
            own, read_restrictions=msgspec.Raw(msgspec.json.encode(seen.read_restrictions))
        )
        found = restrictions_of(loaded)
        named = source or ".".join(map(dialect.quote, table))
        return view_text(loaded.metadata.schema.fields, found.row_filter, found.masks, named, dialect)
    except (PipelineError, RestrictionNotExpressible) as error:
        raise click.ClickException(printable(str(error))) from None
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class Preview:
    """The `read-restrictions` of a user as JSON, and the metadata file to whose schemas they refer."""

    read_restrictions: Any
    metadata_location: str


def preview_of(management: Management, warehouse: str, table: tuple[str, ...], principal: str) -> Preview:
    """Return the preview for a user. The command ends if the gateway refuses, or if the user may not read the table."""
    if not all(principal.partition("~")):
        raise click.UsageError("--as must be the id of a user, such as oidc~ann")
    if len(table) < 2 or not all(table):
        raise click.UsageError("--table must have the form NAMESPACE.TABLE")
    id = warehouse_named(management, f"warehouse/{warehouse}", warehouse).id
    path = f"/warehouse/{id}/table/{_id_of(management, id, table)}/data-policies/preview"
    answer = management.send("GET", path, query={"principalUser": principal}).json()
    if not answer["allowed"]:
        raise click.ClickException(f"{printable(principal)} may not read {printable('.'.join(table))}")
    return Preview(answer.get("read-restrictions", {}), answer["metadata-location"])


def _id_of(management: Management, warehouse_id: str, table: tuple[str, ...]) -> str:
    """Return the id of a table. If the caller cannot see the table, the command ends."""
    namespace = quote("\x1f".join(table[:-1]), safe="")
    query = {"returnUuids": "true"}
    while True:
        path = f"/v1/{warehouse_id}/namespaces/{namespace}/tables"
        page = management.send("GET", path, query=query, below="/catalog").json()
        for each, id in zip(page["identifiers"], page["table-uuids"], strict=True):
            if each["name"].casefold() == table[-1].casefold():
                return str(id)
        if not page.get("next-page-token"):
            raise click.ClickException(f"you see no table {printable('.'.join(table))}. Check its name")
        query["pageToken"] = page["next-page-token"]
