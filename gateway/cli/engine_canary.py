# SPDX-License-Identifier: Apache-2.0
"""Create the canary of a probe as an Iceberg table, grant its one readable column, and drop it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import click

from gateway.cli.management import Management, Warehouse, printable


@contextmanager
def canary(api: Management, warehouse: Warehouse, challenge: Mapping[str, Any], subject: str) -> Iterator[str]:
    """Create the canary for the block, and drop it with its files. Yield its name, `namespace.table`.

    `subject` may read the column `shown` alone. The engine becomes an enforcer of this table; the probe decides if that
    counts. Without PyIceberg, or if the table cannot be created or dropped, the command ends with a message.
    """
    try:
        import pyarrow
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, RESTError
    except ImportError:
        raise click.ClickException(
            "this command needs PyIceberg with PyArrow: pip install 'lakegate[reader]'"
        ) from None
    rows: list[dict[str, str]] = challenge["rows"]
    data = pyarrow.table({name: [row[name] for row in rows] for name in ("shown", "hidden")})
    [namespace], name = challenge["namespace"], challenge["table"]
    properties = {"uri": f"{api.base}/catalog", "warehouse": warehouse.name, "token": api.token}
    if api.project is not None:
        properties["header.X-Project-ID"] = api.project
    try:
        catalog = load_catalog("probe", type="rest", **properties)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(namespace)
        table = catalog.create_table((namespace, name), data.schema)
        try:
            table.append(data)
            _grant(api, warehouse, str(table.metadata.table_uuid), challenge["engine"], subject)
            yield f"{namespace}.{name}"
        finally:
            catalog.purge_table((namespace, name))
    except RESTError as error:
        raise click.ClickException(
            f"the canary {namespace}.{name} could not be used: {printable(str(error))}"
        ) from None


def _grant(api: Management, warehouse: Warehouse, table: str, engine: str, subject: str) -> None:
    on = f"/warehouse/{warehouse.id}/table/{table}"
    reading = {"privilege": "select", "principal": {"user": subject}, "reason": "probe of an engine"}
    api.send("POST", f"{on}/columns/shown/grants", body={"writes": [reading]})
    enforcing = {"privilege": "enforcer", "principal": {"user": engine}, "reason": "probe of an engine"}
    api.send("POST", f"{on}/grants", body={"writes": [enforcing]})
