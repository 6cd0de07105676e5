# SPDX-License-Identifier: Apache-2.0
"""`make bench-peer TARGET=…`: compare Lakegate with another Iceberg REST catalog on this machine.

Both get the same requests in turns from the same process. The requests and their data need only the protocol, so any
catalog can be the target. Users and roles are no part of the protocol, so the mixes are not measured here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import httpx
from rich.console import Console

from tests.bench import catalogs, options, targets
from tests.bench.catalogs import COMMIT, COMMITTED, Catalog, CatalogError, Prepared
from tests.bench.cpu import idle_milliseconds
from tests.bench.generator import Generator, Sent
from tests.bench.pairs import Comparison, Side, Slices, compared, idle_line
from tests.bench.stacks import GROUPS, groups_of, stack
from tests.bench.targets import Target

_WIDTH = 170
_WARM_SECONDS = 1.0
_WARM_PASSES = 4


def requests_of(prepared: Prepared, names: Sequence[str]) -> tuple[dict[str, Sent], dict[str, str]]:
    """Return the requests that a catalog answers, and for each of the others the reason."""
    found: dict[str, Sent] = {}
    refused: dict[str, str] = {}
    for name in names:
        try:
            found |= prepared.requests([name])
            reason = prepared.refusal(name, found[name])
        except CatalogError as error:
            reason = str(error)
        if reason:
            refused[name] = reason
    return {name: sent for name, sent in found.items() if name not in refused}, refused


def compare(target: Target, chosen: options.Options, console: Console) -> None:
    """Run a stack of this checkout, measure it and the target in turns, and print the table.

    Raises:
        CatalogError: the target cannot be measured.
        httpx.TransportError: the target stopped to answer.
    """
    names = [name for name in catalogs.NAMES if chosen.selects(name)]
    with ExitStack() as held:
        # The target first: its errors need no stack.
        theirs = Prepared(target.catalog)
        held.callback(theirs.close)
        held.callback(_clean, theirs, console)
        ready = held.enter_context(stack()).ready
        token = ready.users["admin"].token
        own = Prepared(Catalog(name="ours", url=ready.catalog_uri, token=token, warehouse=ready.warehouse))
        held.callback(own.close)
        sides = (Side("ours", groups_of(ready)), Side("peer", target.groups))
        (ours, none_of_ours), (others, none_of_theirs) = (requests_of(each, names) for each in (own, theirs))
        generator = Generator()
        held.callback(generator.close)
        for side in sides:
            if side.groups:
                console.print(idle_line(side.name, idle_milliseconds(side.groups, chosen.idle_seconds)))
        title = f"{chosen.rounds} pairs of slices of {chosen.seconds:g} s in turns; ratios are medians of the pairs"
        table = Comparison(sides, title)
        plan = Slices(pairs=chosen.rounds, seconds=chosen.seconds, warm_seconds=_WARM_SECONDS)
        for name in (name for name in names if name in ours and name in others):
            how = replace(plan, warm_requests=_WARM_PASSES * COMMITTED) if name == COMMIT else plan
            for connections in chosen.connections:
                sent = (ours[name], others[name])
                table.add(name, connections, compared(generator, sides, sent, connections, how))
        console.print(table.table)
        _print_refused(console, {"ours": none_of_ours, "the peer": none_of_theirs})


def _print_refused(console: Console, refused: Mapping[str, Mapping[str, str]]) -> None:
    for side, reasons in refused.items():
        for name, reason in reasons.items():
            console.print(f"not measured: {name}, because {side} answered: {reason}", markup=False)


def _clean(prepared: Prepared, console: Console) -> None:
    if left := prepared.remove():
        console.print(f"not dropped in the peer: {', '.join(left)}. Drop these namespaces with its own tools.")


def main() -> None:
    """Read the variables and compare. A target that cannot be measured ends the command with a message."""
    try:
        compare(targets.read(os.environ, GROUPS), options.read(), Console(width=_WIDTH))
    except CatalogError as error:
        raise SystemExit(str(error)) from None
    except httpx.TransportError as error:
        raise SystemExit(f"the peer stopped to answer: {error!r}") from None


if __name__ == "__main__":
    main()
