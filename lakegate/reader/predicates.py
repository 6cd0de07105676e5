# SPDX-License-Identifier: Apache-2.0
"""Evaluate the row filter of read-restrictions on arrow record batches.

The semantics are those of `format/expressions-spec.md`: every predicate is true or false. Null equals null and differs
from every value. An order comparison with null is false, except `lt-eq` and `gt-eq` of null and null. The same applies
to NaN. `not-eq`, `not-in` and `not-starts-with` are negations, and therefore true for null. Texts compare by their
UTF-8 bytes. A literal that does not fit the type of its column is an error: an approximate filter would return other
rows.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as iceberg

from lakegate.restrictions.literals import literal as literal_form
from lakegate.restrictions.wire import (
    Both,
    Compare,
    Constant,
    Either,
    Literal,
    Membership,
    Not,
    Predicate,
    Reference,
    RestrictionNotSupported,
    Unary,
    Value,
)

_ARROW: Final[Mapping[type[iceberg.IcebergType], Any]] = {
    iceberg.BooleanType: pa.bool_(),
    iceberg.IntegerType: pa.int64(),
    iceberg.LongType: pa.int64(),
    iceberg.FloatType: pa.float32(),
    iceberg.DoubleType: pa.float64(),
    iceberg.StringType: pa.large_string(),
    iceberg.DateType: pa.date32(),
    iceberg.TimeType: pa.time64("us"),
    iceberg.TimestampType: pa.timestamp("us"),
    iceberg.TimestamptzType: pa.timestamp("us", tz="UTC"),
    iceberg.TimestampNanoType: pa.timestamp("ns"),
    iceberg.TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    iceberg.BinaryType: pa.large_binary(),
    iceberg.UUIDType: pa.binary(16),
}
_FAMILIES: Final = ({"int", "long"}, {"float", "double"})
_DECIMAL: Final = re.compile(r"decimal\(\d+,(\d+)\)")


def scalar(literal: Literal, kind: iceberg.IcebergType) -> pa.Scalar:
    """Return the literal as a scalar with which arrow can compare a column of the Iceberg type `kind`.

    Raises RestrictionNotSupported if the literal is not a value of that type.
    """
    if literal.data_type is not None and not _comparable(literal.data_type, kind):
        raise RestrictionNotSupported(f"a literal of the row filter has another type than its column ({kind})")
    arrow = arrow_type(kind)
    if literal.value is None:
        return pa.scalar(None, arrow)
    try:
        return _scalar(literal.value, kind, arrow)
    except (ValueError, OverflowError, pa.ArrowException):
        pass
    # Raised outside of the handler: the original error would contain the literal.
    raise RestrictionNotSupported(f"a literal of the row filter is not a value of its column's type ({kind})")


def arrow_type(kind: iceberg.IcebergType) -> pa.DataType:
    """Return the arrow type in which values of a primitive Iceberg type are compared."""
    match kind:
        case iceberg.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case iceberg.FixedType():
            return pa.binary(len(kind))
    if type(kind) not in _ARROW:
        raise RestrictionNotSupported(f"the row filter tests a column of type {kind}")
    return _ARROW[type(kind)]


def _comparable(data_type: str, kind: iceberg.IcebergType) -> bool:
    """Return True if the types are equal, or one can be promoted to the other."""
    first, second = data_type.replace(" ", ""), _name(kind)
    if first == second or {first, second} in _FAMILIES:
        return True
    decimals = _DECIMAL.fullmatch(first), _DECIMAL.fullmatch(second)
    return decimals[0] is not None and decimals[1] is not None and decimals[0][1] == decimals[1][1]


def _scalar(value: bool | int | float | str, kind: iceberg.IcebergType, arrow: pa.DataType) -> pa.Scalar:
    # A filter may compare a column with a literal of the type to which it was promoted.
    found = literal_form(value, "long" if isinstance(kind, iceberg.IntegerType) else _name(kind))
    if not isinstance(found, str):
        return pa.scalar(found, arrow)
    match kind:
        case iceberg.DecimalType():
            return pa.scalar(Decimal(found), arrow)
        case iceberg.TimeType():
            return pa.scalar(time.fromisoformat(found), arrow)
        case iceberg.UUIDType():
            return pa.scalar(uuid.UUID(found).bytes, arrow)
        case iceberg.BinaryType() | iceberg.FixedType():
            return pa.scalar(bytes.fromhex(found), arrow)
    return pa.scalar(found).cast(arrow)


def _name(kind: iceberg.IcebergType) -> str:
    """Return the type as it is written in schema JSON."""
    return str(kind).replace(" ", "")


def comparable_array(values: Any) -> Any:
    """Return a column in the form in which arrow can compare it: without dictionary encoding and without the UUID
    extension type.
    """
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values


Test: TypeAlias = Callable[[pa.RecordBatch], Any]
"""Return for a batch an array of booleans without null, or one boolean scalar for all rows."""

_MIRRORED: Final = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}
_KERNELS: Final = {
    "eq": pc.equal,
    "lt": pc.less,
    "lt-eq": pc.less_equal,
    "gt": pc.greater,
    "gt-eq": pc.greater_equal,
}


@dataclass(frozen=True)
class Column:
    """A primitive column of the batches: the indexes of its path from the root, and its Iceberg type."""

    path: tuple[int, ...]
    kind: iceberg.IcebergType

    @property
    def floating(self) -> bool:
        """Return True if the column can contain NaN."""
        return isinstance(self.kind, iceberg.FloatType | iceberg.DoubleType)

    def values(self, batch: pa.RecordBatch) -> Any:
        """Return the values of the column. If a struct is null, its fields are null."""
        values = batch.column(self.path[0])
        if len(self.path) > 1:
            values = pc.struct_field(values, list(self.path[1:]))
        return comparable_array(values)


def compiled(predicate: Predicate, column: Callable[[int], Column]) -> Test:
    """Return the test function of a predicate. `column` returns the column with a field id.

    Raises RestrictionNotSupported if a literal does not have the column's type, or a test does not apply to the type.
    """
    match predicate:
        case Constant(value=value):
            return lambda batch: pa.scalar(value)
        case Both(left=left, right=right):
            first, second = compiled(left, column), compiled(right, column)
            return lambda batch: pc.and_(first(batch), second(batch))
        case Either(left=left, right=right):
            first, second = compiled(left, column), compiled(right, column)
            return lambda batch: pc.or_(first(batch), second(batch))
        case Not(child=child):
            return _negated(compiled(child, column))
        case Unary(test=test, child=child):
            return _unary(test, child, column)
        case Compare(test=test, left=left, right=right):
            return _comparison(test, left, right, column)
        case Membership(child=child, values=values, negated=negated):
            found = _membership(child, values, column)
            return _negated(found) if negated else found


def rows(test: Test, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of the batch for which the test is true."""
    mask = test(batch)
    if isinstance(mask, pa.Scalar):
        return batch if mask.as_py() is True else batch.slice(0, 0)
    return batch.filter(mask)


