# SPDX-License-Identifier: Apache-2.0
"""Measure the time that Trino waits for the bridge, for 1, 100 and 1,000 objects: `python -m tests.bench.bridge`.

Each figure has a floor of the same run: the same OPA with a query that needs no call. A query begins when Trino would
send it and ends with OPA's response; one connection, no other load.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.bench.seeding import ManyTables
from tests.integration.conftest import _up
from tests.support.stack.trino_bridge import Bridge, bridged
from tests.support.stack.world import Person, World

_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "10"))
_NAMESPACE = "bridged"
_COUNTS = (1, 100, 1000)


def _tables(world: World) -> None:
    """Create a thousand tables; the analyst may select all through the namespace, and alice three individually."""
    with httpx.Client(headers={"Authorization": f"Bearer {world.admin.token}"}, timeout=120, trust_env=False) as client:
        many = ManyTables(world.ready, client, f"{world.base}{world.root}/namespaces", count=max(_COUNTS))
        many.make(_NAMESPACE, {"alice": 3})
    world.grant("select", world.analyst, "namespace", world.namespace_id(_NAMESPACE))
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)


def _names(world: World) -> list[str]:
    rows = world.sql(
        "select t.name from tables t join namespaces n on n.id = t.namespace_id where n.path_key = $1 order by t.name",
        _NAMESPACE,
    )
    return [row["name"] for row in rows]


def _thing(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {kind: {"catalogName": "ice", "schemaName": _NAMESPACE, "tableName": name, **more}}


def _measured(send: Callable[[], Any]) -> tuple[float, float, int]:
    """Return (median, slowest of the rounds in milliseconds, number of objects in the response)."""
    took, answer = [], None
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        answer = send()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took), max(took), len(answer) if isinstance(answer, list) else int(answer is True)


def _show_tables(world: World, bridge: Bridge, person: Person) -> Any:
    """Send the requests of Trino for `SHOW TABLES`, to the bridge and the catalog, without Trino's own work."""
    schema = {"schema": {"catalogName": "ice", "schemaName": _NAMESPACE}}
    assert bridge.result("allow", person, {"operation": "ShowTables", "resource": schema})
    names = [
        found["name"]
        for kind in ("tables", "views")
        for found in person.get(f"{world.root}/namespaces/{_NAMESPACE}/{kind}").json()["identifiers"]
    ]
    things = [_thing("table", name) for name in names]
    return bridge.result("batch", person, {"operation": "FilterTables", "filterResources": things})


def main() -> None:
    """Start a stack, measure, and print a table in Markdown."""
    with _up() as stack, tempfile.TemporaryDirectory(prefix="lakegate-bridge-") as folder:
        world = World(stack)
        _tables(world)
        names = _names(world)
        with bridged(world, Path(folder)) as bridge:

            def measured_check(entry: str, person: Person, operation: str, **more: Any) -> tuple[float, float, int]:
                return _measured(lambda: bridge.result(entry, person, {"operation": operation, **more}))

            print("| Trino asks | p50 ms | max ms | in the answer |\n| --- | --: | --: | --: |")
            rows = {"floor: a query may begin": measured_check("allow", world.analyst, "ExecuteQuery")}
            reading = {"resource": _thing("table", names[0], columns=["id"])}
            rows["may this table be read"] = measured_check("allow", world.analyst, "SelectFromColumns", **reading)
            for count in _COUNTS:
                things = [_thing("table", name) for name in names[:count]]
                for person, sees in ((world.analyst, "sees all"), (world.alice, "sees 3")):
                    title = f"which of {count:,} tables, {sees}"
                    rows[title] = measured_check("batch", person, "FilterTables", filterResources=things)
                columns = [
                    _thing("column", names[0], columnName=f"c{number}", columnType="bigint") for number in range(count)
                ]
                title = f"masks of {count:,} columns"
                rows[title] = measured_check(
                    "batch_column_masks", world.analyst, "GetColumnMask", filterResources=columns
                )
            rows["SHOW TABLES over 1,000 tables: may it, list them, which of them"] = _measured(
                lambda: _show_tables(world, bridge, world.analyst)
            )
            for title, (middle, slowest, result) in rows.items():
                print(f"| {title} | {middle:,.0f} | {slowest:,.0f} | {result:,} |")
        world.close()


if __name__ == "__main__":
    main()
