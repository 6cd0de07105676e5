# SPDX-License-Identifier: Apache-2.0
"""Convert literals of a row filter to arrow scalars of the column's type.

The form is the JSON single-value serialization of the Iceberg table specification (appendix D). A literal that does not
fit the type is an error: an approximate filter would return other rows.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
from pyiceberg import types as iceberg

from lakegate.reader.wire import Literal, RestrictionNotSupported

_EPOCH: Final = date(1970, 1, 1).toordinal()
_SECONDS: Final = 86_400
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
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
#: Enough for all decimals; the default context has 28 digits.
_DIGITS: Final = Context(prec=100)
_LONG_RANGE: Final = range(-(2**63), 2**63)


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
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
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
    first, second = data_type.replace(" ", ""), str(kind).replace(" ", "")
    if first == second or {first, second} in _FAMILIES:
        return True
    decimals = _DECIMAL.fullmatch(first), _DECIMAL.fullmatch(second)
    return decimals[0] is not None and decimals[1] is not None and decimals[0][1] == decimals[1][1]


def _scalar(value: bool | int | float | str, kind: iceberg.IcebergType, arrow: pa.DataType) -> pa.Scalar:
    match kind, value:
        case iceberg.BooleanType(), bool():
            return pa.scalar(value, arrow)
        case _, bool():
            raise ValueError
        case ((iceberg.IntegerType() | iceberg.LongType()), int()) if value in _LONG_RANGE:
            return pa.scalar(value, arrow)
        case ((iceberg.FloatType() | iceberg.DoubleType()), (int() | float())):
            return pa.scalar(float(value), arrow)
        case _, str():
            return _from_text(value, kind, arrow)
    raise ValueError


def _from_text(value: str, kind: iceberg.IcebergType, arrow: pa.DataType) -> pa.Scalar:
    match kind:
        case iceberg.StringType():
            return pa.scalar(value, arrow)
        case iceberg.DecimalType(scale=scale):
            number = Decimal(value)
            exact = number.quantize(Decimal(1).scaleb(-scale), context=_DIGITS)
            if number != exact:
                raise ValueError
            return pa.scalar(exact, arrow)
        case iceberg.DateType():
            return pa.scalar(_days(value), pa.int32()).cast(arrow)
        case iceberg.TimeType():
            return pa.scalar(_nanoseconds(value, 6) // 1000, pa.int64()).cast(arrow)
        case iceberg.TimestampType() | iceberg.TimestamptzType():
            return pa.scalar(_instant(value, kind, 6) // 1000, pa.int64()).cast(arrow)
        case iceberg.TimestampNanoType() | iceberg.TimestamptzNanoType():
            return pa.scalar(_instant(value, kind, 9), pa.int64()).cast(arrow)
        case iceberg.UUIDType() if len(value) == 36:
            return pa.scalar(uuid.UUID(value).bytes, arrow)
        case iceberg.BinaryType() | iceberg.FixedType() if _HEX.fullmatch(value):
            return pa.scalar(bytes.fromhex(value), arrow)
    raise ValueError


def _days(text: str) -> int:
    if len(text) != 10:
        raise ValueError
    return datetime.strptime(text, "%Y-%m-%d").toordinal() - _EPOCH


def _nanoseconds(text: str, digits: int) -> int:
    found = _TIME.fullmatch(text)
    if found is None or len(found[4] or "") > digits:
        raise ValueError
    hours, minutes, seconds = (int(part) for part in found.group(1, 2, 3))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError
    return (hours * 3600 + minutes * 60 + seconds) * 10**9 + int((found[4] or "").ljust(9, "0"))


def _instant(text: str, kind: iceberg.IcebergType, digits: int) -> int:
    if isinstance(kind, iceberg.TimestamptzType | iceberg.TimestamptzNanoType):
        text, zone, rest = text.partition("+00:00")
        if not zone or rest:
            raise ValueError
    day, separator, time = text.partition("T")
    if not separator:
        raise ValueError
    return _days(day) * _SECONDS * 10**9 + _nanoseconds(time, digits)


def comparable_array(values: Any) -> Any:
    """Return a column as arrow compares it: without a dictionary, and without the extension type of UUIDs."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values
