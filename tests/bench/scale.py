# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.scale`: compare the cost of requests on a large catalog with that on a small one.

Two stacks with four worker processes each get slices of the same load in turns. The large catalog has `BENCH_TABLES`
tables in namespaces of a thousand, `BENCH_USERS` users in a hundred roles, and `BENCH_GRANTS` grants on single tables
(`tests.bench.filling`). The small one has a hundredth of the tables and users, and fewer grants for each user. A list
has as many visible tables in both.

A second table has requests to the large catalog alone: a list of 10,000 tables for a reader of three, and searches.
`BENCH_ONLY`: parts of names of requests, separated by commas.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from rich.console import Console
from rich.table import Table

from tests.bench import catalogs
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.filling import Filled, Filler, Size
from tests.bench.generator import Generator, Sent
from tests.bench.load import Request
from tests.bench.pairs import Comparison, Side, Slices, compared, figures, one_slice
from tests.bench.people import Issuer, interleaved
from tests.bench.searching import TEXT
from tests.bench.seeding import ManyTables
from tests.bench.stacks import Running, groups_of, stack

_LARGE = Size(
    tables=int(os.environ.get("BENCH_TABLES", "100000")),
    users=int(os.environ.get("BENCH_USERS", "10000")),
    grants=int(os.environ.get("BENCH_GRANTS", "1000000")),
)
_CONNECTIONS = tuple(map(int, os.environ.get("BENCH_CONNECTIONS", "8").split(",")))
_PAIRS = int(os.environ.get("BENCH_ROUNDS", "6"))
_SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
_ONLY = [word.strip() for word in os.environ.get("BENCH_ONLY", "").split(",") if word.strip()]
_WORKERS = {"LAKEGATE__WORKERS": "4"}
_WIDE = 10_000
_READERS = 20
_TABLES_OF_READER = 5
#: Each worker process has its own caches, and the connections of a load reach only some of them.
_WARM_CONNECTIONS = 64
_WARM_REQUESTS = 16 * _READERS * _TABLES_OF_READER
_ALONE_SLICES = 4

EXISTS_OWN = "table exists, own grant"
LOAD_OWN = "loadTable, own grant"
LIST_OWN = "list 1,000, sees some"
_OWN = (EXISTS_OWN, LOAD_OWN, LIST_OWN)
_NAMES = (*(name for name in catalogs.NAMES if name != catalogs.LIST_1000), *_OWN)
_ALONE = ("list 10,000, sees 3", "search, sees all", "search, sees some")


def _wanted(name: str) -> bool:
    return not _ONLY or any(word in name for word in _ONLY)


