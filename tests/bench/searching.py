# SPDX-License-Identifier: Apache-2.0
"""Data for searches and batch checks in `make bench`: a warehouse full of tables with realistic names."""

from __future__ import annotations

import asyncio
import json

import asyncpg

from tests.bench.seeding import SCHEMA, ManyTables

#: The search term: two of the words, each with a typing error.
TEXT = "custmer ordrs"

# fmt: off
WORDS = [
    "customer", "orders", "invoices", "payments", "shipments", "products", "suppliers", "returns", "warehouse",
    "stock", "ledger", "accounts", "sessions", "clicks", "events", "devices", "sensors", "readings", "flights",
    "airports", "routes", "weather", "claims", "policies", "employees", "salaries", "budget", "forecast",
    "campaigns", "leads", "contracts", "tickets", "surveys", "ratings", "reviews", "coupons", "baskets", "refunds",
    "taxes", "archive",
]
# fmt: on

_TABLES = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
                        metadata_location, metadata)
    select gen_random_uuid(), t.warehouse_id, t.namespace_id, t.kind, named.name, named.name, gen_random_uuid(),
           t.location || '-' || n, rtrim(t.location_key, '/') || '-' || n || '/', t.metadata_location, t.metadata
    from tables t, generate_series(1, $2) n,
        lateral (select ($3::text[])[n % 40 + 1] || '_' || ($3::text[])[n / 40 % 40 + 1] || '_' || n as name) named
    where t.id = $1::text::uuid
    returning id, namespace_id
"""


class SearchedTables(ManyTables):
    """Two namespaces with half of the tables each.

    One reader describes the first, another may select from three tables of the second.
    """

    def make_for(self, describes: str, selects: str) -> list[str]:
        """Create them. Return the ids of a thousand tables of the first namespace."""
        warehouse = self._namespaces.rsplit("/", 2)[-2]
        permissions = f"{self._stack.management_uri}/v1/permissions"
        found: list[str] = []
        for name in ("found", "hidden"):
            made = self._client.post(self._namespaces, json={"namespace": [name]}).raise_for_status().json()
            tables = f"{self._namespaces}/{name}/tables"
            self._client.post(tables, json={"name": "first", "schema": SCHEMA}).raise_for_status()
            listed = self._client.get(tables, params={"returnUuids": "true"}).raise_for_status().json()
            ids = asyncio.run(self._spread(listed["table-uuids"][0]))
            if name == "found":
                found = ids[:1000]
                path = f"{permissions}/namespace/{made['properties']['namespace_id']}/assignments"
                given = [("describe", describes, path)]
            else:
                on = f"{permissions}/warehouse/{warehouse}/table"
                given = [("select", selects, f"{on}/{id}/assignments") for id in ids[:3]]
            for privilege, reader, path in given:
                body = {"writes": [{"type": privilege, "user": self._stack.users[reader].id}]}
                self._client.post(path, json=body).raise_for_status()
        return found

    async def _spread(self, first: str) -> list[str]:
        connection = await asyncpg.connect(self._stack.postgres)
        try:
            rows = await connection.fetch(_TABLES, first, self._count // 2 - 1, WORDS)
            await connection.execute("vacuum analyze tables")
        finally:
            await connection.close()
        ids = [str(row["id"]) for row in rows]
        parent = f"namespace:{rows[0]['namespace_id']}"
        await self._write([{"user": parent, "relation": "parent", "object": f"table:{id}"} for id in ids])
        return ids


def questions(warehouse: str, tables: list[str]) -> str:
    """Return the body of a batch check of the caller's right to read the metadata of each table."""
    action = {"action": {"action": "get_metadata"}}
    checks = [{"operation": {"table": {"warehouse-id": warehouse, "table-id": id, **action}}} for id in tables]
    return json.dumps({"checks": checks})
