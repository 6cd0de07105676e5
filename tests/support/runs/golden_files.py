# SPDX-License-Identifier: Apache-2.0
"""Compare text with a golden file, and rewrite the file with `--update-goldens`.

A golden file contains interfaces that clients, policies and operators use. Its test has the marker `golden`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest

#: The number of lines of a difference that a failed test prints.
_SHOWN_LINES = 60

UPDATE = "python -m pytest tests/access -m golden --update-goldens"


def add_option(parser: pytest.Parser) -> None:
    """Add `--update-goldens` to pytest's options. It is a flag, so that no golden file is written by accident."""
    parser.addoption("--update-goldens", action="store_true", help="write the golden files anew")


@dataclass(frozen=True)
class Golden:
    """Compare golden files. With `update` each file is written first."""

    update: bool

    def compare(self, file: Path, text: str) -> None:
        """Fail the test with a difference if `file` does not hold `text`."""
        if self.update:
            file.write_text(text, encoding="utf-8")
        kept = file.read_text(encoding="utf-8") if file.is_file() else ""
        if kept != text:
            # No assertion on the texts: pytest takes minutes to explain the difference of two long texts.
            pytest.fail(_difference(file.name, kept, text), pytrace=False)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with one line for each row."""
    lines = [list(heads), ["--"] * len(heads), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _difference(name: str, kept: str, text: str) -> str:
    lines = list(unified_diff(kept.splitlines(), text.splitlines(), f"{name} (golden)", f"{name} (now)", "", "", 1, ""))
    more = [f"… and {len(lines) - _SHOWN_LINES} lines more"] if len(lines) > _SHOWN_LINES else []
    message = f"{name} is not what the code gives. If the change is meant, run `{UPDATE}` and review the difference."
    return "\n".join([message, *lines[:_SHOWN_LINES], *more])
