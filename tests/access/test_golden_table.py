# SPDX-License-Identifier: Apache-2.0
"""The golden table equals the model's tests and the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.access.nouns.cards import GRANTABLE
from gateway.fga.compiled import actions_of, compiled_model
from tests.support.goldens import golden_table
from tests.support.goldens.golden_table import COLUMNS, OBJECTS, ROWS
from tests.support.runs.golden_files import Golden

_ROOT = Path(__file__).parents[2]
FGA = _ROOT / "fga_model" / "tests" / "golden.fga.yaml"
DOCUMENT = _ROOT / "docs" / "relationship-model.md"
BEGIN, END = "<!-- golden table: generated -->\n", "<!-- end of the golden table -->\n"


def _around(text: str) -> tuple[str, str]:
    """Return the text before and after the marks of the table."""
    assert text.count(BEGIN) == text.count(END) == 1, "the page has each mark around the table once"
    return text.split(BEGIN)[0], text.split(END)[1]


@pytest.mark.golden
def test_the_tests_of_the_model_equal_the_golden_table(golden: Golden) -> None:
    golden.compare(FGA, golden_table.render_fga())


@pytest.mark.golden
def test_the_documented_table_equals_the_golden_table(golden: Golden) -> None:
    before, after = _around(DOCUMENT.read_text())
    golden.compare(DOCUMENT, before + BEGIN + golden_table.render_markdown() + END + after)


def test_every_cell_of_the_table_has_a_value_and_a_check() -> None:
    actions = actions_of(compiled_model())
    for row in ROWS:
        assert len(row.cells) == len(COLUMNS), row.title
        assert set(row.cells) <= {"Y", "-"}
        for column in COLUMNS:
            questions = row.questions(column)
            assert questions
            for letter, action in questions:
                assert action in actions[OBJECTS[letter].split(":")[0]], (row.title, column.title, action)


def test_every_grantable_privilege_has_a_row() -> None:
    shown = {(OBJECTS[row.on].split(":")[0], row.privileges[0]) for row in ROWS if len(row.privileges) == 1}
    types = {OBJECTS[letter].split(":")[0] for letter in ("S", "P", "W", "N", "T")}
    grantable = {(type.value, each.value) for type, privileges in GRANTABLE.items() for each in privileges}
    assert {each for each in grantable if each[0] in types} <= shown


def test_nothing_is_implied_that_the_reference_denies() -> None:
    """The exclusions that readers may not expect, checked separately."""
    by_title = {row.title: row for row in ROWS}
    column = {each.title: each for each in COLUMNS}
    assert not by_title["modify on W"].holds(column["N: create in it"]), "modify does not imply create"
    assert not by_title["manage_grants on W"].holds(column["see W"]), "manage_grants gives no visibility"
    assert by_title["manage_grants on W"].holds(column["see who holds what"]), (
        "manage_grants gives access to the list of grants"
    )
    assert not by_title["data_admin on the project"].holds(column["hand out the same"])
    assert not by_title["admin on the server"].holds(column["see W"])
    assert not by_title["select on T"].holds(column["see T2"])
