# SPDX-License-Identifier: Apache-2.0
"""Fill the catalog of a running stack with tables, users, roles and grants of a given number.

The gateway creates the namespaces, the roles and one table of each namespace. All other rows, and the tuples of
OpenFGA, are written to their databases by COPY: OpenFGA's own interface takes ten times as long. The changes of
OpenFGA do not list these tuples, as if the catalog had been filled long ago.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg

from gateway.fga.names import object_of, user_object
from lakegate.local.postgres import OPENFGA_ROLE
from lakegate.local.ready import load_or_generate
from tests.bench.catalogs import Prepared
from tests.bench.searching import WORDS
from tests.bench.seeding import SCHEMA
from tests.bench.stacks import Running

IN_NAMESPACE = 1_000
GRANTS_IN_NAMESPACE = 10
_ROLES = 100
_CHUNK = 50_000

_COPY_TABLES = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
                        metadata_location, metadata, metadata_excerpt, metadata_excerpt_of)
    select gen_random_uuid(), t.warehouse_id, t.namespace_id, t.kind, named.name, named.name, gen_random_uuid(),
           t.location || '-' || n, rtrim(t.location_key, '/') || '-' || n || '/', t.metadata_location, t.metadata,
           t.metadata_excerpt, t.metadata_excerpt_of
    from tables t, generate_series(1, $2) n,
        lateral (select ($3::text[])[n % 40 + 1] || '_' || ($3::text[])[n / 40 % 40 + 1] || '_' || n as name) named
    where t.id = $1::text::uuid
    returning id, namespace_id, name
"""
_ADD_USERS = """
    insert into users (id, name, user_type, last_updated_with)
    select 'oidc~scale' || n, 'Scale ' || n, 'human', 'update-endpoint' from generate_series(0, $1 - 1) n
"""
_TUPLES = (
    *("store", "object_type", "object_id", "relation", "_user", "user_type", "ulid", "inserted_at"),
    *("condition_name", "condition_context"),
)
_GRANTS = ("id", "privilege", "principal_type", "principal_id", "object_type", "object_id", "granted_by")
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

Each = TypeVar("Each")

_Tuple = tuple[str, str, str]
"""(user, relation, object)"""


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of tables, users and grants on single tables."""

    tables: int
    users: int
    grants: int

    def hundredth(self) -> Size:
        """Return a hundredth of the tables and users, at least a namespace. Each user has grants in one namespace."""
        users = max(50, self.users // 100)
        return Size(max(IN_NAMESPACE, self.tables // 100), users, users * GRANTS_IN_NAMESPACE)

    def tables_of(self, user: int) -> list[int]:
        """Return the numbers of the tables on which a user has a grant: ten in each of several namespaces."""
        spaces = self.tables // IN_NAMESPACE
        granted = min(spaces, self.grants // self.users // GRANTS_IN_NAMESPACE)
        return [
            (user + space * max(1, spaces // granted)) % spaces * IN_NAMESPACE
            + (user * 37 + number * 101) % IN_NAMESPACE
            for space in range(granted)
            for number in range(GRANTS_IN_NAMESPACE)
        ]


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled catalog. `places`: namespace and name of each table. `subjects`: the users' names in tokens."""

    size: Size
    places: list[tuple[str, str]]
    subjects: list[str]

    def tables_of(self, user: int, count: int) -> list[tuple[str, str]]:
        """Return namespace and name of some tables on which a user has a grant."""
        return [self.places[number] for number in self.size.tables_of(user)[:count]]


