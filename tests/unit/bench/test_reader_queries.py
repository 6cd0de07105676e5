# SPDX-License-Identifier: Apache-2.0
"""The queries of the reader's benchmark have the same rows in both ways that it compares."""

from __future__ import annotations

import pytest
from pyiceberg.table import Table

from tests.bench.reader import QUERIES, Query, made, same


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Return a table of ten small files."""
    return made(tmp_path_factory.mktemp("people"), 1000)


@pytest.mark.parametrize("query", QUERIES, ids=lambda each: each.name)
def test_query_by_hand_and_by_the_reader_has_the_same_rows(table: Table, query: Query) -> None:
    """Otherwise the ratio would compare different work."""
    assert same(table, query)
