# SPDX-License-Identifier: Apache-2.0
"""The nine projections of read-restrictions on arrow arrays, with the vectors of the protocol."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types as iceberg

from lakegate.reader import Action, RestrictionNotSupported
from lakegate.reader.masks import mask, mask_alphanum, sha_256, truncate

SALT = bytes(range(16))
MAIL = "prashant010696@gmail.com"
BINARY = "06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"


def masked(action: Action, kind: iceberg.IcebergType, values: list[Any], arrow: Any, *, required: bool = False) -> Any:
    field = iceberg.NestedField(7, "c", kind, required=required)
    found = mask(field, action, SALT)(pa.array(values, arrow))
    assert found.type == arrow and len(found) == len(values)
    found.validate(full=True)
    return found.to_pylist()


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    ("action", "value", "result"),
    [
        (Action.MASK_ALPHANUM, MAIL, "xxxxxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_FIRST_4, MAIL, "prasxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_LAST_4, MAIL, "xxxxxxxxnnnnnn@xxxxx.com"),
        (Action.MASK_ALPHANUM, "+1 (555) 010-9999", "xnx(nnn)xnnn-nnnn"),
        (Action.SHOW_LAST_4, "Łódź_7", "xxdź_7"),
        (Action.SHOW_FIRST_4, "Łódź_7", "Łódźxn"),
        (Action.SHOW_FIRST_4, "abc", "abc"),
        (Action.SHOW_LAST_4, "abcd", "abcd"),
        (Action.MASK_ALPHANUM, "😀\n٣", "xxx"),
        (Action.MASK_ALPHANUM, "", ""),
        (
            Action.SHA_256_GLOBAL,
            "alice@example.com",
            "ff8d9819fc0e12bf0d24892e45987e249a28dce836a85cad60e28eaaa8c6d976",
        ),
        (
            Action.SHA_256_QUERY_LOCAL,
            "alice@example.com",
            "a665c52829b935765f945e38e973753a5c696f59f488d8ca90a67ed7da798d80",
        ),
        (Action.MASK_TO_FIXED_VALUE, "x", "XXXXXXXX"),
    ],
)
def test_texts_have_the_values_of_the_protocol(action: Action, value: str, result: str, arrow: Any) -> None:
    null = "XXXXXXXX" if action is Action.MASK_TO_FIXED_VALUE else None
    assert masked(action, iceberg.StringType(), [None, value, None, value], arrow) == [null, result, null, result]


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "result"),
    [
        (iceberg.IntegerType(), pa.int32(), 42, -290282264),
        (iceberg.IntegerType(), pa.int32(), -1, 454268333),
        (iceberg.LongType(), pa.int64(), 42, -4111196313959201555),
        (iceberg.BinaryType(), pa.binary(), b"\x00\xff", bytes.fromhex(BINARY)),
        (iceberg.BinaryType(), pa.large_binary(), b"\x00\xff", bytes.fromhex(BINARY)),
    ],
)
def test_digests_have_the_values_of_the_protocol(kind: Any, arrow: Any, value: Any, result: Any) -> None:
    assert masked(Action.SHA_256_GLOBAL, kind, [value, None, value], arrow) == [result, None, result]


STRUCT = iceberg.StructType(
    iceberg.NestedField(8, "a", iceberg.StringType(), required=False),
    iceberg.NestedField(9, "b", iceberg.ListType(10, iceberg.IntegerType()), required=False),
)


@pytest.mark.parametrize(
    ("kind", "arrow", "result"),
    [
        (iceberg.BooleanType(), pa.bool_(), False),
        (iceberg.IntegerType(), pa.int32(), 0),
        (iceberg.LongType(), pa.int64(), 0),
        (iceberg.FloatType(), pa.float32(), 0.0),
        (iceberg.DoubleType(), pa.float64(), 0.0),
        (iceberg.DecimalType(9, 2), pa.decimal128(9, 2), Decimal("0.00")),
        (iceberg.DateType(), pa.date32(), date(1970, 1, 1)),
        (iceberg.TimeType(), pa.time64("us"), datetime(1970, 1, 1).time()),
        (iceberg.TimestampType(), pa.timestamp("us"), datetime(1970, 1, 1)),
        (iceberg.TimestamptzType(), pa.timestamp("us", "UTC"), datetime(1970, 1, 1, tzinfo=UTC)),
        (iceberg.UUIDType(), pa.uuid(), UUID(int=0)),
        (iceberg.UUIDType(), pa.binary(16), bytes(16)),
        (iceberg.FixedType(3), pa.binary(3), bytes(3)),
        (iceberg.BinaryType(), pa.large_binary(), b""),
        (iceberg.ListType(8, iceberg.StringType()), pa.large_list(pa.string()), []),
        (iceberg.MapType(8, iceberg.StringType(), 9, iceberg.IntegerType()), pa.map_(pa.string(), pa.int32()), []),
        (STRUCT, pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]), {"a": "XXXXXXXX", "b": []}),
    ],
    ids=str,
)
def test_fixed_value_replaces_values_and_null(kind: Any, arrow: Any, result: Any) -> None:
    assert masked(Action.MASK_TO_FIXED_VALUE, kind, [None, None], arrow, required=True) == [result, result]


@pytest.mark.parametrize("kind", [iceberg.UnknownType(), iceberg.ListType(8, iceberg.UnknownType())], ids=str)
def test_type_without_fixed_value_is_refused(kind: iceberg.IcebergType) -> None:
    with pytest.raises(RestrictionNotSupported, match="no fixed value"):
        mask(iceberg.NestedField(7, "c", kind, required=False), Action.MASK_TO_FIXED_VALUE, SALT)


@pytest.mark.parametrize(("unit", "month"), [("year", 1), ("month", 11)])
def test_instants_are_truncated_in_utc_before_and_after_1970(unit: str, month: int) -> None:
    for arrow in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "+05:30"), pa.timestamp("ns")):
        given_values = [datetime(1969, 11, 30, 23, 59, 59), None, datetime(2024, 11, 1, 0, 0, 1)]
        zone = UTC if arrow.tz else None
        values = pa.array([each and each.replace(tzinfo=zone) for each in given_values], arrow)
        found = truncate(values, unit)
        assert found.type == arrow
        expected = [datetime(1969, month, 1), None, datetime(2024, month, 1)]
        assert (
            found.cast(pa.int64()).to_pylist()
            == pa.array(expected, pa.timestamp(arrow.unit)).cast(pa.int64()).to_pylist()
        )
    assert truncate(pa.array([date(1969, 12, 31)]), "year").to_pylist() == [date(1969, 1, 1)]


@pytest.mark.parametrize("unit", ["year", "month"])
def test_truncation_of_a_year_beyond_16_bits_is_refused(unit: str) -> None:
    days = pa.array([int((40_000 - 1970) * 365.2425) + 100, None])
    for values in (days.cast(pa.int32()).cast(pa.date32()), pc.multiply(days, 86_400_000_000).cast(pa.timestamp("us"))):
        with pytest.raises(RestrictionNotSupported, match="outside"):
            truncate(values, unit)


def test_truncation_outside_of_the_type_is_refused() -> None:
    """The kernel of arrow wraps around to the year 2261 instead."""
    with pytest.raises(RestrictionNotSupported, match="outside"):
        truncate(pa.array([-(2**63) + 5], pa.int64()).cast(pa.timestamp("ns")), "year")


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Action.MASK_ALPHANUM, iceberg.IntegerType()),
        (Action.TRUNCATE_TO_YEAR, iceberg.TimeType()),
        (Action.SHA_256_GLOBAL, iceberg.DoubleType()),
        (Action.SHOW_FIRST_4, iceberg.BinaryType()),
    ],
)
def test_action_of_another_type_is_refused(action: Action, kind: iceberg.IcebergType) -> None:
    with pytest.raises(RestrictionNotSupported, match="does not apply"):
        mask(iceberg.NestedField(7, "c", kind, required=False), action, SALT)


def test_required_column_is_never_replaced_with_null() -> None:
    with pytest.raises(RestrictionNotSupported, match="required"):
        masked(Action.REPLACE_WITH_NULL, iceberg.StringType(), ["a"], pa.string(), required=True)
    assert masked(Action.REPLACE_WITH_NULL, iceberg.StringType(), ["a", None], pa.string()) == [None, None]


def test_short_salt_is_refused() -> None:
    with pytest.raises(RestrictionNotSupported, match="salt"):
        mask(iceberg.NestedField(7, "c", iceberg.StringType(), required=False), Action.SHA_256_QUERY_LOCAL, bytes(15))


def one_by_one(text: str) -> str:
    return "".join("n" if each in "0123456789" else each if each in "(),.-@" else "x" for each in text)


@given(st.lists(st.none() | st.text(), max_size=20), st.integers(0, 20))
def test_texts_in_slices_are_masked_as_one_by_one(texts: list[str | None], start: int) -> None:
    found = mask_alphanum(pa.array(texts, pa.string())[start:])
    found.validate(full=True)
    assert found.to_pylist() == [each if each is None else one_by_one(each) for each in texts[start:]]


@given(st.lists(st.none() | st.sampled_from(["", "a", "é", "bb"])), st.sampled_from([pa.int8(), pa.int32()]))
def test_dictionary_arrays_are_masked_as_plain_ones(texts: list[str | None], index: Any) -> None:
    kind = pa.dictionary(index, pa.string())
    for action in Action:
        if action not in (Action.TRUNCATE_TO_MONTH, Action.TRUNCATE_TO_YEAR):
            plain = masked(action, iceberg.StringType(), texts, pa.string())
            assert masked(action, iceberg.StringType(), texts, kind) == plain


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(1, 3), st.integers(0, 9))
def test_digests_of_numbers_equal_those_of_hashlib(numbers: list[int | None], times: int, start: int) -> None:
    """Repeated values take another way through the code than distinct ones."""

    def digest(number: int) -> int:
        raw = hashlib.sha256(SALT + number.to_bytes(8, "little", signed=True)).digest()
        return int.from_bytes(raw[:8], "little", signed=True)

    values = numbers * times
    found = sha_256(pa.array(values, pa.int64())[start:], SALT)
    found.validate(full=True)
    assert found.to_pylist() == [each if each is None else digest(each) for each in values[start:]]


@given(st.lists(st.none() | st.text()), st.integers(1, 3), st.integers(0, 9))
def test_digests_of_texts_equal_those_of_hashlib(texts: list[str | None], times: int, start: int) -> None:
    values = texts * times
    found = sha_256(pa.array(values, pa.string())[start:], SALT)
    found.validate(full=True)
    expected = [each if each is None else hashlib.sha256(SALT + each.encode()).hexdigest() for each in values[start:]]
    assert found.to_pylist() == expected
