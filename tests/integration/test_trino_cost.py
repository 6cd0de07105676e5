# SPDX-License-Identifier: Apache-2.0
"""Calls of whole Trino statements, with data policies and without: requests of the bridge to the gateway, and of the
gateway to PostgreSQL, OpenFGA and OPA.

The numbers are those of `docs/performance.md`. The order of Trino's requests was recorded on Trino 476
(`trino_requests`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from lakegate.local.ready import Ready
from tests.bench.seeding import ManyTables
from tests.bench.trino_requests import NAMESPACE, Prepared, Requests, schema_of
from tests.support.rows.metered import metered
from tests.support.servers.loopback import Reply, Request, serving
from tests.support.stack import warehouses
from tests.support.stack.columns import BATCH
from tests.support.stack.data_policies import change, make
from tests.support.stack.opa_always_asked import opa_always_asked
from tests.support.stack.trino_bridge import bridged
from tests.support.stack.world import World

__all__ = ["opa_always_asked"]

pytestmark = pytest.mark.generated

_PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
_CALLS = _PAGE.read_text().partition("\n## How to measure\n")[0]
"""The part of the page that lists calls. The tables behind it have times."""
_ROW = re.compile(
    r"^\| (?P<statement>[^|]+) \| (?P<restrictions>[a-z][^|]*) \| (?P<numbers>\d+(?: \| \d+){4}) \|$", re.M
)
_TABLES = 1000
_LIST = "SHOW TABLES"
_MASKED = {"one": [2], "three": [2, 4, 6]}
_FILTER = {"kind": "row-filter", "test": {"type": "in", "column": {"name": "column_1"}, "values": [1, 2]}}
_NOT_CACHED = {"MEMORY__ALLOW_SECONDS": "0", "MEMORY__SILENT_CALLERS": "0"}


@dataclass(frozen=True)
class Recorder:
    """A proxy of the gateway. `bodies` are the requests that passed."""

    url: str
    bodies: list[bytes]

    def taken(self) -> list[Any]:
        """Return the requests since the last call."""
        found = [json.loads(each) for each in self.bodies]
        self.bodies.clear()
        return found


@contextmanager
def _recording(gateway: str) -> Iterator[Recorder]:
    bodies: list[bytes] = []

    def answer(request: Request) -> Reply:
        bodies.append(request.body)
        headers = {name: request.headers[name] for name in ("authorization", "x-request-id")}
        headers["content-type"] = "application/json"
        sent = httpx.post(
            f"{gateway}{request.path}", content=request.body, headers=headers, trust_env=False, timeout=60
        )
        return sent.status_code, {"content-type": "application/json"}, sent.content

    with serving(answer) as service:
        yield Recorder(service.url, bodies)


def _published() -> dict[tuple[str, str], list[int]]:
    """Return the rows by (statement, restrictions).

    The numbers are requests to the gateway, SQL statements, OpenFGA calls, OPA calls, and OpenFGA calls with the cache.
    """
    return {
        (row["statement"], row["restrictions"]): [int(cell) for cell in row["numbers"].split(" | ")]
        for row in _ROW.finditer(_CALLS)
    }


@dataclass(frozen=True)
class Site:
    """A warehouse with policies on the tables `filtered`, `one` and `three`, and one without policies."""

    world: World
    restricted: str
    plain: str


def _fill(world: World, warehouse: str, tables: Sequence[str]) -> dict[str, str]:
    """Create the namespace with a thousand tables, and these in addition. Return their ids by name."""
    root = f"{world.base}/catalog/v1/{warehouse}/namespaces"
    with httpx.Client(headers={"Authorization": f"Bearer {world.admin.token}"}, timeout=120, trust_env=False) as client:
        ManyTables(world.ready, client, root, count=_TABLES).make(NAMESPACE, {})
        made = {
            name: client.post(f"{root}/{NAMESPACE}/tables", json={"name": name, "schema": schema_of(30)})
            for name in tables
        }
        id = client.get(f"{root}/{NAMESPACE}").json()["properties"]["namespace_id"]
    world.grant("select", world.contractor, "namespace", id)
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", warehouse)
    return {name: str(each.raise_for_status().json()["metadata"]["table-uuid"]) for name, each in made.items()}


@pytest.fixture(scope="module")
def site(stack: Ready) -> Iterator[Site]:
    world = World(stack)
    restricted, plain = warehouses.make(world).id, warehouses.make(world).id
    ids = _fill(world, restricted, ["filtered", *_MASKED])
    _fill(world, plain, [])
    policies = []

    def bind(definition: dict[str, Any], type: str, id: str) -> None:
        policies.append(make(world, definition))
        target = {"type": type, "id": id, "warehouse-id": restricted}
        assert change(world, policies[-1], add=[target]).status_code == 204

    bind(_FILTER, "table", ids["filtered"])
    for name, columns in _MASKED.items():
        named = [{"name": f"column_{n}"} for n in columns]
        bind({"kind": "mask", "action": "mask-alphanum", "columns": named}, "table", ids[name])
    bind(_FILTER, "table", ids["three"])
    yield Site(world, restricted, plain)
    for policy in policies:
        world.admin.send("DELETE", f"/management/v1/data-policy/{policy['id']}", params={"force": "true"})
    world.close()


def _statements(url: str, user: str) -> dict[tuple[str, str], list[Prepared]]:
    plain, restricted = Requests(url, user, "plain"), Requests(url, user, "restricted")
    return {
        ("`SELECT`", "no data policies in the warehouse"): plain.select("t00001", 30, []),
        ("`SELECT`", "none on the table"): restricted.select("t00001", 30, []),
        ("`SELECT`", "a row filter"): restricted.select("filtered", 30, []),
        ("`SELECT`", "one mask"): restricted.select("one", 30, _MASKED["one"]),
        ("`SELECT`", "a row filter, three masks"): restricted.select("three", 30, _MASKED["three"]),
        (_LIST, "no data policies in the warehouse"): plain.show_tables(_TABLES),
        (_LIST, "some tables are restricted"): restricted.show_tables(_TABLES),
    }


def test_trino_statement_has_its_documented_cost(
    stack: Ready, site: Site, tmp_path: Path, opa_always_asked: None
) -> None:
    """A policy adds neither a request of the bridge nor a call for each object."""
    world, asked = site.world, dict[tuple[str, str], list[Any]]()
    catalogs = json.dumps({"restricted": site.restricted, "plain": site.plain})
    with (
        _recording(world.base) as recorder,
        bridged(world, tmp_path, LAKEGATE_BRIDGE_CATALOGS=catalogs, LAKEGATE_BRIDGE_URL=recorder.url) as bridge,
    ):
        for name, requests in _statements(bridge.url, world.contractor.id.removeprefix("oidc~")).items():
            for each in requests:
                assert each.result() not in (False, [{"expression": "false"}]), (name, each.body)
            asked[name] = recorder.taken()

    first = asyncio.run(_survey(stack, asked, **_NOT_CACHED))
    cached = asyncio.run(_survey(stack, asked))
    measured = {name: [*first[name], cached[name][2]] for name in asked if name[0] != _LIST}
    assert measured == _published(), measured
    plain, restricted = (numbers for (statement, _), numbers in first.items() if statement == _LIST)
    assert plain == restricted, "a list does not concern data"
    assert plain[0] == 8, "requests to the gateway, as counted on a real Trino"


async def _survey(
    stack: Ready, asked: Mapping[tuple[str, str], Sequence[Any]], **settings: str
) -> dict[tuple[str, str], list[int]]:
    """Return the cost of each statement when it is sent for the second time to a separate gateway."""
    found = {}
    async with metered(stack, **settings) as gateway:
        for name in [*asked, *asked]:
            costs = []
            for body in asked[name]:
                answer, cost = await gateway.send("POST", BATCH, stack.users["etl"].token, body=body)
                assert answer.status_code == 200, answer.text
                costs.append(cost)
            found[name] = [
                len(costs),
                sum(len(each.statements) for each in costs),
                sum(sum(each.openfga.values()) for each in costs),
                sum(each.opa for each in costs),
            ]
    return found