class Filler:
    """Fills one catalog."""

    def __init__(self, running: Running, prepared: Prepared, size: Size) -> None:
        self._ready = running.ready
        self._data = running.data
        self._prepared = prepared
        self._size = size
        self._warehouse = prepared.namespaces.rsplit("/", 2)[-2]

    async def fill(self) -> Filled:
        """Create tables, users, roles and grants, with their tuples."""
        gateway = await asyncpg.connect(self._ready.postgres)
        openfga = await asyncpg.connect(_openfga_url(self._ready.postgres, self._data))
        try:
            ids, spaces, places = [], [], []
            for number in range(self._size.tables // IN_NAMESPACE):
                name, rows = await self._namespace(gateway, number)
                ids += [str(row["id"]) for row in rows]
                spaces += [str(row["namespace_id"]) for row in rows]
                places += [(name, row["name"]) for row in rows]
                parent = object_of("namespace", rows[0]["namespace_id"])
                await self._tuples(openfga, ((parent, "parent", object_of("table", row["id"])) for row in rows[1:]))
            await gateway.execute(_ADD_USERS, self._size.users)
            subjects = [f"scale{number}" for number in range(self._size.users)]
            await self._grants(gateway, openfga, self._granted(subjects, ids))
            await self._tuples(openfga, self._traverse(subjects, spaces))
            for each in (gateway, openfga):
                await each.execute("vacuum analyze")
        finally:
            await gateway.close()
            await openfga.close()
        return Filled(self._size, places, subjects)

    async def _namespace(self, gateway: Any, number: int) -> tuple[str, list[Any]]:
        """Create a namespace with a thousand tables. Return its name, and the rows of its tables."""
        client, name = self._prepared.client, f"scale{number:03}"
        client.post(self._prepared.namespaces, json={"namespace": [name]}).raise_for_status()
        url = f"{self._prepared.namespaces}/{name}/tables"
        client.post(url, json={"name": "first", "schema": SCHEMA}).raise_for_status()
        (first,) = client.get(url, params={"returnUuids": "true"}).raise_for_status().json()["table-uuids"]
        made = await gateway.fetch("select id, namespace_id, name from tables where id = $1::text::uuid", first)
        return name, [*made, *await gateway.fetch(_COPY_TABLES, first, IN_NAMESPACE - 1, WORDS)]

    def _granted(self, subjects: list[str], tables: list[str]) -> Iterator[tuple[str, str, str, str]]:
        """Yield (privilege, user id, object type, object id) of each grant, with the memberships of roles."""
        roles = [self._role(number) for number in range(_ROLES)]
        for number, subject in enumerate(subjects):
            yield "assignee", f"oidc~{subject}", "role", roles[number % _ROLES]
            for table in self._size.tables_of(number):
                yield "select", f"oidc~{subject}", "table", tables[table]

    def _traverse(self, subjects: list[str], spaces: list[str]) -> Iterator[_Tuple]:
        """Yield the tuples by which a user sees the path to the tables."""
        for number, subject in enumerate(subjects):
            user = user_object(f"oidc~{subject}")
            yield user, "traverse", object_of("project", self._ready.project_id)
            yield user, "traverse", object_of("warehouse", self._warehouse)
            for space in {spaces[table] for table in self._size.tables_of(number)}:
                yield user, "traverse", object_of("namespace", space)

    def _role(self, number: int) -> str:
        url = f"{self._ready.management_uri}/v1/role"
        made = self._prepared.client.post(url, json={"name": f"scale role {number}"}).raise_for_status()
        return str(UUID(made.json()["id"]))

    async def _grants(self, gateway: Any, openfga: Any, granted: Iterable[tuple[str, str, str, str]]) -> None:
        by = self._ready.users["admin"].id
        for some in _chunks(granted):
            rows = [(uuid4(), privilege, "user", user, type, id, by) for privilege, user, type, id in some]
            await gateway.copy_records_to_table("grants", records=rows, columns=_GRANTS)
            await self._tuples(
                openfga, ((user_object(user), privilege, object_of(type, id)) for privilege, user, type, id in some)
            )

    async def _tuples(self, openfga: Any, tuples: Iterable[_Tuple]) -> None:
        store, now = self._ready.openfga.store_id, datetime.now(UTC)
        for some in _chunks(tuples):
            rows = [
                (store, *object.split(":", 1), relation, user, "user", _ulid(), now, None, None)
                for user, relation, object in some
            ]
            await openfga.copy_records_to_table("tuple", records=rows, columns=_TUPLES)


def _chunks(of: Iterable[Each]) -> Iterator[list[Each]]:
    chunk: list[Each] = []
    for each in of:
        chunk.append(each)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _ulid() -> str:
    """Return a unique identifier in the form that OpenFGA gives its tuples. Its time is 0: the order is irrelevant."""
    number = secrets.randbits(80)
    return "0" * 10 + "".join(_DIGITS[number >> shift & 31] for shift in range(75, -5, -5))


def _openfga_url(gateway: str, data: Path) -> str:
    """Return the URL of OpenFGA's database, which is on the same server."""
    password = load_or_generate(data / "secrets.json").postgres_openfga
    return f"postgresql://{OPENFGA_ROLE}:{password}@{gateway.rpartition('@')[2].rpartition('/')[0]}/{OPENFGA_ROLE}"
