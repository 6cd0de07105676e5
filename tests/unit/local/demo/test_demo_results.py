# SPDX-License-Identifier: Apache-2.0
"""The result table of the demonstration: no failed trial may be shown as expected."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lakegate.local.demo.board import Board, Observation, Trial


@pytest.fixture
def seen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def board(seen: io.StringIO) -> Board:
    return Board(Console(file=seen, width=200))


def trial(observation: Observation | Exception, tried: str = "a door") -> Trial:
    async def attempt() -> Observation:
        if isinstance(observation, Exception):
            raise observation
        return observation

    return Trial("somebody", tried, "closed", attempt)


async def test_an_unexpected_result_is_printed_at_once_and_recorded(board: Board, seen: io.StringIO) -> None:
    await board.make(trial(Observation(True, "closed")))
    await board.make(trial(Observation(False, "open")))
    assert [line.observed for line in board.failed] == ["open"]
    assert "NOT AS EXPECTED" in seen.getvalue()


async def test_a_trial_that_raises_is_a_failure_and_the_next_one_runs(board: Board) -> None:
    await board.make(trial(KeyError("storage-credentials")))
    await board.make(trial(Observation(True, "closed")))
    assert [line.as_expected for line in board.lines] == [False, True]
    assert "KeyError" in board.lines[0].observed


async def test_observed_text_is_not_interpreted_as_markup(board: Board, seen: io.StringIO) -> None:
    await board.make(trial(Observation(False, "[green]as expected[/] [bold")))
    board.console.print(board.table())
    assert seen.getvalue().count("[green]as expected[/] [bold") == 2


async def test_the_table_lists_all_results_in_order(board: Board, seen: io.StringIO) -> None:
    for tried in ("first door", "second door", "third door"):
        await board.make(trial(Observation(True, "closed"), tried))
    seen.truncate(0)
    board.console.print(board.table())
    text = seen.getvalue()
    assert text.index("first door") < text.index("second door") < text.index("third door")