def _negated(test: Test) -> Test:
    return lambda batch: pc.invert(test(batch))


def _unary(test: str, child: Value, column: Callable[[int], Column]) -> Test:
    if isinstance(child, Literal):
        if test in ("is-null", "not-null"):
            null = child.value is None
            return lambda batch: pa.scalar(null == (test == "is-null"))
        raise RestrictionNotSupported("the row filter tests a literal for NaN")
    found = column(child.field_id)
    if test in ("is-null", "not-null"):
        return lambda batch: (pc.is_null if test == "is-null" else pc.is_valid)(found.values(batch))
    if not found.floating:
        raise RestrictionNotSupported(f"the row filter tests field {child.field_id} for NaN, but its type has none")

    def is_nan(batch: pa.RecordBatch) -> Any:
        return pc.fill_null(pc.is_nan(found.values(batch)), False)

    return is_nan if test == "is-nan" else _negated(is_nan)


def _comparison(test: str, left: Value, right: Value, column: Callable[[int], Column]) -> Test:
    if test in ("starts-with", "not-starts-with"):
        found = _starts_with(left, right, column)
        return found if test == "starts-with" else _negated(found)
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            raise RestrictionNotSupported("the row filter compares two literals")
        left, right, test = right, left, _MIRRORED[test]
    if test == "not-eq":
        return _negated(_comparison("eq", left, right, column))
    first = column(left.field_id)
    _ = arrow_type(first.kind)  # refuses types that cannot be compared
    kernel = _KERNELS[test]
    if isinstance(right, Literal):
        value = scalar(right, first.kind)
        if value.is_valid:
            return lambda batch: pc.fill_null(kernel(first.values(batch), value), False)
        equal = test in ("eq", "lt-eq", "gt-eq")
        return lambda batch: pc.is_null(first.values(batch)) if equal else pa.scalar(False)
    return _columns(test, first, column(right.field_id))


def _columns(test: str, first: Column, second: Column) -> Test:
    if arrow_type(first.kind) != arrow_type(second.kind):
        raise RestrictionNotSupported("the row filter compares two columns of different types")
    kernel, equal = _KERNELS[test], test in ("eq", "lt-eq", "gt-eq")

    def evaluate(batch: pa.RecordBatch) -> Any:
        left, right = first.values(batch), second.values(batch)
        found = pc.fill_null(kernel(left, right), False)
        if equal:
            found = pc.or_(found, pc.and_(pc.is_null(left), pc.is_null(right)))
            if first.floating:
                nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
                found = pc.or_(found, pc.fill_null(nan, False))
        return found

    return evaluate


def _starts_with(left: Value, right: Value, column: Callable[[int], Column]) -> Test:
    if not isinstance(left, Reference) or not isinstance(right, Literal):
        raise RestrictionNotSupported("`starts-with` of the row filter needs a column and a literal")
    found = column(left.field_id)
    if not isinstance(found.kind, iceberg.StringType):
        raise RestrictionNotSupported(f"the row filter tests the start of field {left.field_id}, which is no string")
    prefix = scalar(right, found.kind).as_py()
    if prefix is None:
        return lambda batch: pa.scalar(False)
    return lambda batch: pc.fill_null(pc.starts_with(found.values(batch), prefix), False)


def _membership(child: Value, values: Sequence[Literal], column: Callable[[int], Column]) -> Test:
    if isinstance(child, Literal):
        raise RestrictionNotSupported("the row filter tests a literal for membership")
    found = column(child.field_id)
    scalars = [scalar(each, found.kind) for each in values]
    present = [each for each in scalars if each.is_valid]
    with_null = len(present) < len(scalars)
    if found.floating:  # `is_in` distinguishes 0.0 from -0.0

        def among(column_values: Any) -> Any:
            return reduce(pc.or_, (pc.fill_null(pc.equal(column_values, each), False) for each in present))
    else:
        known = pa.array([each.as_py() for each in present], arrow_type(found.kind))

        def among(column_values: Any) -> Any:
            return pc.is_in(column_values.cast(known.type), value_set=known)

    def evaluate(batch: pa.RecordBatch) -> Any:
        column_values = found.values(batch)
        matches = among(column_values) if present else pa.scalar(False)
        return pc.or_(matches, pc.is_null(column_values)) if with_null else matches

    return evaluate
