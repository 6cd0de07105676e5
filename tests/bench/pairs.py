# SPDX-License-Identifier: Apache-2.0
"""Compare two servers by slices of load in turns (A B, B A, …), so that a busy moment of the machine meets both.

The ratio is the median of the ratios of the pairs. CPU times are totals over all slices: background work counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from tests.bench.cpu import seconds_by_group
from tests.bench.generator import Generator, Sent
from tests.bench.load import Result

LOAD = "load"
"""The name of the generator's own CPU time."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two compared servers, and the process ids of its groups by name; none if they are unknown."""

    name: str
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slice:
    """One load on one server; CPU seconds by group, and those of the generator under `LOAD`."""

    result: Result
    cpu: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """The length and the number of the slices of a measurement.

    `requests`: the number of requests of a slice, 0: `seconds` limit it. `warm_requests`: requests on each side before
    the first pair, 0: `warm_seconds` limit them. `before`: called before each slice of its side, outside its time.
    """

    pairs: int
    seconds: float
    warm_seconds: float
    requests: int = 0
    warm_requests: int = 0
    before: tuple[Callable[[], None], Callable[[], None]] | None = None


def in_turns(pairs: int) -> Iterator[tuple[int, int]]:
    """Yield for each pair which of the two (0, 1) is measured first, and which second: 0 1, 1 0, 0 1, …"""
    for pair in range(pairs):
        yield (0, 1) if pair % 2 == 0 else (1, 0)


def median_ratio(ours: Iterable[float], others: Iterable[float]) -> float | None:
    """Return the median of the ratios of paired values; None if no pair has a positive divisor."""
    ratios = [one / other for one, other in zip(ours, others, strict=True) if other > 0]
    return statistics.median(ratios) if ratios else None


def milliseconds_a_request(slices: Sequence[Slice], group: str) -> float:
    """Return CPU milliseconds of a group for each answered request, over all slices together."""
    answered = sum(each.result.answered for each in slices)
    return 1000 * sum(each.cpu.get(group, 0.0) for each in slices) / max(1, answered)


def one_slice(generator: Generator, side: Side, sent: Sent, connections: int, plan: Slices) -> Slice:
    """Send one load, and measure the CPU time of the side's groups."""
    groups = {**side.groups, LOAD: [generator.pid]}
    before = seconds_by_group(groups)
    result = generator.send(sent, connections, seconds=plan.seconds, requests=plan.requests)
    after = seconds_by_group(groups)
    return Slice(result, {name: after[name] - before[name] for name in groups})


def compared(
    generator: Generator,
    sides: tuple[Side, Side],
    sent: tuple[Sent, Sent],
    connections: int,
    plan: Slices,
) -> tuple[list[Slice], list[Slice]]:
    """Measure one request on both sides in turns. Element n of each list is from pair n."""
    for each in sent:
        if plan.warm_seconds or plan.warm_requests:
            generator.send(each, connections, seconds=plan.warm_seconds, requests=plan.warm_requests)
    found: tuple[list[Slice], list[Slice]] = ([], [])
    for order in in_turns(plan.pairs):
        for number in order:
            if plan.before is not None:
                plan.before[number]()
            found[number].append(one_slice(generator, sides[number], sent[number], connections, plan))
    return found


def figures(slices: Sequence[Slice], measured: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return requests a second, p50, p99, CPU of the groups, their sum, CPU of the load, and the failed requests.

    `measured`: the groups whose CPU time is known. A column of another group gets a dash.
    """
    known = set(measured)
    per = {group: milliseconds_a_request(slices, group) for group in [*known, LOAD]}
    cpu = [f"{per[group]:.2f}" if group in known else "–" for group in columns]
    if columns:
        cpu.append(f"{sum(per[group] for group in known):.2f}" if known else "–")
    return [
        rate(statistics.median(each.result.per_second for each in slices)),
        f"{statistics.median(each.result.p50 for each in slices):.1f}",
        f"{statistics.median(each.result.p99 for each in slices):.1f}",
        *cpu,
        f"{per[LOAD]:.2f}",
        str(sum(each.result.refused for each in slices)),
    ]


def rate(per_second: float) -> str:
    """Return a rate as text, with a digit after the point if it is small."""
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


class Comparison:
    """The table of a comparison: two lines for each request, and one with the ratios."""

    def __init__(self, sides: tuple[Side, Side], title: str) -> None:
        self._sides = sides
        self._groups = list(dict.fromkeys(name for side in sides for name in side.groups))
        self.table = Table(title=title, expand=True)
        for column in ("request", "conns", "side", "req/s", "p50 ms", "p99 ms"):
            self.table.add_column(column, justify="left" if column in ("request", "side") else "right")
        self.table.caption = "gateway … load: CPU milliseconds a request; load is the generator"
        for group in [*self._groups, *(["sum"] if self._groups else []), LOAD]:
            self.table.add_column(group, justify="right")
        self.table.add_column("failed", justify="right")

    def add(self, name: str, connections: int, found: tuple[list[Slice], list[Slice]]) -> None:
        """Add the lines of one request."""
        for number, (side, slices) in enumerate(zip(self._sides, found, strict=True)):
            head = [name, str(connections)] if number == 0 else ["", ""]
            self.table.add_row(*head, side.name, *figures(slices, side.groups, self._groups))
        self.table.add_row("", "", f"{self._sides[0].name} ÷ {self._sides[1].name}", *self._ratios(found))
        self.table.add_section()

    def _ratios(self, found: tuple[list[Slice], list[Slice]]) -> list[str]:
        """Return the median ratio of the pairs for each column, in bold for requests a second."""

        def ratio(value: Callable[[Slice], float]) -> str:
            middle = median_ratio(*([value(each) for each in slices] for slices in found))
            return "–" if middle is None else f"{middle:.2f}"

        def cpu(names: Sequence[str]) -> str:
            if not all(any(name in side.groups for name in names) for side in self._sides):
                return "–"
            return ratio(lambda each: sum(each.cpu.get(name, 0.0) for name in names) / max(1, each.result.answered))

        return [
            f"[bold]{ratio(lambda each: each.result.per_second)}[/bold]",
            ratio(lambda each: each.result.p50),
            ratio(lambda each: each.result.p99),
            *(cpu([group]) for group in self._groups),
            *([cpu(self._groups)] if self._groups else []),
            "",
            "",
        ]


def idle_line(name: str, idle: Mapping[str, float]) -> str:
    """Return a line with the background CPU time of a stack without requests."""
    parts = ", ".join(f"{group} {milliseconds:.1f}" for group, milliseconds in idle.items())
    return f"{name} without requests, CPU ms a second: {parts}"
