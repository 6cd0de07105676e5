# SPDX-License-Identifier: Apache-2.0
"""Fail if the CPU time of a common request grew by more than a quarter: `python -m tests.bench.growth`.

The cost of a request is the CPU time of the gateway, OPA, OpenFGA and PostgreSQL together, divided by that of the floor
(`tests.bench.floor`) in slices of the same run. `growth.json` records it; `--write` replaces the record. The numbers of
statements and calls are compared exactly by `tests/integration/test_bounded_cost.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from tests.bench import catalogs
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.floor_server import floor_server
from tests.bench.generator import Generator, Sent
from tests.bench.pairs import Side, Slices, compared, milliseconds_a_request
from tests.bench.stacks import groups_of, stack

RECORD = Path(__file__).parents[1] / "results" / "growth.json"
LIMIT = 1.25
_FLOOR = "floor"
_CONNECTIONS = 32
#: The object store is not counted: its work depends on its own compaction.
_GROUPS = ("gateway", "OPA", "OpenFGA", "PostgreSQL")


def grown(measured: Mapping[str, float], recorded: Mapping[str, float]) -> list[str]:
    """Return a sentence for each request whose cost is above `LIMIT` times its record, or that has no record."""
    found = []
    for name, cost in measured.items():
        if name not in recorded:
            found.append(f"{name}: {cost:.2f} floors, without a record; write one with --write")
        elif cost > LIMIT * recorded[name]:
            found.append(f"{name}: {cost:.2f} floors, {cost / recorded[name]:.2f} times the record")
    return found


def costs(names: Sequence[str], plan: Slices) -> dict[str, float]:
    """Measure the requests on a stack of this checkout. Return their CPU time in units of the floor's, by name."""
    found: dict[str, float] = {}
    with ExitStack() as held:
        ready = held.enter_context(stack()).ready
        token = ready.users["admin"].token
        catalog = Prepared(Catalog(name="ours", url=ready.catalog_uri, token=token, warehouse=ready.warehouse))
        held.callback(catalog.close)
        requests = catalog.requests([*names, catalogs.EXISTS])
        table = catalog.id_of(requests[catalogs.EXISTS].url)
        floor = held.enter_context(floor_server(ready, table))
        generator = Generator()
        held.callback(generator.close)
        groups = {name: pids for name, pids in groups_of(ready).items() if name in _GROUPS}
        sides = (Side("ours", groups), Side(_FLOOR, {_FLOOR: [floor.pid]}))
        read = Sent(method="GET", url=f"{floor.url}/{table}", headers={})
        for name in names:
            ours, base = compared(generator, sides, (requests[name], read), _CONNECTIONS, plan)
            refused = sum(each.result.refused for each in ours)
            if refused:
                raise SystemExit(f"{name}: the gateway refused {refused} requests, so its cost cannot be compared")
            total = sum(milliseconds_a_request(ours, group) for group in groups)
            found[name] = round(total / milliseconds_a_request(base, _FLOOR), 2)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and exit with status 1 if a request costs more than its record allows."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the record by this run")
    parser.add_argument("--pairs", type=int, default=4, help="number of pairs of slices")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a slice")
    options = parser.parse_args(arguments)
    measured = costs(catalogs.NAMES, Slices(pairs=options.pairs, seconds=options.seconds, warm_seconds=1.0))
    recorded = msgspec.json.decode(RECORD.read_bytes(), type=dict[str, float]) if RECORD.exists() else {}
    table = Table("request", "floors", "record", title="CPU of gateway, OPA, OpenFGA and PostgreSQL ÷ CPU of the floor")
    for name, cost in measured.items():
        table.add_row(name, f"{cost:.2f}", f"{recorded[name]:.2f}" if name in recorded else "–")
    Console().print(table)
    if options.write:
        RECORD.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=2) + b"\n")
    elif found := grown(measured, recorded):
        raise SystemExit(
            "\n".join(found) + f"\nThe limit is {LIMIT:g} times the record. Measure again on a quiet machine. "
            "If the growth is intended, describe it in CHANGELOG.md and run the command with --write."
        )


if __name__ == "__main__":
    main()
