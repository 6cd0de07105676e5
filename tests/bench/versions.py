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
from pathlib import Path

from rich.console import Console

from tests.bench import catalogs
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.cpu import idle_milliseconds
from tests.bench.generator import Generator, Sent
from tests.bench.pairs import Comparison, Side, Slices, compared, idle_line
from tests.bench.stacks import OURS, Running, groups_of, stack

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
    parser.add_argument("--ours", type=setting, action="append", default=[], help="a setting of our side only")
    parser.add_argument("--base-setting", "--base", type=setting, action="append", default=[], dest="base_settings")
    parser.add_argument("--only", default="", help="words separated by commas; measure requests with one in their name")
    parser.add_argument("--connections", default="8,32", help="numbers of connections, separated by commas")
    parser.add_argument("--pairs", type=int, default=6, help="number of pairs of slices")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a slice")
    parser.add_argument("--warm", type=float, default=1.0, help="seconds of load on each side before the first pair")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds to measure both stacks without requests")
    return parser.parse_args(arguments)


def selected(only: str, names: Sequence[str]) -> list[str]:
    """Return the names that contain one of the words; a word that is a whole name selects that name alone."""
    words = [word for word in only.split(",") if word]
    return [name for name in names if not words or any(word in name for word in words)]


def _prepared(running: Running, name: str, names: Sequence[str]) -> dict[str, Sent]:
    ready = running.ready
    catalog = Catalog(name=name, url=ready.catalog_uri, token=ready.users["admin"].token, warehouse=ready.warehouse)
    return Prepared(catalog).requests(names)


def main() -> None:
    """Start both stacks, measure, and print the table."""
    options = parsed()
    names = selected(options.only, catalogs.NAMES)
    console = Console(width=_WIDTH)
    plan = Slices(pairs=options.pairs, seconds=options.seconds, warm_seconds=options.warm)
    with ExitStack() as held:
        runs = [
            held.enter_context(stack(checkout, dict(settings)))
            for checkout, settings in ((OURS, options.ours), (options.base, options.base_settings))
        ]
        ours, base = (Side(name, groups_of(run.ready)) for name, run in zip(("ours", "base"), runs, strict=True))
        requests = [_prepared(run, side.name, names) for run, side in zip(runs, (ours, base), strict=True)]
        generator = Generator()
        held.callback(generator.close)
        for side in (ours, base):
            console.print(idle_line(side.name, idle_milliseconds(side.groups, options.idle)))
        title = f"{plan.pairs} pairs of slices of {plan.seconds:g} s in turns; ratios are medians of the pairs"
        table = Comparison((ours, base), title)
        for name in names:
            for connections in map(int, options.connections.split(",")):
                sent = (requests[0][name], requests[1][name])
                table.add(name, connections, compared(generator, (ours, base), sent, connections, plan))
    console.print(table.table)


if __name__ == "__main__":
    main()
