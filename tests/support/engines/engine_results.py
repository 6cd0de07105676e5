# SPDX-License-Identifier: Apache-2.0
"""Results of real engines: one record per engine in `tests/results/engines.json`, and the table in docs/engines.md.

A test makes the row of its engine with `row`. The record is written only if the run was started by
`python -m tests.e2e.engines NAME`, so that an ordinary test run changes no file.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import pytest

ROOT = Path(__file__).parents[3]
FILE = ROOT / "tests" / "results" / "engines.json"
PAGE = ROOT / "docs" / "engines.md"
BEGIN, END = "<!-- engines: begin -->", "<!-- engines: end -->"

#: The environment variable with the name of the engine whose record the run writes.
CHOSEN = "LAKEGATE_TEST_ENGINE"

CellName = Literal["connect", "create", "write", "read", "refused", "revoked"]
CELLS: tuple[CellName, ...] = ("connect", "create", "write", "read", "refused", "revoked")
_REASON_CHARACTERS = 300


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one cell. `reason` is the first line of the error, or why the engine cannot do it."""

    outcome: Literal["passed", "failed", "not possible"]
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.outcome == "passed") == bool(self.reason):
            raise ValueError("a cell that did not pass has a reason, and no other cell has one")


class EngineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one engine. `engine` is its name in commands, `page` a file in docs/, `date` the day in UTC."""

    engine: str
    title: str
    page: str
    versions: dict[str, str]
    date: str
    seconds: float
    cells: dict[CellName, Cell]

    def __post_init__(self) -> None:
        if tuple(self.cells) != CELLS:
            raise ValueError(f"{self.engine}: the cells must be {', '.join(CELLS)}, in this order")


class Row:
    """The cells of one engine while its test runs."""

    def __init__(self) -> None:
        self.cells: dict[CellName, Cell] = {}

    @contextmanager
    def cell(self, name: CellName) -> Iterator[None]:
        """Context manager. Record the cell as passed, or as failed if the block raises."""
        assert name not in self.cells, f"the cell {name} is decided already"
        try:
            yield
        except BaseException as error:
            lines = str(error).strip().splitlines()
            reason = f"{type(error).__name__}: {lines[0] if lines else ''}"
            self.cells[name] = Cell("failed", reason[:_REASON_CHARACTERS])
            raise
        self.cells[name] = Cell("passed")

    def not_possible(self, name: CellName, reason: str) -> None:
        """Record that the engine itself cannot do this; `reason` says why."""
        assert name not in self.cells, f"the cell {name} is decided already"
        self.cells[name] = Cell("not possible", reason)

    def complete(self) -> dict[CellName, Cell]:
        """Return all cells in order; those that the test did not reach have failed."""
        missing = Cell("failed", "not reached, because an earlier cell failed")
        return {name: self.cells.get(name, missing) for name in CELLS}


@contextmanager
def row(engine: str, title: str, versions: Mapping[str, str], *, page: str, file: Path = FILE) -> Iterator[Row]:
    """Context manager. Make the row of an engine, and write its record if the engine is the chosen one.

    The record is also written if the block raises: a failure is a result.
    """
    cells = Row()
    start = time.monotonic()
    try:
        yield cells
    finally:
        if os.environ.get(CHOSEN) == engine:
            result = EngineResult(
                engine=engine,
                title=title,
                page=page,
                versions=dict(versions),
                date=datetime.now(UTC).date().isoformat(),
                seconds=round(time.monotonic() - start, 1),
                cells=cells.complete(),
            )
            write(result, file)
    missing = [name for name in CELLS if name not in cells.cells]
    assert not missing, f"the test of {engine} decided no outcome of {', '.join(missing)}"


def opt_in(engine: str) -> pytest.MarkDecorator:
    """Return a mark that skips the tests of an engine unless the run is for this engine."""
    command = f"make test-engine ENGINE={engine}"
    return pytest.mark.skipif(os.environ.get(CHOSEN) != engine, reason=f"needs {engine}: run `{command}`")


def read(file: Path = FILE) -> list[EngineResult]:
    """Return the records of all engines, sorted by title."""
    found = msgspec.json.decode(file.read_bytes(), type=list[EngineResult])
    return sorted(found, key=lambda each: each.title.lower())


def write(result: EngineResult, file: Path = FILE) -> None:
    """Replace the record of one engine. Concurrent runs of several engines wait for each other."""
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        others = [each for each in read(file) if each.engine != result.engine] if file.exists() else []
        whole = sorted([*others, result], key=lambda each: each.title.lower())
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
        os.replace(part, file)
    finally:
        os.close(directory)


_MARKS = {"passed": "yes", "failed": "**no**", "not possible": "–"}


def table(results: Sequence[EngineResult]) -> str:
    """Return the table of docs/engines.md: one line per engine, then the reasons as numbered notes."""
    lines = [
        f"| engine | versions | {' | '.join(CELLS)} | tried |",
        f"|---|---|{'---|' * len(CELLS)}---|",
    ]
    notes: list[str] = []
    for each in results:
        marks = []
        for cell in each.cells.values():
            if cell.reason:
                notes.append(f"{len(notes) + 1}. {each.title}: {cell.reason}")
            marks.append(_MARKS[cell.outcome] + (f" ({len(notes)})" if cell.reason else ""))
        versions = ", ".join(f"{name} {version}" for name, version in each.versions.items())
        lines.append(f"| [{each.title}]({each.page}) | {versions} | {' | '.join(marks)} | {each.date} |")
    return "\n".join(lines) + ("\n\n" + "\n".join(notes) if notes else "") + "\n"


def page_with(text: str, results: Sequence[EngineResult]) -> str:
    """Return the text of docs/engines.md with a new table between the markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(results)}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(), read()))
