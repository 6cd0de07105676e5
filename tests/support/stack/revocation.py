# SPDX-License-Identifier: Apache-2.0
"""Readers of one table whose rights end in different ways."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, World, unique

_CONNECTIONS = 8


@dataclass
class Readers:
    """Connections of one user, spread over all workers of two gateways."""

    person: Person
    clients: list[httpx.Client]
    pool: ThreadPoolExecutor

    def statuses(self, path: str) -> list[int]:
        """Return the statuses of concurrent requests to `path`, one for each connection."""
        return list(self.pool.map(lambda client: client.get(path).status_code, self.clients))


def workers_of(port: int) -> set[int]:
    """Return the PIDs of the processes that hold a connection to the gateway's port, without this process."""
    found = psutil.net_connections("tcp4")
    return {
        each.pid
        for each in found
        if each.laddr
        and each.laddr.port == port
        and each.status == "ESTABLISHED"
        and each.pid not in (None, os.getpid())
    }


@pytest.fixture(scope="module")
def other(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a second gateway on the same stack."""
    with second_gateway(world.ready, tmp_path_factory.mktemp("second") / "gateway.log", WORKERS="2") as (base, _):
        yield base


def _spread(base: str, person: Person, count: int) -> list[httpx.Client]:
    """Open connections to one gateway until at least two workers have one."""
    clients: list[httpx.Client] = []
    port = urlsplit(base).port or 0
    while len(clients) < count or (len(workers_of(port)) < 2 and len(clients) < 100):
        token = {"Authorization": f"Bearer {person.token}"}
        client = httpx.Client(base_url=base, headers=token, timeout=60, trust_env=False)
        clients.append(client)
        client.get("/catalog/v1/config?warehouse=none")
    assert len(workers_of(port)) >= 2
    return clients


@pytest.fixture
def readers(world: World, other: str) -> Iterator[Readers]:
    person = world.bob
    world.strip(person)
    clients: list[httpx.Client] = []
    with ThreadPoolExecutor(2 * _CONNECTIONS) as pool:
        try:
            for base in (world.base, other):
                clients += _spread(base, person, _CONNECTIONS)
            yield Readers(person, clients, pool)
        finally:
            for client in clients:
                client.close()
            world.strip(person)


def make_role(world: World) -> str:
    """Create a role of the default project; return its id."""
    made = world.admin.post("/management/v1/role", {"name": unique("role")})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def assign(world: World, verb: str, role: str, member: dict[str, str]) -> None:
    """Add a member to a role, or remove it."""
    path = world.grants_path("role", role)
    done = world.admin.post(path, {verb: [{"type": "assignee", **member}]})
    assert done.status_code == 204, done.text


def hits(world: World, memory: str = "relationships") -> float:
    """Return the number of hits of a cache so far, in all workers."""
    text = httpx.get(world.ready.metrics_uri, trust_env=False, timeout=60).text
    found = [line for line in text.splitlines() if line.startswith("lakegate_memory_lookups_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found if f'memory="{memory}"' in line and 'hit"' in line)
