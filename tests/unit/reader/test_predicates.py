# SPDX-License-Identifier: Apache-2.0
"""The row filter of read-restrictions on arrow record batches, compared with an interpreter of single values."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema

from lakegate.reader import RestrictionNotSupported, apply, decode

SALT = bytes(range(16))


def kept(row_filter: Any, columns: dict[str, Any], *kinds: iceberg.IcebergType) -> list[int]:
    """Return the indexes of the rows that the filter keeps. The columns have the field ids 1, 2, …"""
    fields = [
        iceberg.NestedField(number, name, kind, required=False)
        for number, (name, kind) in enumerate(zip(columns, kinds, strict=True), 1)
    ]
    length = len(next(iter(columns.values())))
    fields.append(iceberg.NestedField(99, "row", iceberg.IntegerType(), required=False))
    batch = pa.RecordBatch.from_pydict({**columns, "row": pa.array(range(length), pa.int32())})
    restrictions = decode(json.dumps({"required-row-filter": row_filter}))
    found: list[int] = apply(batch, restrictions, Schema(*fields), SALT).column("row").to_pylist()
    return found


def ref(field_id: int) -> dict[str, Any]:
    return {"type": "reference", "id": field_id}


def comparing(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "left": ref(1), "right": value}


@pytest.mark.parametrize(
    ("kind", "value", "rows"),
    [
        ("eq", 34, [1]),
        ("not-eq", 34, [0, 2, 3]),
        ("lt", 34, [0]),
        ("lt-eq", 34, [0, 1]),
        ("gt", 34, [2]),
        ("gt-eq", 34, [1, 2]),
        ("eq", None, [3]),
        ("not-eq", None, [0, 1, 2]),
        ("lt-eq", None, [3]),
        ("lt", None, []),
        ("eq", 2**40, []),
    ],
)
def test_comparisons_with_null_are_true_or_false(kind: str, value: Any, rows: list[int]) -> None:
    assert kept(comparing(kind, value), {"a": pa.array([1, 34, 50, None], pa.int32())}, iceberg.IntegerType()) == rows
    swapped = {"type": kind, "left": value, "right": ref(1)}
    mirrored = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq"}.get(kind, kind)
    columns = {"a": pa.array([1, 34, 50, None], pa.int32())}
    assert kept(swapped, columns, iceberg.IntegerType()) == kept(
        comparing(mirrored, value), columns, iceberg.IntegerType()
    )


@pytest.mark.parametrize(
    ("row_filter", "rows"),
    [
        (comparing("lt", 1.0), [0, 4]),
        (comparing("not-eq", 0.0), [1, 2, 3]),
        (comparing("eq", 0), [0, 4]),
        ({"type": "in", "child": ref(1), "values": [0.0, 7.5]}, [0, 3, 4]),
        ({"type": "not-in", "child": ref(1), "values": [0.0, 7.5]}, [1, 2]),
        ({"type": "is-nan", "child": ref(1)}, [1]),
        ({"type": "not-nan", "child": ref(1)}, [0, 2, 3, 4]),
        ({"type": "is-null", "child": ref(1)}, [2]),
        ({"type": "eq", "left": ref(1), "right": ref(1)}, [0, 1, 2, 3, 4]),
        ({"type": "lt-eq", "left": ref(1), "right": ref(1)}, [0, 1, 2, 3, 4]),
        ({"type": "lt", "left": ref(1), "right": ref(1)}, []),
    ],
)
def test_nan_and_both_zeros(row_filter: Any, rows: list[int]) -> None:
    column = pa.array([0.0, math.nan, None, 7.5, -0.0], pa.float64())
    assert kept(row_filter, {"a": column}, iceberg.DoubleType()) == rows


@pytest.mark.parametrize(
    ("kind", "values", "literal", "rows"),
    [
        (iceberg.BooleanType(), pa.array([True, False, None]), True, [0]),
        (iceberg.DecimalType(9, 2), pa.array(["1.20", "1.21", None]).cast(pa.decimal128(9, 2)), "1.20", [0]),
        (iceberg.DateType(), pa.array([17486, 0, None], pa.int32()).cast(pa.date32()), "2017-11-16", [0]),
        (iceberg.TimeType(), pa.array([81_068_123_456, 0], pa.int64()).cast(pa.time64("us")), "22:31:08.123456", [0]),
        (
            iceberg.TimestampType(),
            pa.array([-1, 0, None], pa.int64()).cast(pa.timestamp("us")),
            "1969-12-31T23:59:59.999999",
            [0],
        ),
        (
            iceberg.TimestamptzType(),
            pa.array([0, 1], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "1970-01-01T00:00:00+00:00",
            [0],
        ),
        (
            iceberg.TimestampNanoType(),
            pa.array([1, 1000], pa.int64()).cast(pa.timestamp("ns")),
            "1970-01-01T00:00:00.000000001",
            [0],
        ),
        (iceberg.UUIDType(), pa.array([bytes(16), None], pa.uuid()), "00000000-0000-0000-0000-000000000000", [0]),
        (iceberg.FixedType(2), pa.array([b"\x00\xff", b"\x00\x00"], pa.binary(2)), "00FF", [0]),
        (iceberg.BinaryType(), pa.array([b"\x00\xff", b""], pa.large_binary()), "00FF", [0]),
        (iceberg.StringType(), pa.array(["é", "e", None]), "é", [0]),
        (iceberg.StringType(), pa.array(["é", "e", "é", None]).dictionary_encode(), "é", [0, 2]),
        (iceberg.LongType(), pa.array([2**53 + 1, 2**53], pa.int64()), 2**53 + 1, [0]),
        (iceberg.FloatType(), pa.array([0.1, 0.2], pa.float32()), 0.1, [0]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_literals_of_each_type(kind: iceberg.IcebergType, values: Any, literal: Any, rows: list[int]) -> None:
    assert kept(comparing("eq", literal), {"a": values}, kind) == rows
    assert kept({"type": "in", "child": ref(1), "values": [literal]}, {"a": values}, kind) == rows
    typed = {"type": "literal", "value": literal, "data-type": str(kind)}
    assert kept(comparing("eq", typed), {"a": values}, kind) == rows


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        (iceberg.IntegerType(), "1"),
        (iceberg.IntegerType(), 1.0),
        (iceberg.IntegerType(), True),
        (iceberg.LongType(), 2**63),
        (iceberg.StringType(), 1),
        (iceberg.BooleanType(), 1),
        (iceberg.DoubleType(), "1.0"),
        (iceberg.DecimalType(9, 2), "1.001"),
        (iceberg.DecimalType(9, 2), "10000000.00"),
        (iceberg.DecimalType(9, 2), "NaN"),
        (iceberg.DateType(), "2017-13-01"),
        (iceberg.DateType(), "17-1-1"),
        (iceberg.TimeType(), "24:00:00"),
        (iceberg.TimestampType(), "2017-11-16T00:00:00+00:00"),
        (iceberg.TimestampType(), "2017-11-16T00:00:00.1234567"),
        (iceberg.TimestamptzType(), "2017-11-16T00:00:00"),
        (iceberg.TimestamptzType(), "2017-11-16T00:00:00+01:00"),
        (iceberg.UUIDType(), "00000000000000000000000000000000"),
        (iceberg.FixedType(2), "00"),
        (iceberg.BinaryType(), "0"),
        (iceberg.IntegerType(), {"type": "literal", "value": 1, "data-type": "string"}),
        (iceberg.DecimalType(9, 2), {"type": "literal", "value": "1.0", "data-type": "decimal(9,1)"}),
    ],
    ids=str,
)
def test_literal_that_does_not_fit_the_type_is_refused(kind: iceberg.IcebergType, literal: Any) -> None:
    with pytest.raises(RestrictionNotSupported, match="literal"):
        kept(comparing("eq", literal), {"a": pa.nulls(1)}, kind)


def test_start_of_a_text() -> None:
    column = {"a": pa.array(["ab", "a", None, "%b"])}
    assert kept(comparing("starts-with", "ab"), column, iceberg.StringType()) == [0]
    assert kept(comparing("not-starts-with", "ab"), column, iceberg.StringType()) == [1, 2, 3]
    assert kept(comparing("starts-with", "%"), column, iceberg.StringType()) == [3]
    assert kept(comparing("starts-with", ""), column, iceberg.StringType()) == [0, 1, 3]


def test_membership_with_null_and_without_values() -> None:
    column = {"a": pa.array(["a", "b", None])}
    for values, rows in (([], []), (["a"], [0]), (["a", None], [0, 2]), ([None], [2])):
        assert kept({"type": "in", "child": ref(1), "values": values}, column, iceberg.StringType()) == rows
        negated = kept({"type": "not-in", "child": ref(1), "values": values}, column, iceberg.StringType())
        assert negated == sorted({0, 1, 2} - set(rows))


def test_field_of_a_null_struct_is_null() -> None:
    inner = iceberg.NestedField(2, "x", iceberg.IntegerType(), required=False)
    schema = Schema(iceberg.NestedField(1, "s", iceberg.StructType(inner), required=False))
    hidden = pa.StructArray.from_arrays([pa.array([7, 7])], names=["x"], mask=pa.array([True, False]))
    restrictions = decode('{"required-row-filter": {"type": "eq", "left": {"type": "reference", "id": 2}, "right": 7}}')
    found = apply(pa.RecordBatch.from_arrays([hidden], names=["s"]), restrictions, schema, SALT)
    assert found.to_pydict() == {"s": [{"x": 7}]}


@pytest.mark.parametrize(
    "row_filter",
    [
        {"type": "is-nan", "child": ref(1)},
        comparing("starts-with", "1"),
        {"type": "starts-with", "left": "1", "right": ref(1)},
        {"type": "eq", "left": 1, "right": 1},
        {"type": "is-nan", "child": 1.0},
        {"type": "in", "child": 1, "values": [1]},
        {"type": "eq", "left": ref(1), "right": ref(99)},
    ],
    ids=str,
)
def test_predicate_that_the_reader_cannot_evaluate_is_refused(row_filter: Any) -> None:
    with pytest.raises(RestrictionNotSupported):
        kept(row_filter, {"a": pa.array([1], pa.int32()).cast(pa.date32())}, iceberg.DateType())


LITERALS = st.none() | st.integers(-3, 3)
LEAVES = st.one_of(
    st.booleans(),
    st.builds(
        lambda kind, field, literal: {"type": kind, "left": ref(field), "right": literal},
        st.sampled_from(["eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq"]),
        st.sampled_from([1, 2]),
        LITERALS | st.sampled_from([ref(1), ref(2)]),
    ),
    st.builds(
        lambda kind, field, values: {"type": kind, "child": ref(field), "values": values},
        st.sampled_from(["in", "not-in"]),
        st.sampled_from([1, 2]),
        st.lists(LITERALS, max_size=3),
    ),
    st.builds(
        lambda kind, field: {"type": kind, "child": ref(field)},
        st.sampled_from(["is-null", "not-null"]),
        st.sampled_from([1, 2]),
    ),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda child: {"type": "not", "child": child}, inner),
        st.builds(
            lambda kind, left, right: {"type": kind, "left": left, "right": right},
            st.sampled_from(["and", "or"]),
            inner,
            inner,
        ),
    ),
    max_leaves=12,
)

ORDERS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt,
    "lt-eq": operator.le,
    "gt": operator.gt,
    "gt-eq": operator.ge,
}


def holds(row_filter: Any, row: dict[int, int | None]) -> bool:
    """Interpret a filter on one row, as `format/expressions-spec.md` describes it."""

    def value(term: Any) -> int | None:
        return row[term["id"]] if isinstance(term, dict) else term

    if isinstance(row_filter, bool):
        return row_filter
    match row_filter["type"]:
        case "not":
            return not holds(row_filter["child"], row)
        case "and":
            return holds(row_filter["left"], row) and holds(row_filter["right"], row)
        case "or":
            return holds(row_filter["left"], row) or holds(row_filter["right"], row)
        case "is-null":
            return value(row_filter["child"]) is None
        case "not-null":
            return value(row_filter["child"]) is not None
        case "in" | "not-in" as kind:
            values: list[int | None] = row_filter["values"]
            return (value(row_filter["child"]) in values) is (kind == "in")
    left, right, kind = value(row_filter["left"]), value(row_filter["right"]), str(row_filter["type"])
    if kind in ("eq", "not-eq"):
        return (left == right) is (kind == "eq")
    if left is None or right is None:
        return left is None and right is None and kind in ("lt-eq", "gt-eq")
    return ORDERS[kind](left, right)


@given(FILTERS, st.lists(st.tuples(LITERALS, LITERALS), max_size=12))
def test_generated_filters_keep_the_rows_of_the_interpreter(row_filter: Any, data: list[tuple[Any, Any]]) -> None:
    columns = {
        "a": pa.array([first for first, _ in data], pa.int32()),
        "b": pa.array([second for _, second in data], pa.int64()),
    }
    expected = [number for number, (a, b) in enumerate(data) if holds(row_filter, {1: a, 2: b})]
    assert kept(row_filter, columns, iceberg.IntegerType(), iceberg.LongType()) == expected
