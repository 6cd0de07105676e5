# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of data policies for Trino: `python -m tests.bench.data_policies`.

Two warehouses of one stack have equal tables. In the first, a row filter and a mask are bound to the namespace, and a
mask of 99 further columns to a table of a thousand columns. The same requests go to both in turns, over one connection.
`BENCH_ONLY=SELECT,masks` selects measurements by words of their names.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.bench import options as variables
from tests.bench.generator import Generator, Sent
from tests.bench.options import Options
from tests.bench.pairs import Side, Slice, Slices, in_turns, median_ratio, one_slice
from tests.bench.seeding import ManyTables
from tests.bench.stacks import groups_of
from tests.bench.trino_requests import MASKED, NAMESPACE, WIDE, Prepared, Requests, read_checks, schema_of
from tests.integration.conftest import _up
from tests.support.stack import warehouses
from tests.support.stack.data_policies import change, make
from tests.support.stack.trino_bridge import Bridge, bridged
from tests.support.stack.world import World

_COUNTS = (1, 100, 1000)
_GROUPS = ("gateway", "OPA", "bridge", "OpenFGA", "PostgreSQL")
_FILTER = {"kind": "row-filter", "test": {"type": "in", "column": {"name": "column_1"}, "values": [1, 2, 3]}}

Pair = tuple[list[Prepared], list[Prepared]]
"""The requests of a statement: with data policies, and without."""
Slices2 = tuple[list[Slice], list[Slice]]


def _mask(columns: Sequence[int]) -> dict[str, Any]:
    names = [{"name": f"column_{number}"} for number in columns]
    return {"kind": "mask", "action": "mask-alphanum", "columns": names}


@dataclass(frozen=True, slots=True)
class Site:
    """A stack with two warehouses, and its bridge, which has them as the catalogs `with` and `without`."""

    world: World
    bridge: Bridge
    other: str

    def requests(self) -> tuple[Requests, Requests]:
        """Return the makers of requests with and without data policies."""
        user = self.world.analyst.id.removeprefix("oidc~")
        return Requests(self.bridge.url, user, "with"), Requests(self.bridge.url, user, "without")

    def measurements(self) -> dict[str, Pair]:
        """Return the requests of each measurement, by its name."""
        restricted, plain = self.requests()
        found: dict[str, Pair] = {"row filter": ([restricted.row_filters("t00001")], [plain.row_filters("t00001")])}
        for count in _COUNTS:
            tables = [restricted.filter_tables(count)], [plain.filter_tables(count)]
            found[f"filter of {count:,} tables"] = tables
        for count in _COUNTS:
            found[f"masks of {count:,} columns"] = [restricted.masks(WIDE, count)], [plain.masks(WIDE, count)]
        columns = [restricted.filter_columns(WIDE, 1000)], [plain.filter_columns(WIDE, 1000)]
        found["filter of 1,000 columns"] = columns
        for count in _COUNTS:
            found[f"batch-check of reads of {count:,} tables"] = self._checks(count)
        found["SHOW TABLES of 1,000"] = restricted.show_tables(1000), plain.show_tables(1000)
        found["SELECT, 30 columns, 1 mask"] = restricted.select("t00001", 30, [2]), plain.select("t00001", 30, [])
        found["SELECT, 1,000 columns, 100 masks"] = restricted.select(WIDE, 1000, MASKED), plain.select(WIDE, 1000, [])
        return found

    def _checks(self, count: int) -> Pair:
        user, token, base = self.world.analyst.id, self.world.etl.token, self.world.base
        first, second = (
            [read_checks(warehouse, user, count, token, base)] for warehouse in (self.world.warehouse, self.other)
        )
        return first, second

    def verify(self) -> None:
        """Fail unless the policies have their effect on the catalog `with`, and on this catalog only."""
        for requests, expected in zip(self.requests(), ([2, len(MASKED), 1000], [0, 0, 1000]), strict=True):
            sent = requests.row_filters("t00001"), requests.masks(WIDE, 1000), requests.filter_tables(1000)
            found = [len(each.result()) for each in sent]
            if found != expected:
                raise SystemExit(f"{requests.catalog}: (row filters, masks, tables) are {found}, not {expected}")


def _fill(world: World, warehouse: str) -> str:
    """Create the tables of a warehouse, and the rights of the reader and the bridge. Return the namespace's id."""
    root = f"/catalog/v1/{warehouse}/namespaces"
    with httpx.Client(headers={"Authorization": f"Bearer {world.admin.token}"}, timeout=120, trust_env=False) as client:
        ManyTables(world.ready, client, f"{world.base}{root}", count=max(_COUNTS)).make(NAMESPACE, {})
        body = {"name": WIDE, "schema": schema_of(max(_COUNTS))}
        client.post(f"{world.base}{root}/{NAMESPACE}/tables", json=body).raise_for_status()
    id = str(world.admin.get(f"{root}/{NAMESPACE}").json()["properties"]["namespace_id"])
    world.grant("select", world.analyst, "namespace", id)
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", warehouse)
    return id


