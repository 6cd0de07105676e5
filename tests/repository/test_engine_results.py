# SPDX-License-Identifier: Apache-2.0
"""The results of real engines: their file, their table in the documentation, and their pinned environments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.engines.__main__ import engines
from tests.e2e.engines.environment import LOCKS, archives
from tests.support.engines import engine_results
from tests.support.engines.engine_results import CELLS, CHOSEN, Cell, EngineResult, read, row


def test_table_in_the_documentation_equals_the_results() -> None:
    text = engine_results.PAGE.read_text()
    assert text == engine_results.page_with(text, read()), "run python -m tests.support.engines.engine_results"


def test_each_record_has_a_test_and_a_page() -> None:
    for each in read():
        assert each.engine in engines()
        page, _, anchor = each.page.partition("#")
        text = (engine_results.ROOT / "docs" / page).read_text()
        headings = {re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in text.splitlines()}
        assert not anchor or anchor in headings


def test_every_archive_is_pinned_with_a_checksum() -> None:
    for listed in LOCKS.glob("*.jars"):
        assert archives(listed.stem)
        assert all(re.fullmatch(r"[0-9a-f]{64}", each.sha256) for each in archives(listed.stem))


def test_every_locked_package_has_a_hash() -> None:
    for lock in LOCKS.glob("*.lock"):
        pinned = re.findall(r"^[\w.\[\]-]+==\S+.*(?:\n +.*)*", lock.read_text(), re.MULTILINE)
        assert pinned
        assert all("--hash=sha256:" in each for each in pinned)


def _make(file: Path, *, fails: bool = False) -> None:
    with row("example", "Example", {"example": "1"}, page="engines.md", file=file) as made:
        for name in CELLS[:-1]:
            with made.cell(name):
                assert not (fails and name == "write"), "cannot write\nmore"
        made.not_possible("revoked", "it has no users")


def test_run_that_is_not_for_the_engine_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOSEN, "another")
    _make(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []


def test_failed_run_replaces_the_record_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setenv(CHOSEN, "example")
    _make(file)
    assert [cell.outcome for cell in read(file)[0].cells.values()] == ["passed"] * 5 + ["not possible"]
    with pytest.raises(AssertionError, match="cannot write"):
        _make(file, fails=True)
    [result] = read(file)
    assert result.cells["write"] == Cell("failed", "AssertionError: cannot write")
    assert result.cells["read"].outcome == result.cells["revoked"].outcome == "failed"
    assert "| yes | yes | **no** (1) |" in engine_results.table([result])


def test_row_without_all_cells_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="create, write, read, refused, revoked"),
        row("example", "Example", {}, page="engines.md", file=tmp_path / "results.json") as made,
        made.cell("connect"),
    ):
        pass


def test_incomplete_record_is_refused() -> None:
    with pytest.raises(ValueError, match="the cells must be"):
        EngineResult(
            engine="e", title="E", page="engines.md", versions={}, date="2026-01-01", seconds=1.0,
            cells={"connect": Cell("passed")},
        )  # fmt: skip
