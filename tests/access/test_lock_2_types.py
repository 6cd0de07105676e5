# SPDX-License-Identifier: Apache-2.0
"""Lock 2: the type checker refuses calls without the right permit, on exactly the marked lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
FILES = sorted((HERE / "types").glob("*.py"))
_ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error:", re.MULTILINE)


@pytest.fixture(scope="module")
def refused() -> set[tuple[str, int]]:
    """Return (file, line) of each error, from one run over all files."""
    root = HERE.parents[1]
    out, complaints, code = api.run(
        [
            "--strict",
            "--explicit-package-bases",
            "--no-pretty",
            "--hide-error-context",
            "--follow-imports=silent",
            f"--config-file={root / 'pyproject.toml'}",
            *(str(file) for file in FILES),
        ]
    )
    assert code == 1, out + complaints
    return {(Path(found["file"]).name, int(found["line"])) for found in _ERROR.finditer(out)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_type_checker_refuses_exactly_the_marked_lines(file: Path, refused: set[tuple[str, int]]) -> None:
    lines = file.read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
    found = {line for name, line in refused if name == file.name}
    assert marked - found == set(), "mypy accepts these marked lines, but must refuse them"
    assert found - marked == set(), "mypy refuses these unmarked lines, but must accept them"
    assert len(marked) > 8
