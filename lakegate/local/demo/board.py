# SPDX-License-Identifier: Apache-2.0
"""Print the demonstration at the terminal: progress while it runs, and at its end the table of trials.

A trial sends a request and shows whether it was permitted.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a trial as text. ``as_expected`` is True if the result was expected."""

    as_expected: bool
    text: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt of a caller, with its expected result.

    ``caller``: name of the caller. ``tried`` and ``expected``: text for the table. ``attempt``: makes the attempt and
    returns its result.
    """

    caller: str
    tried: str
    expected: str
    attempt: Callable[[], Awaitable[Observation]]


@dataclass(frozen=True, slots=True)
class Line:
    """The record of a trial that has been made. ``seconds`` is its duration."""

    caller: str
    tried: str
    expected: str
    observed: str
    as_expected: bool
    seconds: float


@dataclass(slots=True)
class Board:
    """Records the trials, and prints each when it is done. ``lines`` has them in the order in which they were made."""

    console: Console
    lines: list[Line] = field(default_factory=list)

    def notify(self, text: str) -> None:
        """Print a line about the progress."""
        self.console.print(escape(text))

    async def make(self, trial: Trial) -> None:
        """Make a trial, record its result and print it.

        An exception is not raised: it counts as an unexpected result.
        """
        started = time.monotonic()
        try:
            seen = await trial.attempt()
        except Exception as error:  # a failed trial must not end the others; its line shows the error
            seen = Observation(False, f"{type(error).__name__}: {error}"[:300])
        line = Line(trial.caller, trial.tried, trial.expected, seen.text, seen.as_expected, time.monotonic() - started)
        self.lines.append(line)
        mark = "[green]as expected[/]" if line.as_expected else "[bold red]NOT AS EXPECTED[/]"
        board_line = f"  {mark}  {escape(line.caller)}: {escape(line.tried)} -> {escape(line.observed)}"
        self.console.print(board_line, soft_wrap=True)

    @property
    def failed(self) -> list[Line]:
        """Return the lines whose result was not expected."""
        return [line for line in self.lines if not line.as_expected]

    def table(self) -> Table:
        """Return all lines as a table."""
        table = Table(title="What was tried, what should happen, what happened")
        for name in ("", "who", "tried", "expected", "observed"):
            table.add_column(name, overflow="fold")
        table.add_column("s", justify="right")
        before: str | None = None
        for line in self.lines:
            if before not in (None, line.caller):
                table.add_section()
            before = line.caller
            mark = "[green]ok[/]" if line.as_expected else "[bold red]NO[/]"
            cells = (line.caller, line.tried, line.expected, line.observed)
            table.add_row(mark, *map(escape, cells), f"{line.seconds:.1f}")
        return table
