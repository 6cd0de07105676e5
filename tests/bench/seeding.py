# SPDX-License-Identifier: Apache-2.0
"""Create data for measurements: tables with a history, and a namespace of many tables with few readers.

Ten thousand creations over HTTP take minutes. So the gateway creates one table and one grant for each reader, and equal
rows and tuples for the others are written to PostgreSQL and OpenFGA.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import httpx

from lakegate.local.ready import Ready

COLUMNS = 30
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": n, "name": f"column_{n}", "type": "long" if n % 2 else "string", "required": False}
        for n in range(1, COLUMNS + 1)
    ],
}
_TUPLES = 100  # The limit of tuples in one write to OpenFGA.


def with_snapshots(client: httpx.Client, tables: str, name: str, count: int) -> dict[str, Any]:
    """Create a table of `count` snapshots as engines write them, about 750 bytes each. Return its metadata."""
    made = client.post(tables, json={"name": name, "schema": SCHEMA}).raise_for_status().json()["metadata"]
    for first in range(1, count + 1, 500):
        numbers = range(first, min(first + 500, count + 1))
        updates = [{"action": "add-snapshot", "snapshot": _snapshot(made, number)} for number in numbers]
        main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": _id(numbers[-1])}
        body = {"requirements": [], "updates": [*updates, main]}
        answer = client.post(f"{tables}/{name}", json=body).raise_for_status().json()
    metadata: dict[str, Any] = answer["metadata"]
    return metadata


def _id(number: int) -> int:
    return 6_000_000_000_000_000_000 + number * 7_919_000_017


def _snapshot(table: dict[str, Any], number: int) -> dict[str, Any]:
    parent = {"parent-snapshot-id": _id(number - 1)} if number > 1 else {}
    counts = {f"total-{of}": str(number * 1_000) for of in ("records", "files-size", "data-files", "delete-files")}
    summary = {
        **{"operation": "append", "added-data-files": "1", "added-records": "1000", "added-files-size": "123456"},
        **{"changed-partition-count": "1", "total-position-deletes": "0", "total-equality-deletes": "0", **counts},
        **{"engine-name": "spark", "engine-version": "4.1.4", "app-id": "local-1700000000000"},
        "iceberg-version": "Apache Iceberg 1.12.0 (commit 0000000000000000000000000000000000000000)",
    }
    return {
        "snapshot-id": _id(number),
        **parent,
        "sequence-number": number,
        "timestamp-ms": table["last-updated-ms"] + number,
        "summary": summary,
        "manifest-list": f"{table['location']}/metadata/snap-{_id(number)}-1-0f0e0d0c-0b0a-4908-8706-050403020100.avro",
        "schema-id": 0,
    }


class ManyTables:
    """A namespace of `count` tables, of which each reader may select some."""

    def __init__(self, stack: Ready, client: httpx.Client, namespaces: str, *, count: int) -> None:
        self._stack = stack
        self._client = client
        self._namespaces = namespaces
        self._count = count

    def make(self, name: str, readers: dict[str, int]) -> None:
        """Create the namespace `name`; each of the `readers`, by user name, sees the given number of its tables."""
        self._client.post(self._namespaces, json={"namespace": [name]}).raise_for_status()
        tables = f"{self._namespaces}/{name}/tables"
        self._client.post(tables, json={"name": "t00000", "schema": SCHEMA}).raise_for_status()
        listed = self._client.get(tables, params={"returnUuids": "true"}).raise_for_status().json()
        asyncio.run(self._fill(listed["table-uuids"][0], readers))

    async def _fill(self, first: str, readers: dict[str, int]) -> None:
        warehouse = self._namespaces.rsplit("/", 2)[-2]
        for reader in readers:
            path = f"{self._stack.management_uri}/v1/permissions/warehouse/{warehouse}/table/{first}/assignments"
            body = {"writes": [{"type": "select", "user": self._stack.users[reader].id}]}
            self._client.post(path, json=body).raise_for_status()
        connection = await asyncpg.connect(self._stack.postgres)
        try:
            rows = await connection.fetch(_TABLES, first, self._count - 1)
            namespace, ids = rows[0]["namespace_id"], [str(row["id"]) for row in rows]
            written = [{"user": f"namespace:{namespace}", "relation": "parent", "object": f"table:{id}"} for id in ids]
            for reader, sees in readers.items():
                await connection.execute(_GRANTS, first, self._stack.users[reader].id, ids[: sees - 1])
                user = await self._user_in_tuples(first, reader)
                written += [{"user": user, "relation": "select", "object": f"table:{id}"} for id in ids[: sees - 1]]
            await connection.execute("analyze")
        finally:
            await connection.close()
        await self._write(written)

    async def _user_in_tuples(self, first: str, reader: str) -> str:
        """Return the reader's user in OpenFGA, from the tuple that the gateway wrote."""
        subject = self._stack.users[reader].id.partition("~")[2]
        async with self._openfga() as openfga:
            requested = {"tuple_key": {"relation": "select", "object": f"table:{first}"}}
            found = (await openfga.post("/read", json=requested)).raise_for_status().json()["tuples"]
        users: list[str] = [each["key"]["user"] for each in found]
        return next(user for user in users if subject in user)

    async def _write(self, tuples: list[dict[str, str]]) -> None:
        slots = asyncio.Semaphore(4)
        async with self._openfga() as openfga:

            async def write(some: list[dict[str, str]]) -> None:
                async with slots:
                    (await openfga.post("/write", json={"writes": {"tuple_keys": some}})).raise_for_status()

            await asyncio.gather(*(write(tuples[at : at + _TUPLES]) for at in range(0, len(tuples), _TUPLES)))

    def _openfga(self) -> httpx.AsyncClient:
        access = self._stack.openfga
        return httpx.AsyncClient(
            base_url=f"{access.url}/stores/{access.store_id}",
            headers={"Authorization": f"Bearer {access.token}"},
            trust_env=False,
            timeout=60,
        )


_TABLES = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
                        metadata_location, metadata, metadata_excerpt, metadata_excerpt_of)
    select gen_random_uuid(), t.warehouse_id, t.namespace_id, t.kind, 't' || lpad(n::text, 5, '0'),
           't' || lpad(n::text, 5, '0'), gen_random_uuid(), t.location || '-' || n,
           rtrim(t.location_key, '/') || '-' || n || '/', t.metadata_location, t.metadata,
           t.metadata_excerpt, t.metadata_excerpt_of
    from tables t, generate_series(1, $2) n where t.id = $1::text::uuid
    returning id, namespace_id
"""

_GRANTS = """
    insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by)
    select gen_random_uuid(), g.privilege, g.principal_type, g.principal_id, g.object_type, o.id, g.granted_by
    from grants g, unnest($3::text[]) o(id)
    where g.object_type = 'table' and g.object_id = $1 and g.principal_id = $2
"""
