# SPDX-License-Identifier: Apache-2.0
"""Progress of several installation steps that run at the same time.

A terminal shows a line for each running step. Other outputs get a line at the start and the end of a step, and one
every half minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

_LINE_SECONDS = 30.0
_FIRST_ESTIMATE_SECONDS = 10.0
_FEWEST_PARTS = 20


def remaining_seconds(done: int, total: int, elapsed: float) -> float | None:
    """Return the estimated remaining time of a step, or None if it is too early for an estimate.

    ``done`` of ``total`` parts took ``elapsed`` seconds. The estimate assumes that all parts take equally long.
    """
    if done < _FEWEST_PARTS or elapsed < _FIRST_ESTIMATE_SECONDS or total < done:
        return None
    return elapsed / done * (total - done)


def described(seconds: float) -> str:
    """Return a duration in words: seconds below one and a half minutes, else minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Step:
    """One step. A counted step shows its parts, and the remaining time that follows from them."""

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._show = show
        self._clock = clock
        self._started = clock()
        self._total: int | None = None
        self._done = 0

    def expect(self, total: int) -> None:
        """Begin to count parts, of which there are ``total``."""
        self._total, self._done, self._started = total, 0, self._clock()

    def count(self, part: str) -> None:
        """Report that the next part was reached."""
        self._done += 1
        if self._total is None or self._done > self._total:
            self.notify(part)
            return
        left = remaining_seconds(self._done, self._total, self._clock() - self._started)
        estimate = "" if left is None else f", about {described(left)} left"
        self._show(f"{self._done} of {self._total} packages{estimate}")

    def notify(self, text: str) -> None:
        """Show the latest output of the step."""
        self._show(text.strip()[:70])


class Steps:
    """All steps of one installation; use it as a context manager. Steps may run in several threads.

    ``total`` is the number of steps, in the order of whose starts they are counted.
    """

    def __init__(self, console: Console, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._total = total
        self._numbers = count(1)
        self._clock = clock
        columns = (SpinnerColumn(), TextColumn("{task.description}  [dim]{task.fields[state]}[/dim]"))
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def __enter__(self) -> Steps:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Context manager. Show a step with this title until the end of the block, then its duration or its failure."""
        title = f"Step {next(self._numbers)} of {self._total}: {title}"
        started = self._clock()
        task = self._progress.add_task(escape(title), state="")
        last = [started]

        def show(text: str) -> None:
            self._progress.update(task, state=escape(text))
            if not self._console.is_terminal and self._clock() - last[0] >= _LINE_SECONDS:
                last[0] = self._clock()
                self._console.print(f"{escape(title)}: {escape(text)}", soft_wrap=True)

        if not self._console.is_terminal:
            self._console.print(f"{escape(title)} …", soft_wrap=True)
        mark = "[red]✗[/red]"
        try:
            yield Step(show, self._clock)
            mark = "[green]✓[/green]"
        finally:
            self._progress.remove_task(task)
            taken = described(self._clock() - started)
            self._console.print(f"{mark} {escape(title)} [dim]({taken})[/dim]", soft_wrap=True)


class Parts:
    """Progress of parts that start at the same time; use it as a context manager. It prints a line for each ready part.

    A terminal also shows the parts that are missing.
    """

    def __init__(self, console: Console, parts: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._missing = dict(parts)
        self._total = len(parts)
        self._clock = clock
        self._started = clock()
        self._status = console.status("")

    def __enter__(self) -> Parts:
        self.console.print(f"Starting {self._total} parts: {self._waiting()} …", soft_wrap=True)
        self._show()
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ready(self, part: str) -> None:
        """Report that a part is ready. A part that is started again is counted once."""
        if (name := self._missing.pop(part, None)) is not None:
            number, taken = self._total - len(self._missing), described(self._clock() - self._started)
            missing = "" if self.console.is_terminal or not self._missing else f"; waiting for {self._waiting()}"
            line = f"[green]✓[/green] {number} of {self._total}: {escape(name)} [dim]({taken})[/dim]{escape(missing)}"
            self.console.print(line, soft_wrap=True)
            self._show()

    def stop(self) -> None:
        """Remove the line of the missing parts."""
        self._status.stop()

    def _show(self) -> None:
        self._status.update(escape(f"waiting for {self._waiting()}"))

    def _waiting(self) -> str:
        return ", ".join(self._missing.values())
