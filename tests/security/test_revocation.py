# SPDX-License-Identifier: Apache-2.0
"""What was taken away is gone for every request that begins afterwards, in every process (invariant 4).

Each round warms the memories of all workers over many connections, takes the right away in one of the ways there are,
and asks at once over every connection: a single success is a leak.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.contract.world import Person, Table, World, unique

_CONNECTIONS = 12


@dataclass
class Readers:
    """Many connections of one person, spread over all workers of the gateway."""

    person: Person
    clients: list[httpx.Client]
    pool: ThreadPoolExecutor

    def statuses(self, path: str) -> list[int]:
        """What everybody gets at the same time."""
        return list(self.pool.map(lambda client: client.get(path).status_code, self.clients))


def workers_of(port: int) -> set[int]:
    """The processes that hold a connection to the gateway's port from outside of themselves."""
    found = psutil.net_connections("tcp4")
    return {
        each.pid
        for each in found
        if each.laddr
        and each.laddr.port == port
        and each.status == "ESTABLISHED"
        and each.pid not in (None, os.getpid())
    }


@pytest.fixture
def readers(world: World) -> Iterator[Readers]:
    person = world.bob
    world.strip(person)
    clients: list[httpx.Client] = []
    port = urlsplit(world.base).port or 0
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        try:
            while len(clients) < _CONNECTIONS or (len(workers_of(port)) < 2 and len(clients) < 100):
                client = httpx.Client(
                    base_url=world.base,
                    headers={"Authorization": f"Bearer {person.token}"},
                    timeout=60,
                    trust_env=False,
                )
                client.get("/catalog/v1/config?warehouse=none")
                clients.append(client)
            assert len(workers_of(port)) >= 2
            yield Readers(person, clients, pool)
        finally:
            for client in clients:
                client.close()
            world.strip(person)


def make_role(world: World) -> str:
    """A role of the default project."""
    made = world.admin.post("/management/v1/role", {"name": unique("role")})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def assign(world: World, verb: str, role: str, member: dict[str, str]) -> None:
    """Put somebody into a role, or take them out."""
    path = world.grants_path("role", role)
    done = world.admin.post(path, {verb: [{"type": "assignee", **member}]})
    assert done.status_code == 204, done.text


def to_role(world: World, verb: str, kind: str, id: str, role: str) -> None:
    """Grant `select` to a role, or take it away."""
    done = world.admin.post(world.grants_path(kind, id), {verb: [{"type": "select", "role": role}]})
    assert done.status_code == 204, done.text


@dataclass(frozen=True)
class Way:
    """One way to give somebody a table, and to take it away again."""

    give: Callable[[], None]
    take: Callable[[], None]
    path: str | None = None
    """Where the table is afterwards, when that is elsewhere."""


def by_grant(kind: str) -> Callable[[World, Person, Table], Way]:
    def way(world: World, person: Person, table: Table) -> Way:
        ids = {
            "table": lambda: _table_id(world, table),
            "namespace": lambda: world.namespace_id(table.namespace),
            "warehouse": lambda: world.warehouse,
            "project": lambda: world.project,
        }
        id = ids[kind]()
        return Way(
            lambda: void(world.grant("select", person, kind, id)),
            lambda: void(world.revoke("select", person, kind, id)),
        )

    return way


def by_role(world: World, person: Person, table: Table) -> Way:
    role = make_role(world)
    to_role(world, "writes", "table", _table_id(world, table), role)
    member = {"user": person.id}
    return Way(lambda: assign(world, "writes", role, member), lambda: assign(world, "deletes", role, member))


def by_role_in_role(world: World, person: Person, table: Table) -> Way:
    outer, inner = make_role(world), make_role(world)
    to_role(world, "writes", "namespace", world.namespace_id(table.namespace), outer)
    assign(world, "writes", inner, {"user": person.id})
    member = {"role": inner}
    return Way(lambda: assign(world, "writes", outer, member), lambda: assign(world, "deletes", outer, member))


def by_grant_to_the_role(world: World, person: Person, table: Table) -> Way:
    role, id = make_role(world), _table_id(world, table)
    assign(world, "writes", role, {"user": person.id})
    return Way(
        lambda: to_role(world, "writes", "table", id, role), lambda: to_role(world, "deletes", "table", id, role)
    )


def by_place(world: World, person: Person, table: Table) -> Way:
    """The reader holds a namespace; the table is moved into it and out of it."""
    elsewhere = world.namespace()
    world.grant("select", person, "namespace", world.namespace_id(table.namespace))

    def move(source: str, target: str) -> None:
        body = {
            "source": {"namespace": [source], "name": table.name},
            "destination": {"namespace": [target], "name": table.name},
        }
        moved = world.admin.post(f"{world.root}/tables/rename", body)
        assert moved.status_code == 204, moved.text

    move(table.namespace, elsewhere)
    gone_to = table.path.replace(f"/{table.namespace}/", f"/{elsewhere}/")
    return Way(lambda: move(elsewhere, table.namespace), lambda: move(table.namespace, elsewhere), gone_to)


def void(_: object) -> None:
    return None


def _table_id(world: World, table: Table) -> str:
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    return str(row["id"])


WAYS = {
    "a grant on the table": by_grant("table"),
    "a grant on the namespace": by_grant("namespace"),
    "a grant on the warehouse": by_grant("warehouse"),
    "a grant on the project": by_grant("project"),
    "being in a role": by_role,
    "a role being in a role": by_role_in_role,
    "a grant to the role": by_grant_to_the_role,
    "the table's place": by_place,
}


def rounds(world: World, readers: Readers, way: str, count: int) -> int:
    """Give and take `count` times; how many questions were asked after something was taken away."""
    table = world.table(world.namespace())
    taken = WAYS[way](world, readers.person, table)
    asked = 0
    for _ in range(count):
        taken.give()
        for _ in range(2):
            assert set(readers.statuses(table.path)) == {200}
        taken.take()
        after = readers.statuses(taken.path or table.path)
        asked += len(after)
        assert set(after) == {404}, after
    return asked


@pytest.mark.parametrize("way", WAYS)
def test_what_was_taken_away_is_gone_for_all_workers_at_once(world: World, readers: Readers, way: str) -> None:
    before = hits(world)
    rounds(world, readers, way, 2)
    assert hits(world) > before, "nothing was remembered, so nothing was shown"


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_ten_thousand_questions_after_a_revocation_find_nothing(world: World, readers: Readers) -> None:
    asked = 0
    while asked < 10_000:
        for way in WAYS:
            asked += rounds(world, readers, way, 5)


def hits(world: World) -> float:
    """How many questions memory answered so far, in all workers."""
    text = httpx.get(world.ready.metrics_uri, trust_env=False).text
    found = [line for line in text.splitlines() if line.startswith("lakegate_memory_lookups_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found if 'memory="relationships"' in line and 'hit"' in line)
