# SPDX-License-Identifier: Apache-2.0
"""Check the literals of a row filter against the type of their column.

Literals have the single-value JSON form (Iceberg table specification, appendix D). A literal that is not exactly a
value of the type is refused: a cast could change it, and the filter with it.
"""

from __future__ import annotations

import math
import re
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from gateway.iceberg.types import type_name
from lakegate.spark.errors import RestrictionsRefused

_INTEGERS: Final = {"int": 2**31, "long": 2**63}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_HEX: Final = re.compile(r"([0-9A-Fa-f]{2})*")
_MAX_FLOAT: Final = 3.4028234663852886e38


def check_literal(value: object, kind: str) -> bool | int | float | str:
    """Return the literal in a canonical form for the primitive type `kind`.

    Integers are returned as int, `float` and `double` as float, `boolean` as bool, and all others as text: decimals in
    plain notation with the scale of the type, `timestamptz` in UTC, and binary values as hexadecimal digits.

    Raises:
        RestrictionsRefused: the value is not one of this type, or Spark cannot have the type.
    """
    match type_name(kind):
        case "boolean" if isinstance(value, bool):
            return value
        case "int" | "long" if isinstance(value, int) and not isinstance(value, bool):
            if -_INTEGERS[kind] <= value < _INTEGERS[kind]:
                return value
        case "float" | "double" if isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value) and (kind == "double" or abs(value) <= _MAX_FLOAT):
                return float(value)
        case "string" if isinstance(value, str):
            return value
        case "time" | "timestamp_ns" | "timestamptz_ns" | "variant" | "unknown" | "geometry" | "geography":
            raise RestrictionsRefused(f"the row filter tests a column of type {kind}, which Spark cannot compare here")
        case _ if isinstance(value, str) and (text := _text(value, kind)) is not None:
            return text
    raise RestrictionsRefused(f"the row filter has a literal that is no value of type {kind}")


def _text(value: str, kind: str) -> str | None:
    """Return the canonical text of a literal whose JSON form is a string, or None if it is invalid."""
    try:
        match type_name(kind):
            case "decimal":
                return _decimal(value, kind)
            case "date" if _DATE.fullmatch(value):
                return date.fromisoformat(value).isoformat()
            case "timestamp" if _TIMESTAMP.fullmatch(value):
                return datetime.fromisoformat(value).isoformat(timespec="microseconds")
            case "timestamptz":
                return _instant(value)
            case "uuid" if len(value) == 36:
                return str(uuid.UUID(value))
            case "binary" if _HEX.fullmatch(value):
                return value.upper()
            case "fixed" if _HEX.fullmatch(value) and len(value) == 2 * int(kind[6:-1]):
                return value.upper()
    except (ValueError, InvalidOperation):
        return None
    return None


def _decimal(value: str, kind: str) -> str | None:
    shape = _DECIMAL.fullmatch(kind)
    if shape is None or not _NUMBER.fullmatch(value) or len(value) > 100:
        return None
    precision, scale = int(shape[1]), int(shape[2])
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > 100:
        return None
    if number == 0:
        return f"{Decimal(0):.{scale}f}"
    trailing = len(digits) - len(str(int("".join(map(str, digits)))).rstrip("0"))
    if -exponent - trailing > scale or number.adjusted() + 1 > precision - scale:
        return None
    return f"{number:.{scale}f}"


def _instant(value: str) -> str | None:
    """Return the instant in UTC. The JSON form has the offset `+00:00`; other offsets and `Z` are refused."""
    if not value.endswith("+00:00") or not _TIMESTAMP.fullmatch(value.removesuffix("+00:00")):
        return None
    moment = datetime.fromisoformat(value)
    if moment.utcoffset() != timedelta(0):
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
