# SPDX-License-Identifier: Apache-2.0
"""The golden matrix over HTTP: each row's privileges are granted to a user without rights, then each cell is tried.

`make test` tries each pair of privileges and column, and each pair of level and column, for both verdicts. `make
test-long` tries all cells. The model's own tests and the matrix in `tests/access` check all cells in every run.

A cell uses the real endpoint if one exists. The others, `BY_CHECK`, use `POST /permissions/check`, which returns the
door's decision. No cell uses the model alone.
"""

from __future__ import annotations

import pytest

from tests.support.goldens.golden_table import COLUMNS, ROWS
from tests.support.stack.golden_matrix import (
    pairwise,
    possible_cases,
    test_privileges_of_a_row_allow_exactly_its_actions,
    test_privileges_of_a_row_allow_exactly_its_generic_table_actions,
)

__all__ = [
    "test_privileges_of_a_row_allow_exactly_its_actions",
    "test_privileges_of_a_row_allow_exactly_its_generic_table_actions",
]

pytestmark = pytest.mark.generated


def test_every_grantable_row_is_tried() -> None:
    assert {row.title for row in ROWS if not possible_cases(row)} <= {"tag_creator on the project"}


def test_each_pair_of_privileges_and_column_is_tried_in_every_run() -> None:
    rows = [row for row in ROWS if possible_cases(row)]
    tried = pairwise(rows)
    for row in rows:
        for column in COLUMNS:
            like = [each for each in tried if column in tried[each] and each.holds(column) == row.holds(column)]
            assert any(each.privileges == row.privileges for each in like), (row.title, column.title)
            assert any(each.on == row.on for each in like), (row.title, column.title)
