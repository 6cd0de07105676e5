# SPDX-License-Identifier: Apache-2.0
"""Types of rows: a statement with other columns than its type is refused, whatever their number."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gateway.db.pools.rows import columns_for, require_fields
from gateway.db.schema.policies import tags


class _Named(NamedTuple):
    id: int
    name: str


class _Unknown(NamedTuple):
    id: int
    colour: str


def test_the_columns_of_a_type_are_those_of_the_table_in_the_order_of_its_fields() -> None:
    assert columns_for(_Named, tags) == [tags.c.id, tags.c.name]


def test_a_type_with_a_field_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        columns_for(_Unknown, tags)


@pytest.mark.parametrize("columns", [["id"], ["name", "id"], ["id", "name", "more"], ["id", "title"]])
def test_rows_of_a_statement_with_other_columns_than_their_type_are_refused(columns: list[str]) -> None:
    require_fields(_Named, ["id", "name"])
    with pytest.raises(TypeError, match="_Named has id, name"):
        require_fields(_Named, columns)
