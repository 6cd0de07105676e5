# SPDX-License-Identifier: Apache-2.0
"""`make bench`: compare the gateway with its floor, on the embedded stack with audit on, in slices in turns.

Everything runs on this machine at once (gateway, PostgreSQL, OpenFGA, OPA, object store, load). So compare the ratio to
the floor, and CPU time, rather than single figures. CPU time is that of all slices together, with the background work
that happened in them; a line at the end tells the background work without requests.
`BENCH_ONLY=commit,list` measures the requests with one of these words in their name.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from contextlib import ExitStack
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from lakegate.local.ready import Ready
from tests.bench import options as variables
from tests.bench.cases import Case, Cases
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.cpu import idle_milliseconds
from tests.bench.floor_server import floor_server
from tests.bench.generator import Generator, Sent
from tests.bench.hot import Gateway, bytes_of_an_allow, further, policies_last, revocations
from tests.bench.options import Options
from tests.bench.pairs import LOAD, Side, Slice, Slices, compared, figures, idle_line, median_ratio, rate
from tests.bench.stacks import groups_of, stack
from tests.bench.tasks import throughput
from tests.bench.tokens import token_costs

_WARM_SECONDS = 0.5
_REVOCATIONS = 30


def _measured(
    running: Ready, gateway: Gateway, generator: Generator, case: Case, floor: str, connections: int, options: Options
) -> tuple[list[Slice], list[Slice]]:
    """Return the slices of the gateway and those of the floor."""
    # A gateway without caches has another port.
    ours, other = (uri.removesuffix("/catalog") for uri in (running.catalog_uri, gateway.catalog_uri))
    sent = replace(case.sent, url=case.sent.url.replace(ours, other))
    plan = Slices(
        pairs=options.rounds,
        seconds=options.seconds,
        warm_seconds=0.0 if case.before else _WARM_SECONDS,
        requests=case.requests,
        warm_requests=case.warm_requests,
        before=(case.before, _nothing) if case.before else None,
    )
    sides = (Side("gateway", {**groups_of(running), "gateway": gateway.pids}), Side("floor"))
    return compared(generator, sides, (sent, Sent(method="GET", url=floor, headers={})), connections, plan)


def _nothing() -> None:
    """Do nothing before a slice of the floor."""


def _worker_processes(running: Ready) -> list[float]:
    """Return the resident megabytes of each gateway worker."""
    answer = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, running.pids["gateway"][1:]))], capture_output=True, text=True
    )
    return [int(line) / 1024 for line in answer.stdout.split()]


def _table(options: Options, groups: list[str]) -> Table:
    title = f"{options.rounds} pairs of slices of {options.seconds:g} s in turns; audit on"
    caption = "gateway … load: CPU milliseconds a request over all slices; load is the generator"
    shown = Table(title=title, caption=caption, expand=True)
    for column in ("request", "conns", "req/s", "p50 ms", "p99 ms", *groups, "sum", LOAD, "failed"):
        shown.add_column(column, justify="left" if column == "request" else "right")
    shown.add_column("floor/s", justify="right")
    shown.add_column("of the floor", justify="right")
    return shown


def _row(found: tuple[list[Slice], list[Slice]], groups: list[str]) -> list[str]:
    ours, floor = ([each.result.per_second for each in slices] for slices in found)
    ratio = median_ratio(ours, floor)
    return [*figures(found[0], groups, groups), rate(statistics.median(floor)), f"{ratio or 0:.3f}"]


def _tasks_line(options: Options, ended: int, waiting: int) -> str:
    found = throughput(options.tasks, options.rounds, ended=ended, waiting=waiting)
    beside = f", beside {ended:,} that ended and {waiting:,} for later" if ended else ""
    return (
        f"tasks that do nothing{beside}: {found.per_second:,.0f}/s in one process; "
        f"two bare transactions each: {found.floor_per_second:,.0f}/s; of that floor {found.ratio:.3f}"
    )


def _measure(options: Options, console: Console) -> None:
    """Measure the selected requests on a stack, and print the figures."""
    result = []
    with ExitStack() as held:
        running = held.enter_context(stack())
        ready = running.ready
        admin = ready.users["admin"].token
        catalog = Prepared(Catalog(name="ours", url=ready.catalog_uri, token=admin, warehouse=ready.warehouse))
        held.callback(catalog.close)
        groups = groups_of(ready)
        cases = Cases(running, options, catalog.client, catalog.namespaces, catalog.headers).all()
        idle = idle_milliseconds(groups, options.idle_seconds)
        generator = Generator()
        held.callback(generator.close)
        table = cases[0].floor_table
        floor = held.enter_context(floor_server(ready, table))
        own = Gateway(ready.catalog_uri, ready.pids["gateway"])
        shown = _table(options, list(groups))
        for case in cases:
            with ExitStack() as during:
                if case.opa_called:
                    policies_last(ready, 0)
                    during.callback(policies_last, ready, 1)
                gateway = during.enter_context(further(ready, dict(case.settings))) if case.settings else own
                for connections in case.connections:
                    url = f"{floor.url}/{case.floor_table}"
                    found = _measured(ready, gateway, generator, case, url, connections, options)
                    shown.add_row(case.name, str(connections), *_row(found, list(groups)))
        if options.selects("revoke"):
            warehouse = catalog.namespaces.rsplit("/", 2)[-2]
            median, longest = revocations(ready, table, warehouse, _REVOCATIONS)
            result.append(
                f"revoke, until its success: median {median:.0f} ms, longest of {_REVOCATIONS} {longest:.0f} ms"
            )
        memory = _worker_processes(ready)
    console.print(shown)
    console.print(idle_line("the stack", idle))
    for line in result:
        console.print(line)
    console.print(f"memory of a gateway worker: {', '.join(f'{each:.0f} MB' for each in memory)}")


def main() -> None:
    """Measure, and print the figures."""
    options, console = variables.read(), Console(width=170)
    # Measured before the stack starts, with a separate database.
    if options.selects("tasks"):
        for ended in (0, 100_000):
            console.print(_tasks_line(options, ended, ended))
    if options.only == "tasks":
        return
    _measure(options, console)
    console.print(token_costs())
    console.print(f"a remembered allow: {bytes_of_an_allow(20_000):.0f} bytes")
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
