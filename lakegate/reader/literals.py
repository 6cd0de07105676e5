# SPDX-License-Identifier: Apache-2.0
"""Convert literals of a row filter to arrow scalars of the column's type.

The form is the JSON single-value serialization of the Iceberg table specification (appendix D). A literal that does not
fit the type is an error: an approximate filter would return other rows.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyiceberg import types as iceberg

from lakegate.restrictions.literals import literal as literal_form
from lakegate.restrictions.wire import Literal, RestrictionNotSupported

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
    """Return the literal as a scalar that arrow compares with a column of the Iceberg type `kind`.

    Raise RestrictionNotSupported if the literal has another type, or if it is not a value of the type.
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
    """Return the type as in schema JSON."""
    return str(kind).replace(" ", "")


def comparable_array(values: Any) -> Any:
    """Return a column as arrow compares it: without a dictionary, and without the extension type of UUIDs."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values
