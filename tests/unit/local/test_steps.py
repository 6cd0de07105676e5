# SPDX-License-Identifier: Apache-2.0
"""Progress of an installation: counted packages, an honest estimate, and a mark for each finished step."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from lakegate.local import install
from lakegate.local.errors import StackError
from lakegate.local.programs import Parts, Steps, described, remaining_seconds


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "left"),
    [(100, 400, 60.0, 180.0), (400, 400, 60.0, 0.0), (5, 400, 60.0, None), (100, 400, 2.0, None), (9, 8, 60.0, None)],
)
def test_the_remaining_time_follows_from_the_progress(done: int, total: int, elapsed: float, left: float) -> None:
    assert remaining_seconds(done, total, elapsed) == left


def test_short_times_are_seconds_and_long_ones_minutes() -> None:
    assert [described(seconds) for seconds in (4.4, 89.0, 90.0, 190.0)] == ["4 s", "89 s", "2 min", "3 min"]


def test_a_pipe_gets_a_line_each_half_minute_and_the_end_of_the_step() -> None:
    clock, output = Clock(), io.StringIO()
    with Steps(Console(file=output), 2, clock) as steps, steps.step("Building opa") as step:
        step.expect(400)
        for number in range(200):
            clock.now = number / 2 + 0.5
            step.count(f"package/{number}")
    assert output.getvalue().splitlines() == [
        "Step 1 of 2: Building opa …",
        "Step 1 of 2: Building opa: 60 of 400 packages, about 3 min left",
        "Step 1 of 2: Building opa: 120 of 400 packages, about 2 min left",
        "Step 1 of 2: Building opa: 180 of 400 packages, about 2 min left",
        "✓ Step 1 of 2: Building opa (2 min)",
    ]


def test_a_failed_step_is_marked() -> None:
    output = io.StringIO()
    with pytest.raises(StackError), Steps(Console(file=output), 2) as steps, steps.step("Building [opa]"):
        raise StackError("no")
    assert output.getvalue().splitlines() == ["Step 1 of 2: Building [opa] …", "✗ Step 1 of 2: Building [opa] (0 s)"]


def test_the_other_steps_finish_when_one_fails() -> None:
    finished = []

    def fail() -> None:
        raise StackError("the index is not reachable")

    with pytest.raises(StackError, match="the index is not reachable"):
        install._together([fail, lambda: finished.append("build")])
    assert finished == ["build"]


@pytest.mark.parametrize("terminal", [False, True])
def test_each_ready_part_has_a_line_in_a_pipe_and_in_a_terminal(terminal: bool) -> None:
    output = io.StringIO()
    seconds = iter([0.0, 3.0, 70.0])
    console = Console(file=output, force_terminal=terminal, width=200)
    with Parts(console, {"opa": "OPA", "gateway": "the gateway"}, lambda: next(seconds)) as parts:
        parts.ready("opa")
        parts.ready("opa")
        parts.ready("gateway")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue())
    assert "Starting 2 parts: OPA, the gateway …" in text
    assert text.count("✓ 1 of 2: OPA (3 s)") == 1 and "✓ 2 of 2: the gateway (70 s)" in text
    assert ("(3 s); waiting for the gateway" in text) is not terminal
