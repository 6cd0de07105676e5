# SPDX-License-Identifier: Apache-2.0
"""The requests that Trino 476 sends to the bridge for a statement, in their order, without Trino.

`tests/e2e/test_trino_data_policies.py` counts them on a real Trino.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.bench.load import Request
from tests.support.stack.trino_bridge import KEY

NAMESPACE = "bridged"
WIDE = "wide"
#: The masked columns of the table `WIDE`. They are texts (`schema_of`).
MASKED = range(2, 202, 2)
#: The columns that Trino adds to each table.
_OWN = (
    ("$partition", "varchar"),
    ("$path", "varchar"),
    ("$file_modified_time", "timestamp(3) with time zone"),
)
_OF_TABLES = ("table_catalog", "table_schema", "table_name", "table_type", "table_comment")


@dataclass(frozen=True, slots=True)
class Prepared:
    """One POST request."""

    url: str
    body: str
    token: str = ""

    def request(self) -> Request:
        """Return it as the generator sends it."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return Request(method="POST", url=self.url, headers=headers, body=self.body)

    def result(self) -> Any:
        """Send it once. Return the result of the bridge. Raises httpx.HTTPError."""
        sent = self.request()
        answer = httpx.post(sent.url, content=sent.body, headers=sent.headers, trust_env=False, timeout=120)
        return answer.raise_for_status().json()["result"]


def schema_of(columns: int) -> dict[str, Any]:
    """Return a schema whose odd columns are numbers, and the even ones texts."""
    fields = [
        {"id": n, "name": f"column_{n}", "type": "long" if n % 2 else "string", "required": False}
        for n in range(1, columns + 1)
    ]
    return {"type": "struct", "fields": fields}


def read_checks(warehouse: str, user: str, count: int, token: str, base: str) -> Prepared:
    """Return the gateway's request about the columns of so many tables, as the bridge would send it for one table."""
    checks = [
        {
            "id": str(number),
            "identity": {"user": user},
            "operation": {
                "table": {
                    "warehouse-id": warehouse,
                    "namespace": [NAMESPACE],
                    "table": f"t{number:05}",
                    "action": {"action": "read_columns"},
                    "restrictions": "trino",
                }
            },
        }
        for number in range(count)
    ]
    body = json.dumps({"delegated": True, "checks": checks})
    return Prepared(f"{base}/management/v1/action/batch-check", body, token)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of Trino about one catalog for a user."""

    url: str
    user: str
    catalog: str

    def _sent(self, entry: str, operation: str, **more: Any) -> Prepared:
        context = {"identity": {"user": self.user, "groups": []}, "softwareStack": {"trinoVersion": "476"}}
        body = json.dumps({"input": {"context": context, "action": {"operation": operation, **more}}})
        return Prepared(f"{self.url}/v1/data/trino/{entry}?key={KEY}", body)

    def _table(self, name: str, columns: Iterable[str] | None = None) -> dict[str, Any]:
        more = {} if columns is None else {"columns": list(columns)}
        return {"table": {"catalogName": self.catalog, "schemaName": NAMESPACE, "tableName": name, **more}}

    def row_filters(self, table: str) -> Prepared:
        """Return the request for the row filters of a table."""
        return self._sent("row_filters", "GetRowFilters", resource=self._table(table))

    def masks(self, table: str, count: int) -> Prepared:
        """Return the request for the masks of all columns of a table: those of the schema, and those of Trino."""
        columns = [(f"column_{n}", "bigint" if n % 2 else "varchar") for n in range(1, count + 1)]
        return self._masks(NAMESPACE, table, [*columns, *_OWN])

    def _masks(self, schema: str, table: str, columns: Sequence[tuple[str, str]]) -> Prepared:
        of_table = {"catalogName": self.catalog, "schemaName": schema, "tableName": table}
        things = [{"column": {**of_table, "columnName": name, "columnType": kind}} for name, kind in columns]
        return self._sent("batch_column_masks", "GetColumnMask", filterResources=things)

    def filter_tables(self, count: int) -> Prepared:
        """Return the request that selects the visible ones of so many tables."""
        return self._sent("batch", "FilterTables", filterResources=[self._table(f"t{n:05}") for n in range(count)])

    def filter_columns(self, table: str, count: int) -> Prepared:
        """Return the request that selects the readable ones of so many columns."""
        things = [self._table(table, (f"column_{n}" for n in range(1, count + 1)))]
        return self._sent("batch", "FilterColumns", filterResources=things)

    def _access(self) -> Prepared:
        return self._sent("allow", "AccessCatalog", resource={"catalog": {"name": self.catalog}})

    def _reads(self, table: str, columns: Iterable[str]) -> list[Prepared]:
        return [self._access(), self._sent("allow", "SelectFromColumns", resource=self._table(table, columns))]

    def select(self, table: str, count: int, masked: Iterable[int]) -> list[Prepared]:
        """Return the requests of a `SELECT` of the first column. Trino checks each of the `masked` columns alone."""
        each = [request for n in masked for request in self._reads(table, [f"column_{n}"])]
        return [
            self._sent("allow", "ExecuteQuery"),
            self.masks(table, count),
            *each,
            self.row_filters(table),
            *self._reads(table, ["column_1"]),
        ]

    def show_tables(self, count: int) -> list[Prepared]:
        """Return the requests of `SHOW TABLES` in a schema of so many tables."""
        information = {"catalogName": self.catalog, "schemaName": "information_schema", "tableName": "tables"}
        read = {"table": {**information, "columns": ["table_schema", "table_name"]}}
        catalog = {"catalog": {"name": self.catalog}}
        schema = {"schema": {"catalogName": self.catalog, "schemaName": NAMESPACE}}
        return [
            self._sent("allow", "ExecuteQuery"),
            self._access(),
            self._sent("allow", "ShowTables", resource=schema),
            self._masks("information_schema", "tables", [(name, "varchar") for name in _OF_TABLES]),
            self._sent("row_filters", "GetRowFilters", resource={"table": information}),
            self._access(),
            self._sent("allow", "SelectFromColumns", resource=read),
            self._sent("batch", "FilterCatalogs", filterResources=[catalog]),
            self.filter_tables(count),
        ]