def _restrict(world: World, namespace: str) -> None:
    """Bind the policies to the namespace and the wide table of the demo warehouse."""
    wide = world.admin.get(f"{world.root}/namespaces/{NAMESPACE}/tables/{WIDE}").json()["metadata"]["table-uuid"]
    on_namespace = {"type": "namespace", "id": namespace, "warehouse-id": world.warehouse}
    on_table = {"type": "table", "id": wide, "warehouse-id": world.warehouse}
    for definition, target in ((_FILTER, on_namespace), (_mask([2]), on_namespace), (_mask(MASKED[1:]), on_table)):
        bound = change(world, make(world, definition), add=[target])
        assert bound.status_code == 204, bound.text


@contextmanager
def _site() -> Iterator[Site]:
    """Run the stack and the bridge, and create the tables of both warehouses."""
    with _up() as stack, tempfile.TemporaryDirectory(prefix="lakegate-bridge-") as folder:
        world = World(stack)
        other = warehouses.make(world).id
        namespace = _fill(world, world.warehouse)
        _fill(world, other)
        _restrict(world, namespace)
        catalogs = json.dumps({"with": world.warehouse, "without": other})
        with bridged(world, Path(folder), LAKEGATE_BRIDGE_CATALOGS=catalogs) as bridge:
            yield Site(world, bridge, other)
        world.close()


def _measured(pair: Pair, generator: Generator, groups: dict[str, list[int]], options: Options) -> Slices2:
    """Measure whole statements: as many in each slice as take `options.seconds` without data policies, at least one."""
    sent = [Sent(method="POST", url="", headers={}, mix=[each.request() for each in requests]) for requests in pair]
    generator.send(sent[0], 1, seconds=0, requests=len(sent[0].mix))
    trial = generator.send(sent[1], 1, seconds=options.seconds)
    statements = max(1, trial.answered // len(sent[1].mix))
    found: Slices2 = ([], [])
    for order in in_turns(options.rounds):
        for side in order:
            plan = Slices(pairs=1, seconds=0, warm_seconds=0, requests=statements * len(sent[side].mix))
            one = one_slice(generator, Side("", groups), sent[side], 1, plan)
            if one.result.refused:
                raise SystemExit(f"{one.result.refused} of {plan.requests} requests were refused")
            found[side].append(one)
    return found


def _line(name: str, pair: Pair, found: Slices2) -> str:
    """Return a row in Markdown: requests, milliseconds, CPU milliseconds by process, and ratios, for a statement."""
    cells, times, cpu = [name], [], []
    per = [[len(requests) / each.result.answered for each in some] for requests, some in zip(pair, found, strict=True)]
    for of, slices in zip(per, found, strict=True):
        times.append([1000 * each.result.seconds * n for each, n in zip(slices, of, strict=True)])
        cpu.append([1000 * sum(each.cpu[group] for group in _GROUPS) * n for each, n in zip(slices, of, strict=True)])
    cells.append(" → ".join(str(len(requests)) for requests in reversed(pair)))
    cells.append(" → ".join(f"{statistics.median(some):,.1f}" for some in reversed(times)))
    for group in _GROUPS:
        middle = [
            statistics.median(1000 * each.cpu[group] * n for each, n in zip(slices, of, strict=True))
            for of, slices in zip(per, found, strict=True)
        ]
        cells.append(" → ".join(f"{value:,.1f}" for value in reversed(middle)))
    cells += [f"{median_ratio(*values) or 0:.2f}" for values in (times, cpu)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure, and print a table in Markdown."""
    options = variables.read()
    with _site() as site:
        site.verify()
        of_stack = groups_of(site.world.ready)
        groups = {name: of_stack[name] for name in _GROUPS if name in of_stack} | {"bridge": [site.bridge.pid]}
        generator = Generator()
        print(
            "| without → with data policies | requests | ms | " + " | ".join(f"{name} ms" for name in _GROUPS), end=""
        )
        print(" | time, ratio | CPU, ratio |\n| --- | " + " | ".join(["--:"] * (len(_GROUPS) + 4)) + " |", flush=True)
        for name, pair in site.measurements().items():
            if options.selects(name):
                print(_line(name, pair, _measured(pair, generator, groups, options)), flush=True)
        generator.close()


if __name__ == "__main__":
    main()
