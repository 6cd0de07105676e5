# SPDX-License-Identifier: Apache-2.0
"""Load generators: clients that load tables at a steady rate, and a client that sends large `batch-check` requests."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World

#: Number of items of one batch: the maximum of a request.
ITEMS = 1000
#: Requests that the abusive client keeps in flight.
PARALLEL = 8


def _client(person: Person) -> httpx.Client:
    """Return an HTTP client without a trust store: loading one takes 20 ms of processor time, and no test here uses
    TLS.
    """
    return httpx.Client(
        base_url=person.http.base_url,
        headers=person.http.headers,
        trust_env=False,
        verify=False,  # noqa: S501 - plain HTTP on loopback
    )


@dataclass
class Measured:
    """Statuses and latencies (in seconds) of the requests of one or more clients."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def note(self, status: int, seconds: float) -> None:
        """Record one response."""
        self.statuses[status] += 1
        self.seconds.append(seconds)

    def percentile(self, percent: float) -> float:
        """Return the latency that `percent` of the requests did not exceed; 0.0 without requests."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0

    @property
    def p95(self) -> float:
        """Return the 95th percentile of the latencies."""
        return self.percentile(95)

    def __str__(self) -> str:
        return f"{len(self.seconds)} requests, {dict(self.statuses)}, p50 {self.percentile(50):.3f}, p95 {self.p95:.3f}"


def load_steadily(person: Person, tables: Sequence[Table], *, seconds: float, pause: float = 0.1) -> Measured:
    """Load the tables in turn for `seconds`, with about `pause` seconds between two requests.

    Each request uses a fresh connection, which spreads the requests over the worker processes. Random pauses keep
    several users from sending at the same moment.
    """
    measured, chance = Measured(), random.Random(person.id)
    ends = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ends:
        with _client(person) as http:
            began = time.monotonic()
            answer = http.get(tables[number % len(tables)].path, timeout=60)
            measured.note(answer.status_code, time.monotonic() - began)
        number += 1
        time.sleep(pause * chance.uniform(0.5, 1.5))
    return measured


def load_together(
    people: Sequence[Person], tables: Sequence[Table], *, seconds: float, pause: float = 0.1
) -> list[Measured]:
    """Run `load_steadily` for several users concurrently; return one result for each user."""
    with ThreadPoolExecutor(len(people)) as pool:
        return list(pool.map(lambda each: load_steadily(each, tables, seconds=seconds, pause=pause), people))


def large_batch(world: World, tables: Sequence[Table], *, items: int = ITEMS) -> dict[str, Any]:
    """Return the body of a `batch-check` about the caller: existing tables first, then names that do not exist."""
    names = [(each.namespace, each.name) for each in tables]
    names += [(tables[0].namespace, f"absent_{number}") for number in range(items - len(names))]
    return {
        "checks": [
            {
                "operation": {
                    "table": {
                        "warehouse-id": world.warehouse,
                        "namespace": [namespace],
                        "table": name,
                        "action": "read_data",
                    }
                }
            }
            for namespace, name in names[:items]
        ]
    }


@contextmanager
def abuse(person: Person, body: object, *, parallel: int = PARALLEL) -> Iterator[Measured]:
    """Send `body` as `batch-check` on `parallel` connections repeatedly until the block ends."""
    measured, over, lock = Measured(), threading.Event(), threading.Lock()

    def send() -> None:
        with _client(person) as http:
            while not over.is_set():
                began = time.monotonic()
                try:
                    status = http.post("/management/v1/action/batch-check", json=body, timeout=60).status_code
                except httpx.TransportError:
                    status = 0
                with lock:
                    measured.note(status, time.monotonic() - began)

    threads = [threading.Thread(target=send) for _ in range(parallel)]
    for each in threads:
        each.start()
    try:
        yield measured
    finally:
        over.set()
        for each in threads:
            each.join()
