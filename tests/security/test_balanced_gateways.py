# SPDX-License-Identifier: Apache-2.0
"""Two gateways of two worker processes each serve one catalog behind a balancer, as on two machines.

Every request uses a new connection, so that requests of one user reach different gateways.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.support.servers.balancer import Balancer, balanced
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, World, send_until_decided, unique

pytestmark = pytest.mark.chaos

_WRITERS = 6
_COMMITS = 8


@dataclass
class Machines:
    """The balancer in front of both gateways, and the second gateway's port and main process."""

    balancer: Balancer
    second_port: int
    second: psutil.Process

    def person(self, person: Person) -> Person:
        """Return the same user as a client of the balancer that opens a connection for each request."""
        client = Person(person.name, person.id, person.token, self.balancer.address)
        client.http.headers["Connection"] = "close"
        return client


@pytest.fixture
def machines(world: World, tmp_path: Path) -> Iterator[Machines]:
    """Yield the stack's gateway and another one behind a balancer."""
    first = urlsplit(world.ready.catalog_uri).port or 0
    with second_gateway(world.ready, tmp_path / "gateway.log", WORKERS="2") as (base, process):
        second = urlsplit(base).port or 0
        with balanced(first, second) as balancer:
            yield Machines(balancer, second, process)
            assert min(balancer.served[first], balancer.served[second]) > 0, "one gateway served nothing"


def properties_of(table: httpx.Response) -> dict[str, str]:
    """Return the properties of a loaded table."""
    found: dict[str, str] = table.json()["metadata"]["properties"]
    return found


def check_round(world: World, admin: Person, reader: Person) -> None:
    """Create, grant, revoke and drop, and check each change by requests to both gateways."""
    ns = unique("balanced")
    tables = f"{world.root}/namespaces/{ns}/tables"
    load = f"{tables}/t"
    assert admin.post(f"{world.root}/namespaces", {"namespace": [ns]}).status_code == 200
    created = admin.post(tables, {"name": "t", "schema": {"type": "struct", "fields": []}})
    assert created.status_code == 200, created.text
    assert [reader.get(load).status_code for _ in range(2)] == [404, 404]
    (id,) = admin.get(tables, params={"returnUuids": "true"}).json()["table-uuids"]
    grants = f"/management/v1/permissions/warehouse/{world.warehouse}/table/{id}/assignments"
    select = [{"type": "select", "user": reader.id}]
    assert admin.post(grants, {"writes": select}).status_code == 204
    assert [reader.get(load).status_code for _ in range(4)] == [200] * 4
    assert send_until_decided(lambda: admin.post(grants, {"deletes": select})).status_code == 204
    assert [reader.get(load).status_code for _ in range(4)] == [404] * 4
    assert admin.delete(load).status_code == 204
    assert [admin.head(load).status_code for _ in range(2)] == [404, 404]


def test_changes_on_one_gateway_hold_for_the_next_request_on_the_other(world: World, machines: Machines) -> None:
    admin, reader = machines.person(world.admin), machines.person(world.stranger("reader"))
    for _ in range(10):
        check_round(world, admin, reader)


def test_no_acknowledged_commit_is_lost_while_one_gateway_is_killed(world: World, machines: Machines) -> None:
    table = world.table(world.namespace(unique("balanced")))
    admin = machines.person(world.admin)

    def commit(writer: int) -> list[str]:
        acknowledged = []
        for number in range(_COMMITS):
            name = f"w{writer}.{number}"
            if (writer, number) == (0, _COMMITS // 2):
                machines.second.kill()
            update = {"action": "set-properties", "updates": {name: "committed"}}
            try:
                answer = admin.post(table.path, {"requirements": [], "updates": [update]})
            except httpx.TransportError:
                continue  # The connection broke with the gateway: the outcome is unknown.
            if answer.status_code == 200:
                acknowledged.append(name)
            else:
                assert answer.status_code in (409, 429, 500), answer.text
        return acknowledged

    with ThreadPoolExecutor(_WRITERS) as pool:
        acknowledged = [name for some in pool.map(commit, range(_WRITERS)) for name in some]
    assert len(acknowledged) > _WRITERS * _COMMITS // 2
    final = properties_of(admin.get(table.path))
    assert set(acknowledged) <= set(final), "an acknowledged commit was lost"
