# SPDX-License-Identifier: Apache-2.0
"""Column restrictions: computed over every schema of a table, and encoded as in the protocol."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.obligations.compilers.read_restrictions import read_restrictions
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns, RestrictionNotExpressible, columns_of, held_back
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import ALWAYS
from tests.support.column_documents import column, document


def encoded(projections: tuple[Projection, ...]) -> bytes:
    """Return the JSON of restrictions with these masks and without a row filter."""
    return read_restrictions(TableRestrictions("t", ALWAYS, projections, False, "m"))


def a_struct(*fields: dict[str, Any]) -> dict[str, Any]:
    """Return a struct type."""
    return {"type": "struct", "fields": list(fields)}


def test_ungranted_optional_columns_are_null_and_required_ones_a_fixed_value() -> None:
    columns = columns_of(document([column(1), column(2), column(3, required=True), column(4, type="long")]))
    assert held_back({1}, columns) == (
        Projection(2, Action.REPLACE_WITH_NULL),
        Projection(3, Action.MASK_TO_FIXED_VALUE),
        Projection(4, Action.REPLACE_WITH_NULL),
    )


def test_a_column_of_an_older_schema_is_restricted() -> None:
    """A reader of an old snapshot uses the schema of that time."""
    columns = columns_of(document([column(1), column(2)], [column(1)]))
    assert held_back({1}, columns) == (Projection(2, Action.REPLACE_WITH_NULL),)


def test_a_column_that_was_ever_required_is_never_replaced_with_null() -> None:
    columns = columns_of(document([column(2, required=True)], [column(1), column(2)]))
    assert held_back({1}, columns) == (Projection(2, Action.MASK_TO_FIXED_VALUE),)


def test_a_column_with_a_widened_type_is_one_column() -> None:
    columns = columns_of(document([column(2, type="int")], [column(1), column(2, type="long")]))
    assert held_back({1}, columns) == (Projection(2, Action.REPLACE_WITH_NULL),)


@pytest.mark.parametrize("type", ["geometry", "unknown", a_struct(column(8, type="geography"))])
def test_a_required_column_without_a_fixed_value_makes_the_table_unreadable(type: Any) -> None:
    columns = columns_of(document([column(1), column(2, type=type, required=True)]))
    with pytest.raises(RestrictionNotExpressible):
        held_back({1}, columns)
    assert held_back({1, 2}, columns) == ()


def test_a_struct_is_restricted_as_a_whole() -> None:
    columns = columns_of(
        document([column(1), column(2, type=a_struct(column(3), column(4, type=a_struct(column(5)))))])
    )
    assert held_back({1}, columns) == (Projection(2, Action.REPLACE_WITH_NULL),)


def test_a_column_nested_in_another_one_in_some_schema_is_refused() -> None:
    columns = columns_of(document([column(1), column(3)], [column(1), column(2, type=a_struct(column(3)))]))
    with pytest.raises(RestrictionNotExpressible):
        held_back({1}, columns)


def test_a_field_id_outside_the_protocol_range_is_refused() -> None:
    with pytest.raises(RestrictionNotExpressible):
        held_back({1}, columns_of(document([column(0), column(1)])))


@pytest.mark.parametrize(
    "broken", [b"", b"{}", b"[]", b'{"schemas":[],"current-schema-id":0}', b'{"schemas":[{"fields":1}]}', b"\xff"]
)
def test_a_document_without_readable_schemas_is_refused(broken: bytes) -> None:
    with pytest.raises(RestrictionNotExpressible):
        columns_of(broken)


def test_a_document_of_format_1_may_have_one_schema_alone() -> None:
    columns = columns_of(json.dumps({"format-version": 1, "schema": {"fields": [column(1, "a")]}}).encode())
    assert columns.named("a") == 1


def test_column_names_are_those_of_the_current_schema() -> None:
    columns = columns_of(
        document([column(1, "a"), column(2, "b")], [column(1, "A"), column(3, "b", a_struct(column(4, "c")))])
    )
    assert [columns.named(each) for each in ("a", "A", "b", "b.c", "c")] == [None, 1, 3, None, None]
    assert [columns.nested(each) for each in ("b.c", "b", "a", "c")] == [True, False, False, False]
    assert columns.dropped("b") == 2
    assert columns.dropped("a") is None, "a renamed column is not a dropped one"
    assert [columns.name_of(each) for each in (1, 2, 3, 9)] == [("A", True), ("b", False), ("b", True), (None, False)]
    assert columns.readable({1, 2, 9}) == {1}, "a grant on a dropped column must have no effect"


@pytest.mark.threat("LG-POL-11")
def test_encoded_restrictions_contain_ids_and_actions_deterministically() -> None:
    projections = (Projection(4, Action.REPLACE_WITH_NULL), Projection(2, Action.MASK_TO_FIXED_VALUE))
    assert encoded(projections) == encoded(projections[::-1])
    assert json.loads(encoded(projections)) == {
        "required-column-projections": [
            {"field-id": 2, "action": "mask-to-fixed-value"},
            {"field-id": 4, "action": "replace-with-null"},
        ]
    }
    assert encoded(()) == b"", "without restrictions the member must be omitted"


TYPES = st.sampled_from(["string", "long", "date", "geometry", "unknown", "variant", "decimal(9,2)"])
SCHEMAS = st.lists(
    st.lists(
        st.builds(lambda id, type, required: column(id, type=type, required=required), st.integers(1, 8), TYPES,
                  st.booleans()),
        max_size=8,
        unique_by=lambda each: each["id"],
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


@given(SCHEMAS, st.sets(st.integers(1, 8)))
def test_every_ungranted_column_is_restricted_once_as_its_types_allow(
    schemas: list[list[dict[str, Any]]], granted: set[int]
) -> None:
    columns = columns_of(document(*schemas))
    fields: dict[int, list[NestedField]] = {}
    for schema in columns.schemas:
        for field in schema:
            fields.setdefault(field.id, []).append(field)
    try:
        projections = held_back(granted, columns)
    except RestrictionNotExpressible:
        assert any(
            any(f.required for f in some) and any(str(f.type) in ("geometry", "unknown") for f in some)
            for id, some in fields.items()
            if id not in granted
        )
        return
    assert {each.field_id for each in projections} == set(fields) - granted
    assert len({each.field_id for each in projections}) == len(projections)
    for each in projections:
        some = fields[each.field_id]
        assert all(applies(each.action, f.type, required=any(g.required for g in some)) for f in some)
    assert msgspec.json.decode(encoded(projections) or b"{}") is not None


@pytest.mark.threat("LG-DEC-27")
@given(SCHEMAS)
def test_readable_columns_are_never_more_than_the_granted_ones(schemas: list[list[dict[str, Any]]]) -> None:
    columns: Columns = columns_of(document(*schemas))
    assert columns.readable(set()) == frozenset()
    every = frozenset(range(1, 9))
    assert columns.readable(every) == {field.id for field in columns.current}
