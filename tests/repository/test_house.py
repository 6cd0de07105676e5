# SPDX-License-Identifier: Apache-2.0
"""The figures of `make house`, and the rules of the house that the tree keeps."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests import house

SOURCE = '''# SPDX-License-Identifier: Apache-2.0
"""Describe the module.

In three lines.
"""

import json
from pathlib import (
    Path,
)

VALUE = 1  # not a line of its own
#: A comment of an attribute.
OTHER = """a value
that is code"""
'''


def test_the_source_tree_keeps_its_size_rules() -> None:
    assert house.faults() == []


def test_each_line_is_counted_once_by_its_kind() -> None:
    found = house.count(SOURCE)
    assert (found.total, found.blank, found.imports, found.prose, found.code) == (15, 3, 4, 5, 3)


def test_figures_in_architecture_md_equal_those_of_the_source_tree() -> None:
    """Compare within a tenth, so that a small change does not require new figures."""
    page = (house.ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `((?:gateway|lakegate)/[^`]+)` \| [\d,]+ \| ([\d,]+) \|", page, re.MULTILINE)
    printed = {room: int(lines.replace(",", "")) for room, lines in rows}
    found = {room: lines.total for room, lines in house.rooms().items()}
    assert printed.keys() == found.keys(), "run: .venv/bin/python -m tests.house --write"
    assert {room for room, lines in found.items() if abs(lines - printed[room]) > max(lines // 10, 50)} == set()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, lines in {"api/roles": 20, "db/roles": 20, "db/alone": 20, "db/long": 401, "db/schema/one": 5}.items():
        file = tmp_path / "gateway" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n" * lines)
    return tmp_path


def test_module_with_too_many_lines_is_found(tree: Path) -> None:
    assert house.too_long(tree) == ["gateway/db/long.py"]


def test_short_module_without_a_reason_is_found(tree: Path) -> None:
    assert house.too_short(tree) == ["gateway/db/alone.py"]


def test_files_of_a_worked_example_are_counted_in_its_last_commit(tree: Path) -> None:
    _commit(tree, "Add the example\n\nWorked-example: A new operation", {"gateway/one.py": "1", "gateway/two.py": "1"})
    _commit(tree, "Add it again\n\nWorked-example: A new operation", {"gateway/three.py": "1", "gateway/one.py": "2"})
    _commit(tree, "Speak of the Worked-example: A new operation", {"gateway/four.py": "1"})
    found = house.examples(tree)["A new operation"]
    assert (found.new, found.changed) == (["gateway/three.py"], ["gateway/one.py"])


def test_worked_example_that_touches_more_files_than_allowed_is_found(tree: Path) -> None:
    files = {f"gateway/step_{number}.py": "1" for number in range(2)}
    _commit(tree, "Add the example\n\nWorked-example: A new operation", files)
    assert any("A new operation" in fault and "creates 2 files" in fault for fault in house.faults(tree))


def test_tree_outside_a_checkout_has_no_worked_examples(tree: Path) -> None:
    assert house.examples(tree) == {}


def _commit(tree: Path, message: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tree / name).write_text(text)
    who = ("-c", "user.name=house", "-c", "user.email=house@localhost")
    for command in (["init", "-q"], ["add", *files], [*who, "commit", "-q", "-m", message]):
        subprocess.run(["git", "-C", str(tree), *command], check=True)


def test_minutes_and_functions_are_read_from_the_records_of_runs(tmp_path: Path) -> None:
    record = {"seconds": 90.0, "properties": {house.FRAMES: "first > second"}}
    (tmp_path / "services.json").write_text(json.dumps(record))
    assert house.recorded(tmp_path) == {"services": 1.5}
    assert house.frames(tmp_path) == ["first", "second"]
    assert "| services | 1.5 |" in house.tables(records=tmp_path)


def test_figures_between_the_marks_are_replaced() -> None:
    once = house.written(f"a\n{house.BEGIN}\nold\n{house.END}\nb\n", "new\n")
    assert "old" not in once
    assert house.written(once, "new\n") == once
    with pytest.raises(ValueError, match="no <!-- house: begin -->"):
        house.written("a page", "new")
