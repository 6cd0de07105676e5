# SPDX-License-Identifier: Apache-2.0
"""Compare this version of Lakegate with another: `python -m tests.bench.versions BASE_CHECKOUT`.

Both stacks run at once on this machine, each with its own PostgreSQL, OpenFGA, OPA and store, and get slices of the
same load in turns. A lever is measured alone with the same checkout on both sides and a setting on one of them:
`python -m tests.bench.versions . --base LAKEGATE__NAME=VALUE`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tests.bench import catalogs, people
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.cpu import idle_milliseconds
from tests.bench.generator import Generator, Sent
from tests.bench.options import selects
from tests.bench.pairs import Comparison, Side, Slices, compared, idle_line
from tests.bench.people import Mixes
from tests.bench.stacks import OURS, Running, groups_of, stack

NAMES = (*catalogs.NAMES, *people.NAMES)
_WIDTH = 170


def setting(text: str) -> tuple[str, str]:
    """Return the name and the value of `LAKEGATE__NAME=VALUE`.

    Raises:
        argparse.ArgumentTypeError: it has another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("LAKEGATE__"):
        raise argparse.ArgumentTypeError(f"{text!r} is no setting: write LAKEGATE__NAME=VALUE")
    return name, value


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the arguments of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.versions", description=__doc__)
    parser.add_argument("base", type=Path, help="checkout of the other version, for example a git worktree")
    parser.add_argument("--our-checkout", type=Path, default=OURS, help="checkout of our side; default: this one")
    parser.add_argument("--ours", type=setting, action="append", default=[], help="a setting of our side only")
    parser.add_argument(
        "--base", type=setting, action="append", default=[], dest="base_settings", help="a setting of the base only"
    )
    parser.add_argument(
        "--only", default="", help="measure requests with one of these words (a,b or a;b) in their names"
    )
    parser.add_argument("--connections", default="8,32", help="numbers of connections, separated by commas")
    parser.add_argument("--pairs", type=int, default=6, help="number of pairs of slices")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a slice")
    parser.add_argument("--warm", type=float, default=1.0, help="seconds of load on each side before the first pair")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds to measure both stacks without requests")
    return parser.parse_args(arguments)


@dataclass(frozen=True, slots=True)
class Measured:
    """The requests of one stack by name. `mixes` is None if no mix is measured."""

    sent: dict[str, Sent]
    mixes: Mixes | None


def prepared(running: Running, name: str, names: Sequence[str]) -> Measured:
    """Create the data of the named requests in a stack, and return the requests."""
    ready = running.ready
    token = ready.users["admin"].token
    catalog = Prepared(Catalog(name=name, url=ready.catalog_uri, token=token, warehouse=ready.warehouse))
    sent = catalog.requests(names)
    if not set(names) & set(people.NAMES):
        return Measured(sent, None)
    mixes = people.Company(ready, running.data, catalog.client, catalog.namespaces).mixes()
    return Measured(sent | mixes.sent, mixes)


def slices_of(name: str, both: tuple[Measured, Measured], plan: Slices) -> Slices:
    """Return how to measure a request: a mix in the state of the caches that its name says, commits to known tables."""
    if name == catalogs.COMMIT:
        return replace(plan, warm_requests=people.WARM_PASSES * catalogs.COMMITTED)
    ours, base = both[0].mixes, both[1].mixes
    if name not in people.NAMES or ours is None or base is None:
        return plan
    if name == people.FIRST:
        return replace(plan, requests=ours.one_pass, warm_seconds=0.0, before=(ours.forget, base.forget))
    return replace(plan, warm_requests=people.WARM_PASSES * ours.one_pass)


def main() -> None:
    """Start both stacks, measure, and print the table."""
    options = parsed()
    names = [name for name in NAMES if selects(options.only, name)]
    console = Console(width=_WIDTH)
    plan = Slices(pairs=options.pairs, seconds=options.seconds, warm_seconds=options.warm)
    with ExitStack() as held:
        started = ((options.our_checkout, options.ours), (options.base, options.base_settings))
        runs = [held.enter_context(stack(checkout, dict(settings))) for checkout, settings in started]
        ours, base = (Side(name, groups_of(run.ready)) for name, run in zip(("ours", "base"), runs, strict=True))
        both = (prepared(runs[0], ours.name, names), prepared(runs[1], base.name, names))
        generator = Generator()
        held.callback(generator.close)
        for side in (ours, base):
            console.print(idle_line(side.name, idle_milliseconds(side.groups, options.idle)))
        title = f"{plan.pairs} pairs of slices of {plan.seconds:g} s in turns; ratios are medians of the pairs"
        table = Comparison((ours, base), title)
        for name in names:
            sent, how = (both[0].sent[name], both[1].sent[name]), slices_of(name, both, plan)
            for connections in map(int, options.connections.split(",")):
                table.add(name, connections, compared(generator, (ours, base), sent, connections, how))
    console.print(table.table)


if __name__ == "__main__":
    main()
