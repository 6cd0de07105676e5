# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.overload`: send twice the capacity of the gateway, and compare goodput and response times.

Each of 50 users sends `HEAD table` requests at fixed times, whether or not earlier ones were answered (open loop). The
capacity is the highest rate of answers of a closed loop, with the same generator on the same machine. Prints, for half,
once and twice the capacity: answers and refusals per second, the share of the capacity, response times of admitted and
refused requests, and the part of a core that the generator takes. `BENCH_SETTINGS` are settings of the gateway,
separated by blanks: `LAKEGATE__SHARES__OVERLOAD_WAIT=0.1 …`.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.catalogs import Catalog, Prepared
from tests.bench.load import Request
from tests.bench.open_loop import Measured, Sender, percentile
from tests.bench.people import STEADY, Company
from tests.bench.stacks import Running, stack

_SECONDS = float(os.environ.get("BENCH_SECONDS", "10"))
_SETTINGS = dict(each.split("=", 1) for each in os.environ.get("BENCH_SETTINGS", "").split())
_CONNECTIONS = 32
_COLUMNS = (
    *("load", "sent/s", "answered/s", "of capacity", "refused/s", "p50 ms", "p99 ms", "p99 ÷ half load"),
    *("p50 of refusals ms", "p99 of refusals ms", "generator"),
)


def _prepared(running: Running) -> list[Request]:
    """Create tables that 50 users may read. Return the request `HEAD table` of each user."""
    ready = running.ready
    catalog = Prepared(
        Catalog(name="ours", url=ready.catalog_uri, token=ready.users["admin"].token, warehouse=ready.warehouse)
    )
    mixes = Company(ready, running.data, catalog.client, catalog.namespaces).mixes()
    return [each for each in mixes.sent[STEADY].mix if each.method == "HEAD"]


async def _measure(requests: Sequence[Request]) -> list[tuple[str, float, Measured, float]]:
    """Return (name, requests per second, result, part of a core that the generator took) of each load."""
    sender = Sender(requests)
    await sender.closed(_CONNECTIONS, _SECONDS / 2)
    begun = time.process_time()
    closed = await sender.closed(_CONNECTIONS, _SECONDS)
    took = (time.process_time() - begun) / closed.seconds
    rows = [(f"closed loop, {_CONNECTIONS} connections", closed.goodput, closed, took)]
    for factor in (0.5, 1.0, 2.0):
        begun, rate = time.process_time(), factor * closed.goodput
        opened = await sender.opened(rate, _SECONDS)
        rows.append((f"{factor:g} × capacity", rate, opened, (time.process_time() - begun) / opened.seconds))
        await asyncio.sleep(2)
    sender.close()
    return rows


def main() -> None:
    """Measure on the embedded stack and print the table."""
    with stack(settings=_SETTINGS) as running:
        rows = asyncio.run(_measure(_prepared(running)))
    table = Table(title=" ".join(["HEAD table of 50 users, open loop", *(f"{k}={v}" for k, v in _SETTINGS.items())]))
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "load" else "right")
    capacity, normal = rows[0][2].goodput, percentile(rows[1][2].admitted, 0.99)
    for name, rate, each, generator in rows:
        slowest = percentile(each.admitted, 0.99)
        table.add_row(
            name,
            f"{rate:.0f}",
            f"{each.goodput:.0f}",
            f"{each.goodput / capacity:.2f}",
            f"{len(each.refused) / each.seconds:.0f}",
            f"{percentile(each.admitted, 0.5):.0f}",
            f"{slowest:.0f}",
            f"{slowest / normal:.1f}" if normal else "–",
            f"{percentile(each.refused, 0.5):.0f}",
            f"{percentile(each.refused, 0.99):.0f}",
            f"{100 * generator:.0f} %",
        )
        if each.other or each.without_retry_after or each.unsent:
            odd = {"other": each.other, "without Retry-After": each.without_retry_after, "unsent": each.unsent}
            print(json.dumps({"load": name, **odd}))
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
