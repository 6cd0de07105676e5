# SPDX-License-Identifier: Apache-2.0
"""Column names in grant requests; every grant on a column can be named."""

from __future__ import annotations

import pytest

from gateway.access.management_errors import ColumnNotFound
from gateway.features.grants.columns import field_named
from gateway.iceberg.errors import BadRequestException
from gateway.obligations.projections import Columns, columns_of
from tests.support.column_documents import column, document

#: 2 was called `name` and has a name unfit for paths, 3 was dropped, and 4 now has the name of 3.
EVOLVED = columns_of(
    document(
        [column(1, "id"), column(2, "name"), column(3, "card")],
        [column(1, "id"), column(2, "a/b"), column(4, "card")],
    )
)
LITERAL = columns_of(document([column(1, "id"), column(7, "field-id:1")]))


def test_a_column_name_is_taken_from_the_current_schema_before_dropped_columns() -> None:
    assert field_named(EVOLVED, "card", dropped=True) == 4
    with pytest.raises(ColumnNotFound):
        field_named(EVOLVED, "name", dropped=True)


@pytest.mark.parametrize("id", [0, 2, 3, 4, 99, 2_147_483_447])
def test_a_field_id_reads_and_revokes_grants_on_every_column(id: int) -> None:
    """This includes columns of no schema: their grants would apply again if the schema returned."""
    assert field_named(EVOLVED, f"field-id:{id}", dropped=True) == id


@pytest.mark.parametrize("columns", [EVOLVED, LITERAL])
def test_a_field_id_cannot_be_granted_because_policies_receive_names(columns: Columns) -> None:
    with pytest.raises(BadRequestException, match="Use the name of the column to grant"):
        field_named(columns, "field-id:1", dropped=False)


def test_a_column_named_like_a_field_id_does_not_redirect_a_revocation() -> None:
    assert field_named(LITERAL, "field-id:1", dropped=True) == 1
    assert field_named(LITERAL, "field-id:7", dropped=True) == 7


@pytest.mark.parametrize("name", ["field-id:", "field-id:01", "field-id:-1", "field-id:\u0661", "FIELD-ID:1", "1"])
def test_a_malformed_field_id_is_a_name(name: str) -> None:
    with pytest.raises(ColumnNotFound):
        field_named(EVOLVED, name, dropped=True)


def test_a_name_may_select_every_column_that_ever_had_it_in_any_letter_case() -> None:
    assert EVOLVED.ids_of_name("card") == EVOLVED.ids_of_name("CARD") == {3, 4}
    assert EVOLVED.ids_of_name("name") == {2}, "a former name must select its column"
    assert EVOLVED.ids_of_name("no such") == frozenset()
