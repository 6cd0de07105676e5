# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate data-policy view``: print the SQL text of a view with the restrictions of one user.

The caller owns the data policies that restrict the user, and may describe the table. It sees no data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gateway.cli.common import trust
from gateway.cli.management import Management, printable, with_api
from gateway.cli.previewed_table import preview_of

if TYPE_CHECKING:
    from gateway.obligations.compilers.sql import Dialect


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
    click.echo(_text(api, warehouse, principal, tuple(table.split(".")), _dialect(dialect), source))


def _dialect(name: str) -> Dialect:
    from gateway.obligations.compilers import duckdb, spark, trino

    return {"duckdb": duckdb.DIALECT, "spark": spark.DIALECT, "trino": trino.DIALECT}[name]


def _text(
    api: Management, warehouse: str, principal: str, table: tuple[str, ...], dialect: Dialect, source: str | None
) -> str:
    """Load the schema and return the text. A refusal ends the command with its message."""
    import msgspec

    from gateway.obligations.columns import RestrictionNotExpressible
    from gateway.obligations.compilers.masks import view_text
    from gateway.pipeline.catalog_client import CatalogClient
    from gateway.pipeline.config import RestCatalog
    from gateway.pipeline.errors import PipelineError
    from gateway.pipeline.restrictions import restrictions_of

    seen = preview_of(api, warehouse, table, principal)
    catalog = RestCatalog(uri=f"{api.base}/catalog", warehouse=warehouse, token=api.token)
    client = CatalogClient(catalog, trust().context)
    try:
        own = client.load(table, api.token)
        loaded = msgspec.structs.replace(own, read_restrictions=seen.read_restrictions)
        found = restrictions_of(loaded)
        named = source or ".".join(map(dialect.quote, table))
        return view_text(loaded.metadata.schema.fields, found.row_filter, found.masks, named, dialect)
    except (PipelineError, RestrictionNotExpressible) as error:
        raise click.ClickException(printable(str(error))) from None
    finally:
        client.close()
