# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of comparisons: order of the slices, ratios of pairs, CPU time of a request, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from tests.bench import pairs
from tests.bench.generator import Generator, Sent
from tests.bench.load import Result
from tests.bench.pairs import LOAD, Comparison, Side, Slice, Slices, compared, figures, in_turns, median_ratio


def _slice(answered: int, cpu: Mapping[str, float] | None = None, *, seconds: float = 1.0, refused: int = 0) -> Slice:
    result = Result(answered=answered, refused=refused, seconds=seconds, p50=2.0, p99=9.0, last=0)
    return Slice(result, {LOAD: 0.1, **(cpu or {})})


def test_each_side_is_first_in_every_second_pair() -> None:
    assert list(in_turns(3)) == [(0, 1), (1, 0), (0, 1)]


def test_ratio_is_the_median_of_the_pairs_and_not_the_ratio_of_the_medians() -> None:
    ours, other = [10.0, 100.0, 40.0], [20.0, 50.0, 10.0]

    assert median_ratio(ours, other) == 2.0  # the pairs have 0.5, 2 and 4; the medians 40 and 20
    assert median_ratio([10.0, 100.0, 90.0], [20.0, 50.0, 90.0]) == 1.0  # the medians have 1.8


def test_pair_without_a_divisor_has_no_ratio() -> None:
    assert median_ratio([1.0, 6.0], [0.0, 2.0]) == 3.0
    assert median_ratio([1.0], [0.0]) is None


def test_ratio_needs_whole_pairs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        median_ratio([1.0, 2.0], [1.0])


def test_cpu_of_a_request_weighs_slices_by_their_requests() -> None:
    slices = [_slice(100, {"gateway": 0.2}), _slice(300, {"gateway": 0.2})]

    assert pairs.milliseconds_a_request(slices, "gateway") == pytest.approx(1.0)  # the mean of both slices is 1.33


def test_figures_add_the_known_groups_and_dash_the_others() -> None:
    slices = [_slice(100, {"gateway": 0.2, "OPA": 0.1}, refused=3), _slice(100, {"gateway": 0.2, "OPA": 0.1})]

    shown = figures(slices, ["gateway", "OPA"], ["gateway", "OPA", "server"])

    assert shown == ["100", "2.0", "9.0", "2.00", "1.00", "–", "3.00", "1.00", "3"]


class _Recorder:
    """Records the loads instead of sending them."""

    def __init__(self) -> None:
        self.pid = 1
        self.loads: list[tuple[str, float, int]] = []

    def send(self, sent: Sent, connections: int, *, seconds: float, requests: int = 0) -> Result:
        """Record the load."""
        self.loads.append((sent.url, seconds, requests))
        return _slice(10).result


def _compared(plan: Slices) -> tuple[_Recorder, tuple[list[Slice], list[Slice]]]:
    recorder = _Recorder()
    sent = (Sent(method="GET", url="ours", headers={}), Sent(method="GET", url="base", headers={}))
    generator = cast(Generator, recorder)
    return recorder, compared(generator, (Side("ours"), Side("base")), sent, 8, plan)


def test_both_sides_are_warmed_before_the_first_pair_and_then_measured_in_turns() -> None:
    recorder, found = _compared(Slices(pairs=2, seconds=2.0, warm_seconds=0.5))

    warm, measured = recorder.loads[:2], recorder.loads[2:]
    assert warm == [("ours", 0.5, 0), ("base", 0.5, 0)]
    assert measured == [("ours", 2.0, 0), ("base", 2.0, 0), ("base", 2.0, 0), ("ours", 2.0, 0)]
    assert [len(each) for each in found] == [2, 2]


def test_first_touch_prepares_each_slice_of_its_own_side_and_warms_nothing() -> None:
    done: list[str] = []
    plan = Slices(
        pairs=2,
        seconds=2.0,
        warm_seconds=0.0,
        requests=250,
        before=(lambda: done.append("ours"), lambda: done.append("base")),
    )

    recorder, _ = _compared(plan)

    assert done == ["ours", "base", "base", "ours"]
    assert recorder.loads == [(side, 2.0, 250) for side in done]


def test_table_shows_both_sides_and_ratios_of_shared_groups_only() -> None:
    sides = (Side("ours", {"gateway": [1], "OpenFGA": [2]}), Side("peer", {"server": [3], "OpenFGA": [4]}))
    table = Comparison(sides, "title")
    ours = [_slice(100, {"gateway": 0.2, "OpenFGA": 0.1})]
    peer = [_slice(400, {"server": 0.4, "OpenFGA": 0.1})]

    table.add("config", 8, (ours, peer))

    cells = [list(column.cells) for column in table.table.columns]
    lines = list(zip(*cells, strict=True))
    assert lines[0] == ("config", "8", "ours", "100", "2.0", "9.0", "2.00", "1.00", "–", "3.00", "1.00", "0")
    assert lines[1] == ("", "", "peer", "400", "2.0", "9.0", "–", "0.25", "1.00", "1.25", "0.25", "0")
    ratios = ("", "", "ours ÷ peer", "[bold]0.25[/bold]", "1.00", "1.00", "–", "4.00", "–", "2.40", "", "")
    assert lines[2] == ratios


def test_peer_without_process_ids_has_dashes_for_its_cpu() -> None:
    table = Comparison((Side("ours", {"gateway": [1]}), Side("peer")), "title")

    table.add("config", 8, ([_slice(100, {"gateway": 0.2})], [_slice(400)]))

    output = StringIO()
    Console(file=output, width=170).print(table.table)
    assert [list(column.cells) for column in table.table.columns][6] == ["2.00", "–", "–"]
    assert "ours ÷ peer" in output.getvalue()


def test_idle_line_names_every_group() -> None:
    line = pairs.idle_line("ours", {"gateway": 30.04, "OPA": 4.0})

    assert line == "ours without requests, CPU ms a second: gateway 30.0, OPA 4.0"
