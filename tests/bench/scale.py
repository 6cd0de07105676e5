# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.scale`: compare the cost of requests on a large catalog with that on a small one.

Two stacks with four worker processes each get slices of the same load in turns. One has the tables of the requests
only. The other has `BENCH_TABLES` more tables in namespaces of a thousand, `BENCH_USERS` users in a hundred roles, and
`BENCH_GRANTS` grants on single tables. Filling it takes minutes: all tuples are written to OpenFGA.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import asyncpg
import httpx
from rich.console import Console

from gateway.fga.names import object_of, user_object
from tests.bench import catalogs
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.generator import Generator
from tests.bench.pairs import Comparison, Side, Slices, compared
from tests.bench.seeding import SCHEMA
from tests.bench.stacks import Running, groups_of, stack

_TABLES = int(os.environ.get("BENCH_TABLES", "100000"))
_USERS = int(os.environ.get("BENCH_USERS", "10000"))
_GRANTS = int(os.environ.get("BENCH_GRANTS", "1000000"))
_CONNECTIONS = tuple(map(int, os.environ.get("BENCH_CONNECTIONS", "8").split(",")))
_PAIRS = int(os.environ.get("BENCH_ROUNDS", "6"))
_IN_NAMESPACE = 1_000
_ROLES = 100
_AT_ONCE = 6
_IN_WRITE = 100
_WORKERS = {"LAKEGATE__WORKERS": "4"}
_NAMES = tuple(name for name in catalogs.NAMES if name != catalogs.LIST_1000)

_COPY_TABLES = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
                        metadata_location, metadata, metadata_excerpt, metadata_excerpt_of)
    select gen_random_uuid(), t.warehouse_id, t.namespace_id, t.kind, 't' || lpad(n::text, 5, '0'),
           't' || lpad(n::text, 5, '0'), gen_random_uuid(), t.location || '-' || n,
           rtrim(t.location_key, '/') || '-' || n || '/', t.metadata_location, t.metadata, t.metadata_excerpt,
           t.metadata_excerpt_of
    from tables t, generate_series(1, $2) n where t.id = $1::text::uuid
    returning id, namespace_id
"""
_ADD_USERS = """
    insert into users (id, name, user_type, last_updated_with)
    select 'oidc~scale' || n, 'Scale ' || n, 'human', 'update-endpoint' from generate_series(1, $1) n
"""
_ADD_GRANTS = """
    insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by)
    select gen_random_uuid(), g.privilege, 'user', g.principal, g.type, g.object, $5
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) g(privilege, principal, type, object)
"""

_Grant = tuple[str, str, str, str]
"""(privilege, user id, object type, object id)"""


class Large:
    """Fills the catalog of a running stack with rows, and writes their tuples to OpenFGA."""

    def __init__(self, running: Running, prepared: Prepared) -> None:
        self._ready = running.ready
        self._prepared = prepared

    async def fill(self) -> None:
        """Create tables, users, roles and grants."""
        connection = await asyncpg.connect(self._ready.postgres)
        try:
            tables = [id for number in range(_TABLES // _IN_NAMESPACE) for id in await self._tables(connection, number)]
            await connection.execute(_ADD_USERS, _USERS)
            users = [f"oidc~scale{number}" for number in range(1, _USERS + 1)]
            roles = [self._role(number) for number in range(_ROLES)]
            members = [("assignee", user, "role", roles[n % _ROLES]) for n, user in enumerate(users)]
            selects = [
                ("select", users[n * 7 % _USERS], "table", tables[(n // 10 + n % 10 * 9973) % len(tables)])
                for n in range(_GRANTS)
            ]
            for at in range(0, len(grants := list(dict.fromkeys([*members, *selects]))), 50_000):
                await self._grant(connection, grants[at : at + 50_000])
                print(f"  {min(at + 50_000, len(grants)):,} of {len(grants):,} grants", file=sys.stderr)
            await connection.execute("vacuum analyze")
        finally:
            await connection.close()

    async def _tables(self, connection: Any, number: int) -> list[str]:
        """Create a namespace with a thousand tables. Return their ids."""
        client, name = self._prepared.client, f"scale{number:03}"
        client.post(self._prepared.namespaces, json={"namespace": [name]}).raise_for_status()
        url = f"{self._prepared.namespaces}/{name}/tables"
        client.post(url, json={"name": "t00000", "schema": SCHEMA}).raise_for_status()
        (first,) = client.get(url, params={"returnUuids": "true"}).raise_for_status().json()["table-uuids"]
        rows = await connection.fetch(_COPY_TABLES, first, _IN_NAMESPACE - 1)
        parent = object_of("namespace", rows[0]["namespace_id"])
        await self._write([(parent, "parent", object_of("table", row["id"])) for row in rows])
        return [first, *(str(row["id"]) for row in rows)]

    def _role(self, number: int) -> str:
        url = f"{self._ready.management_uri}/v1/role"
        made = self._prepared.client.post(url, json={"name": f"scale role {number}"}).raise_for_status()
        return str(UUID(made.json()["id"]))

    async def _grant(self, connection: Any, grants: list[_Grant]) -> None:
        columns = [list(column) for column in zip(*grants, strict=True)]
        await connection.execute(_ADD_GRANTS, *columns, self._ready.users["admin"].id)
        await self._write([(user_object(user), privilege, object_of(type, id)) for privilege, user, type, id in grants])

    async def _write(self, tuples: list[tuple[str, str, str]]) -> None:
        access = self._ready.openfga
        slots = asyncio.Semaphore(_AT_ONCE)
        async with httpx.AsyncClient(
            base_url=f"{access.url}/stores/{access.store_id}",
            headers={"Authorization": f"Bearer {access.token}"},
            trust_env=False,
            timeout=60,
        ) as openfga:

            async def write(some: list[tuple[str, str, str]]) -> None:
                keys = [dict(zip(("user", "relation", "object"), each, strict=True)) for each in some]
                async with slots:
                    (await openfga.post("/write", json={"writes": {"tuple_keys": keys}})).raise_for_status()

            await asyncio.gather(*(write(tuples[at : at + _IN_WRITE]) for at in range(0, len(tuples), _IN_WRITE)))


def _prepared(running: Running) -> Prepared:
    ready = running.ready
    token = ready.users["admin"].token
    return Prepared(Catalog(name="lakegate", url=ready.catalog_uri, token=token, warehouse=ready.warehouse))


def main() -> None:
    """Start both stacks, fill one of them, measure, and print the table."""
    console = Console(width=170)
    with ExitStack() as held:
        runs = [held.enter_context(stack(settings=_WORKERS)) for _ in range(2)]
        catalogs_of = [_prepared(run) for run in runs]
        asyncio.run(Large(runs[0], catalogs_of[0]).fill())
        sent = [prepared.requests(_NAMES) for prepared in catalogs_of]
        large, small = (Side(name, groups_of(run.ready)) for name, run in zip(("large", "small"), runs, strict=True))
        generator = Generator()
        held.callback(generator.close)
        title = f"{_TABLES:,} tables, {_GRANTS:,} grants, {_USERS:,} users beside an empty catalog; 4 workers each"
        table = Comparison((large, small), title)
        plan = Slices(pairs=_PAIRS, seconds=2.0, warm_seconds=1.0)
        for name in _NAMES:
            for connections in _CONNECTIONS:
                both = (sent[0][name], sent[1][name])
                table.add(name, connections, compared(generator, (large, small), both, connections, plan))
    console.print(table.table)


if __name__ == "__main__":
    main()