class Measured:
    """One stack with its filled catalog, and the requests that it gets."""

    def __init__(self, running: Running, size: Size) -> None:
        ready = running.ready
        token = ready.users["admin"].token
        self._running = running
        self._prepared = Prepared(
            Catalog(name="lakegate", url=ready.catalog_uri, token=token, warehouse=ready.warehouse)
        )
        self._filled: Filled = asyncio.run(Filler(running, self._prepared, size).fill())

    def requests(self) -> dict[str, Sent]:
        """Create the data of the requests that both catalogs get, and return these requests."""
        plain = {"X-Iceberg-Access-Delegation": "client-managed"}
        own = [(user, table) for user in range(_READERS) for table in self._filled.tables_of(user, _TABLES_OF_READER)]
        found = self._prepared.requests(filter(_wanted, catalogs.NAMES))
        bearers = [self._bearer(user) | plain for user in range(_READERS)]
        for name, method, url in (
            (EXISTS_OWN, "HEAD", "{}/tables/{}"),
            (LOAD_OWN, "GET", "{}/tables/{}"),
            (LIST_OWN, "GET", "{}/tables"),
        ):
            sent = [
                Request(method=method, url=f"{self._prepared.namespaces}/{url.format(*place)}", headers=bearers[user])
                for user, place in own
            ]
            found[name] = Sent(method=method, url="", headers={}, mix=interleaved(sent))
        return found

    def alone(self) -> dict[str, Sent]:
        """Create the data of the requests that only the large catalog gets, and return these requests."""
        ready, found = self._running.ready, dict[str, Sent]()
        carol = {"Authorization": f"Bearer {ready.users['carol'].token}"}
        if _wanted(_ALONE[0]):
            many = ManyTables(ready, self._prepared.client, self._prepared.namespaces, count=_WIDE)
            many.make("wide10000", {"carol": 3})
            url = f"{self._prepared.namespaces}/wide10000/tables"
            found[_ALONE[0]] = Sent(method="GET", url=url, headers=carol)
        warehouse = self._prepared.namespaces.rsplit("/", 2)[-2]
        search = f"{ready.management_uri}/v1/warehouse/{warehouse}/search-tabular"
        for name, headers in ((_ALONE[1], self._prepared.headers), (_ALONE[2], self._bearer(0))):
            found[name] = Sent(
                method="POST",
                url=search,
                headers=headers | {"Content-Type": "application/json"},
                body=f'{{"search":"{TEXT}"}}',
            )
        return found

    def _bearer(self, user: int) -> dict[str, str]:
        token = Issuer(self._running.ready, self._running.data).token(self._filled.subjects[user])
        return {"Authorization": f"Bearer {token}"}


def _both(console: Console, generator: Generator, sides: tuple[Side, Side], sent: list[dict[str, Sent]]) -> None:
    sizes = f"{_LARGE.tables:,} tables, {_LARGE.grants:,} grants, {_LARGE.users:,} users"
    table = Comparison(sides, f"{sizes}, beside a catalog with a hundredth of them; 4 worker processes each")
    for name in filter(_wanted, _NAMES):
        if name in _OWN:
            for each in sent:
                generator.send(each[name], _WARM_CONNECTIONS, seconds=0, requests=_WARM_REQUESTS)
        plan = Slices(pairs=_PAIRS, seconds=_SECONDS, warm_seconds=_SECONDS)
        for connections in _CONNECTIONS:
            both = (sent[0][name], sent[1][name])
            table.add(name, connections, compared(generator, sides, both, connections, plan))
    console.print(table.table)


def _alone(console: Console, generator: Generator, side: Side, sent: dict[str, Sent]) -> None:
    plan = Slices(pairs=1, seconds=_ALONE_SLICES * _SECONDS, warm_seconds=_SECONDS)
    table = Table(title="The large catalog alone, one connection")
    groups = list(side.groups)
    for column in ("request", "req/s", "p50 ms", "p99 ms", *groups, "sum", "load", "failed"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for name in filter(_wanted, _ALONE):
        generator.send(sent[name], 1, seconds=plan.warm_seconds)
        table.add_row(name, *figures([one_slice(generator, side, sent[name], 1, plan)], groups, groups))
    console.print(table)


def _timed(what: str, work: Callable[[], Measured]) -> Measured:
    begun = time.perf_counter()
    made = work()
    print(f"{what} filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    return made


def main() -> None:
    """Start both stacks, fill them, measure, and print the tables."""
    console = Console(width=170)
    with ExitStack() as held:
        runs = [held.enter_context(stack(settings=_WORKERS)) for _ in range(2)]
        large = _timed("large", lambda: Measured(runs[0], _LARGE))
        small = _timed("small", lambda: Measured(runs[1], _LARGE.hundredth()))
        sides = (Side("large", groups_of(runs[0].ready)), Side("small", groups_of(runs[1].ready)))
        sent = [large.requests(), small.requests()]
        generator = Generator()
        held.callback(generator.close)
        _both(console, generator, sides, sent)
        if any(map(_wanted, _ALONE)):
            _alone(console, generator, sides[0], large.alone())


if __name__ == "__main__":
    main()
