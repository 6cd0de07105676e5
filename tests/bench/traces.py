# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of traces: `python -m tests.bench.traces` compares gateways with and without them.

All run on one stack and have one worker process: traces of all requests, of 5 % (the default), of 1 %, and off. A
collector in this process receives and drops the spans. The CPU time of `gateway` includes sending them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rich.console import Console

from tests.bench import options as variables
from tests.bench.catalogs import COMMIT, LOAD, VENDED, Catalog, Prepared
from tests.bench.generator import Generator
from tests.bench.hot import further
from tests.bench.pairs import Comparison, Side, Slices, compared
from tests.bench.stacks import groups_of, stack

_WARM_SECONDS = 2.0


@contextmanager
def dropped() -> Iterator[str]:
    """Context manager. Run a collector that drops everything; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()


def compare(variants: Mapping[str, Mapping[str, str]], off: str) -> None:
    """Measure a gateway with each set of `variants` next to one without, on one stack, and print a table for each.

    A variant is settings by their names. The CPU time of all processes counts. `off` names the other gateway.
    """
    options, console = variables.read(), Console(width=170)
    plan = Slices(pairs=options.rounds, seconds=options.seconds, warm_seconds=_WARM_SECONDS)
    title = f"{plan.pairs} pairs of slices of {plan.seconds:g} s in turns; ratios are medians of the pairs"
    with ExitStack() as held:
        ready = held.enter_context(stack()).ready
        catalog = Prepared(
            Catalog(name="ours", url=ready.catalog_uri, token=ready.users["admin"].token, warehouse=ready.warehouse)
        )
        held.callback(catalog.close)
        requests = catalog.requests([name for name in (LOAD, VENDED, COMMIT) if options.selects(name)])
        generator = Generator()
        held.callback(generator.close)
        without = held.enter_context(further(ready, {"WORKERS": "1"}))
        engines = {name: pids for name, pids in groups_of(ready).items() if name != "gateway"}
        for called, settings in variants.items():
            with further(ready, {"WORKERS": "1", **settings}) as extended:
                gateways = (extended, without)
                sides = (
                    Side(called, {"gateway": extended.pids, **engines}),
                    Side(off, {"gateway": without.pids, **engines}),
                )
                table = Comparison(sides, title)
                for name, request in requests.items():
                    first, second = (
                        replace(request, url=request.url.replace(ready.catalog_uri, gateway.catalog_uri))
                        for gateway in gateways
                    )
                    for connections in options.connections:
                        both = compared(generator, sides, (first, second), connections, plan)
                        table.add(name, connections, both)
            console.print(table.table)


def main() -> None:
    """Run the servers, measure, and print the table."""
    with dropped() as address:
        compare(
            {
                f"traces of {float(ratio):.0%}": {"TRACING__ENDPOINT": address, "TRACING__SAMPLE_RATIO": ratio}
                for ratio in ("1.0", "0.05", "0.01")
            },
            "no traces",
        )


if __name__ == "__main__":
    main()
