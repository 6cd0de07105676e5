# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.overload`: send twice the capacity of the gateway, and compare goodput and response times.

Each of 50 users sends `HEAD table` requests at fixed times, whether or not earlier ones were answered (open loop). The
capacity is the highest rate of answers of a closed loop. Prints, for half, once and twice the capacity: answers and
refusals per second, the share of the capacity, and response times of admitted and refused requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp
from rich.console import Console
from rich.table import Table

from tests.bench.catalogs import Catalog, Prepared
from tests.bench.load import Request
from tests.bench.people import STEADY, Company
from tests.bench.stacks import Running, stack

_SECONDS = float(os.environ.get("BENCH_SECONDS", "10"))
_CONNECTIONS = 32


@dataclass
class Measured:
    """Durations in seconds of admitted and refused requests.

    `in_time` of the admitted ones were answered during the load of `seconds` seconds.
    """

    seconds: float = 0.0
    in_time: int = 0
    admitted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    other: dict[int, int] = field(default_factory=dict)
    without_retry_after: int = 0

    @property
    def goodput(self) -> float:
        """Return answers per second during the load."""
        return self.in_time / self.seconds

    def p99(self, times: Sequence[float]) -> float:
        """Return the 99th percentile in milliseconds; 0 without any."""
        ordered = sorted(times)
        return 1000 * ordered[int(len(ordered) * 0.99)] if ordered else 0.0


class Sender:
    """Sends the requests of users in turn, and records their answers."""

    def __init__(self, session: aiohttp.ClientSession, requests: Sequence[Request]) -> None:
        self._session = session
        self._requests = requests

    async def send(self, number: int, measured: Measured) -> None:
        """Send the request with this number."""
        begun = time.perf_counter()
        request = self._requests[number % len(self._requests)]
        async with self._session.request(request.method, request.url, headers=request.headers) as answer:
            took = time.perf_counter() - begun
            if answer.status == 204:
                measured.admitted.append(took)
            elif answer.status in (429, 503):
                measured.refused.append(took)
                measured.without_retry_after += "Retry-After" not in answer.headers
            else:
                measured.other[answer.status] = measured.other.get(answer.status, 0) + 1

    async def closed(self, seconds: float) -> Measured:
        """Send over `_CONNECTIONS` connections, each with one request in progress."""
        measured, started = Measured(), time.perf_counter()

        async def one(first: int) -> None:
            number = first
            while time.perf_counter() - started < seconds:
                await self.send(number, measured)
                number += _CONNECTIONS

        await asyncio.gather(*(one(first) for first in range(_CONNECTIONS)))
        measured.seconds, measured.in_time = time.perf_counter() - started, len(measured.admitted)
        return measured

    async def opened(self, rate: float, seconds: float) -> Measured:
        """Send `rate` requests per second at fixed times."""
        measured, started, number = Measured(), time.perf_counter(), 0
        tasks: set[asyncio.Task[None]] = set()
        while (now := time.perf_counter() - started) < seconds:
            while number < now * rate:
                task = asyncio.create_task(self.send(number, measured))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                number += 1
            await asyncio.sleep(0.005)
        measured.seconds = time.perf_counter() - started
        measured.in_time = len(measured.admitted)
        await asyncio.gather(*tasks)
        return measured


def _prepared(running: Running) -> list[Request]:
    """Create tables that 50 users may read. Return the request `HEAD table` of each user."""
    ready = running.ready
    catalog = Prepared(
        Catalog(name="ours", url=ready.catalog_uri, token=ready.users["admin"].token, warehouse=ready.warehouse)
    )
    mixes = Company(ready, running.data, catalog.client, catalog.namespaces).mixes()
    return [each for each in mixes.sent[STEADY].mix if each.method == "HEAD"]


async def _measure(requests: Sequence[Request]) -> list[tuple[str, float, Measured]]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        sender = Sender(session, requests)
        await sender.closed(_SECONDS / 2)
        closed = await sender.closed(_SECONDS)
        rows = [(f"closed loop, {_CONNECTIONS} connections", 0.0, closed)]
        for factor in (0.5, 1.0, 2.0):
            rate = factor * closed.goodput
            rows.append((f"{factor:g} × capacity", rate, await sender.opened(rate, _SECONDS)))
            await asyncio.sleep(2)
        return rows


def main() -> None:
    """Measure on the embedded stack and print the table."""
    with stack() as running:
        rows = asyncio.run(_measure(_prepared(running)))
    table = Table(title="HEAD table of 50 users, open loop")
    for column in (
        "load",
        "sent/s",
        "answered/s",
        "of capacity",
        "refused/s",
        "p50 ms",
        "p99 ms",
        "p99 of refusals ms",
    ):
        table.add_column(column, justify="right")
    capacity = rows[0][2].goodput
    for name, rate, each in rows:
        table.add_row(
            name,
            f"{rate:.0f}",
            f"{each.goodput:.0f}",
            f"{each.goodput / capacity:.2f}",
            f"{len(each.refused) / each.seconds:.0f}",
            f"{1000 * sorted(each.admitted)[len(each.admitted) // 2]:.0f}",
            f"{each.p99(each.admitted):.0f}",
            f"{each.p99(each.refused):.0f}",
        )
        if each.other or each.without_retry_after:
            print(json.dumps({"load": name, "other": each.other, "without Retry-After": each.without_retry_after}))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
