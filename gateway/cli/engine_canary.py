# SPDX-License-Identifier: Apache-2.0
"""Create the canary of a probe as an Iceberg table, restrict it for the test user, and drop it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import click

from gateway.cli.management import Management, Warehouse, printable

_READABLE: Final = ("shown", "masked", "kept")
_REASON: Final = "probe of an engine"
_POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "mask": {"kind": "mask", "action": "show-last-4", "columns": [{"name": "masked"}]},
    "filter": {
        "kind": "row-filter",
        "test": {"type": "compare", "operator": "eq", "column": {"name": "kept"}, "value": True},
    },
}


@contextmanager
def canary(api: Management, warehouse: Warehouse, challenge: Mapping[str, Any], subject: str) -> Iterator[str]:
    """Create the canary for the block, and drop it with its files. Yield its name, `namespace.table`.

    `subject` may not read the column `hidden`. Two data policies mask the column `masked` and filter the rows for it.
    The control user of the challenge, if any, may read everything. Without PyIceberg, or if the table cannot be created
    or dropped, the command ends with a message.
    """
    try:
        import pyarrow
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, RESTError
    except ImportError:
        raise click.ClickException(
            "this command needs PyIceberg with PyArrow: pip install 'lakegate[reader]'"
        ) from None
    rows: list[dict[str, Any]] = challenge["rows"]
    data = pyarrow.table({name: [row[name] for row in rows] for name in (*_READABLE, "hidden")})
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
            id = str(table.metadata.table_uuid)
            _grant(api, warehouse, id, challenge.get("control"), subject)
            with ExitStack() as policies:
                for kind, definition in _POLICIES.items():
                    policies.enter_context(_policy(api, warehouse, id, f"{name}_{kind}", definition, subject))
                yield f"{namespace}.{name}"
        finally:
            catalog.purge_table((namespace, name))
    except RESTError as error:
        raise click.ClickException(
            f"the canary {namespace}.{name} could not be used: {printable(str(error))}"
        ) from None


def _grant(api: Management, warehouse: Warehouse, table: str, control: str | None, subject: str) -> None:
    on = f"/warehouse/{warehouse.id}/table/{table}"
    for column in _READABLE:
        api.send("POST", f"{on}/columns/{column}/grants", body={"writes": [_granted("select", subject)]})
    if control is not None:
        api.send("POST", f"{on}/grants", body={"writes": [_granted("select", control)]})


@contextmanager
def _policy(
    api: Management, warehouse: Warehouse, table: str, name: str, definition: Mapping[str, Any], subject: str
) -> Iterator[None]:
    """Restrict `subject` on the table by a data policy during the block. Other principals are not restricted."""
    body = {"name": name, "definition": definition, "applies-to": "subjects"}
    path = f"/data-policy/{api.send('POST', '/data-policy', body=body).json()['id']}"
    try:
        api.send("POST", f"{path}/grants", body={"writes": [_granted("subject", subject)]})
        bound = {"type": "table", "id": table, "warehouse-id": warehouse.id}
        api.send("POST", f"{path}/bindings", body={"add": [bound]})
        yield
    finally:
        api.send("DELETE", path, query={"force": "true"})


def _granted(privilege: str, user: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": user}, "reason": _REASON}
