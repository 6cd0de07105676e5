# SPDX-License-Identifier: Apache-2.0
"""The strict decoding of `read-restrictions`, and their check against the schemas of a table."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema

from lakegate.reader import Action, ReadRestrictions, RestrictionNotSupported, apply, bind, decode
from lakegate.restrictions.actions import Projection
from lakegate.restrictions.wire import Both, Compare, Constant, Literal, Membership, Not, Reference, Unary

SALT = bytes(range(16))
REF = {"type": "reference", "id": 14}


def restrictions(*projections: tuple[int, str], row_filter: Any = None) -> ReadRestrictions:
    found: dict[str, Any] = {
        "required-column-projections": [{"field-id": field, "action": action} for field, action in projections]
    }
    if row_filter is not None:
        found["required-row-filter"] = row_filter
    return decode(json.dumps(found))


def test_example_of_the_protocol_is_decoded() -> None:
    row_filter = {"type": "eq", "left": REF, "right": {"type": "literal", "value": "US", "data-type": "string"}}
    found = restrictions((4, "show-last-4"), (6, "replace-with-null"), row_filter=row_filter)
    assert found.projections == (Projection(4, Action.SHOW_LAST_4), Projection(6, Action.REPLACE_WITH_NULL))
    assert found.row_filter == Compare("eq", Reference(14), Literal("US", "string"))


def test_all_predicates_are_decoded() -> None:
    inner = {"type": "in", "child": REF, "values": {"type": "literals", "values": [1], "data-type": "int"}}
    row_filter = {
        "type": "and",
        "left": {"type": "not", "child": {"type": "is-null", "child": REF}},
        "right": {"type": "and", "left": inner, "right": {"type": "true"}},
    }
    assert restrictions(row_filter=row_filter).row_filter == Both(
        Not(Unary("is-null", Reference(14))),
        Both(Membership(Reference(14), (Literal(1, "int"),), False), Constant(True)),
    )


def test_empty_object_restricts_nothing() -> None:
    assert decode("{}") == ReadRestrictions()


def deep(levels: int) -> Any:
    found: Any = True
    for _ in range(levels):
        found = {"type": "not", "child": found}
    return found


@pytest.mark.parametrize(
    "row_filter",
    [
        {"type": "eq", "left": {"type": "reference", "name": "city"}, "right": 1},
        {"type": "eq", "left": {"type": "reference", "id": 1, "name": "city"}, "right": 1},
        {"type": "eq", "term": "city", "value": 1},
        {"type": "eq", "left": {"type": "transform", "transform": "day", "term": REF}, "right": 1},
        {"type": "eq", "left": {"type": "apply", "function": "f", "arguments": [REF]}, "right": 1},
        {"type": "like", "left": REF, "right": "a%"},
        {"type": "eq", "left": REF, "right": 1, "collation": "de"},
        {"type": "eq", "left": REF},
        {"type": "eq", "left": {"type": "reference", "id": True}, "right": 1},
        {"type": "eq", "left": {"type": "reference", "id": 0}, "right": 1},
        {"type": "in", "child": REF, "values": [[1]]},
        {"type": "in", "child": REF, "values": "a"},
        {"type": "eq", "left": REF, "right": {"type": "literal", "value": 1, "data-type": {"type": "list"}}},
        {"type": ["eq"]},
        [],
        "true",
        deep(129),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_unknown_predicate_is_refused(row_filter: Any) -> None:
    with pytest.raises(RestrictionNotSupported):
        restrictions(row_filter=row_filter)


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        "{",
        '{"required-row-filter": null}',
        '{"required-column-projections": null}',
        '{"required-sampling": 1}',
        '{"required-column-projections": [{"field-id": 1, "action": "mask-hard"}]}',
        '{"required-column-projections": [{"field-id": 1, "action": ["show-first-4"]}]}',
        '{"required-column-projections": [{"field-id": 1, "action": "show-first-4", "keep": 8}]}',
        '{"required-column-projections": [{"field-id": 2147483648, "action": "show-first-4"}]}',
        '{"required-column-projections": [{"field-id": 1.0, "action": "show-first-4"}]}',
        '{"required-row-filter": false, "required-row-filter": true}',
        '{"required-row-filter": {"type": "eq", "left": {"type": "reference", "id": 1}, "right": NaN}}',
        "{" * 100_000,
    ],
    ids=lambda value: value[:60],
)
def test_unknown_content_is_refused(content: str) -> None:
    with pytest.raises(RestrictionNotSupported):
        decode(content)


def test_second_projection_of_a_field_is_refused() -> None:
    with pytest.raises(RestrictionNotSupported, match="two projections"):
        restrictions((4, "show-last-4"), (4, "show-last-4"))


def test_errors_and_reprs_contain_no_literal() -> None:
    row_filter = {"type": "eq", "left": {"type": "reference", "id": 1}, "right": "secret"}
    found = restrictions(row_filter=row_filter)
    assert "secret" not in repr(found)
    schema = Schema(iceberg.NestedField(1, "a", iceberg.IntegerType(), required=False))
    with pytest.raises(RestrictionNotSupported) as refused:
        bind(found, schema, [schema], SALT)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None
    with pytest.raises(RestrictionNotSupported) as refused:
        decode('{"required-row-filter": secret}')
    assert refused.value.__context__ is None


def optional(field_id: int, name: str, kind: iceberg.IcebergType) -> iceberg.NestedField:
    return iceberg.NestedField(field_id, name, kind, required=False)


TEXT = iceberg.StringType()
NESTED = Schema(
    optional(1, "person", iceberg.StructType(optional(2, "mail", TEXT), optional(3, "age", iceberg.IntegerType()))),
    optional(4, "tags", iceberg.ListType(5, iceberg.StructType(optional(6, "text", TEXT)), element_required=False)),
    optional(7, "notes", iceberg.MapType(8, TEXT, 9, TEXT, value_required=False)),
)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (restrictions((8, "mask-alphanum")), "key of a map"),
        (restrictions((1, "mask-to-fixed-value"), (2, "mask-alphanum")), "contains it"),
        (restrictions((4, "replace-with-null"), (6, "mask-alphanum")), "contains it"),
        (restrictions((99, "mask-alphanum")), "no schema"),
        (restrictions(row_filter={"type": "is-null", "child": {"type": "reference", "id": 99}}), "no schema"),
        (restrictions(row_filter={"type": "is-null", "child": {"type": "reference", "id": 6}}), "list or map"),
        (restrictions(row_filter={"type": "eq", "left": {"type": "reference", "id": 1}, "right": 1}), "struct"),
    ],
)
def test_restrictions_that_the_schema_forbids_are_refused(given: ReadRestrictions, problem: str) -> None:
    with pytest.raises(RestrictionNotSupported, match=problem):
        bind(given, NESTED, [NESTED], SALT)


def test_projection_of_a_field_of_another_schema_is_ignored() -> None:
    old = Schema(optional(99, "gone", TEXT))
    assert bind(restrictions((99, "mask-alphanum")), NESTED, [old, NESTED], SALT).masks == {}


def test_fields_inside_of_structs_lists_and_maps_are_masked() -> None:
    person = pa.struct([("mail", pa.string()), ("age", pa.int32())])
    tags = pa.list_(pa.struct([("text", pa.string())]))
    columns = {
        "person": pa.array([None, {"mail": "a1", "age": 1}, None, {"mail": "b2", "age": 2}], person),
        "tags": pa.array([[], [{"text": "c3"}, None], None, [{"text": "d4"}, {"text": None}]], tags),
        "notes": pa.array([[], [("k1", "e5")], None, [("k2", None), ("k3", "f6")]], pa.map_(pa.string(), pa.string())),
    }
    batch = pa.RecordBatch.from_pydict(columns)[1:]
    given = restrictions((2, "mask-alphanum"), (6, "mask-alphanum"), (9, "mask-alphanum"))
    found = apply(batch, given, NESTED, SALT)
    found.validate(full=True)
    assert found.schema == batch.schema
    assert found.to_pydict() == {
        "person": [{"mail": "xn", "age": 1}, None, {"mail": "xn", "age": 2}],
        "tags": [[{"text": "xn"}, None], None, [{"text": "xn"}, {"text": None}]],
        "notes": [[("k1", "xn")], None, [("k2", None), ("k3", "xn")]],
    }


def test_filter_sees_raw_values_and_projections_come_after_it() -> None:
    schema = Schema(optional(1, "a", TEXT))
    row_filter = {"type": "eq", "left": {"type": "reference", "id": 1}, "right": "u1"}
    batch = pa.RecordBatch.from_pydict({"a": ["u1", "u2", None]})
    assert apply(batch, restrictions((1, "mask-alphanum"), row_filter=row_filter), schema, SALT).to_pydict() == {
        "a": ["xn"]
    }


def test_batch_with_other_columns_is_refused() -> None:
    schema = Schema(optional(1, "a", TEXT), optional(2, "b", TEXT))
    with pytest.raises(RestrictionNotSupported, match="other columns"):
        apply(pa.RecordBatch.from_pydict({"b": ["1"], "a": ["2"]}), restrictions((1, "mask-alphanum")), schema, SALT)
