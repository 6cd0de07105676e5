# SPDX-License-Identifier: Apache-2.0
"""Check values in the single-value JSON form (Iceberg table specification, appendix D), and convert literals.

The literals of row filters have exactly one form for each type, which all compilers and readers use: the single-value
form with these choices. Temporal values have all six or nine digits of a second, `+00:00` for UTC, and a year of four
digits. UUIDs are lower case, and binary values are upper case. Decimals have the scale of the column. Negative zero is
zero. A float has single precision.

The Iceberg types have the form of schema JSON: primitive types are strings (`"long"`, `"decimal(9,2)"`), nested types
are structs. Source: Iceberg table specification, "Schemas and Data Types" and appendix C, including format version 3.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from typing import Annotated, Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct

from lakegate.restrictions.predicates import Comparison
from lakegate.restrictions.predicates import Literal as Value

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""`integer` of the specification: 32 bits, so that every reader can represent it."""

ABSENT: Final = Raw(b"null")
"""The value of a raw JSON member that the client left out or sent as null."""


class NestedField(Struct, frozen=True, rename="kebab", kw_only=True):
    """A column, or a field of a struct at any depth. Default values stay JSON (single-value form)."""

    id: Int
    name: str
    required: bool
    type: Type
    doc: str | None = None
    initial_default: Raw = ABSENT
    write_default: Raw = ABSENT

    def __post_init__(self) -> None:
        _squeeze(self, "type")


class StructType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="struct"):
    """A struct with its fields."""

    fields: tuple[NestedField, ...]


class ListType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="list"):
    """A list. Its element is a field without a name."""

    element_id: Int
    element: Type
    element_required: bool

    def __post_init__(self) -> None:
        _squeeze(self, "element")


class MapType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="map"):
    """A map. Keys are always required."""

    key_id: Int
    key: Type
    value_id: Int
    value: Type
    value_required: bool

    def __post_init__(self) -> None:
        _squeeze(self, "key")
        _squeeze(self, "value")


Type: TypeAlias = str | StructType | ListType | MapType


def _squeeze(node: Struct, attribute: str) -> None:
    """Remove spaces from a primitive type. `decimal(9, 2)` and `decimal(9,2)` are the same type and must compare
    equal.
    """
    kind = getattr(node, attribute)
    if isinstance(kind, str) and " " in kind:
        msgspec.structs.force_setattr(node, attribute, kind.replace(" ", ""))


def type_name(kind: Type) -> str:
    """Return the name of the type without parameters: `decimal`, `fixed`, `geometry`, `struct`, `long`, …"""
    if isinstance(kind, str):
        return re.split(r"[\[(]", kind, maxsplit=1)[0].strip().lower()
    return {StructType: "struct", ListType: "list", MapType: "map"}[type(kind)]


class NotALiteral(ValueError):
    """The value is not a value of the type, or not one that all engines support. The message tells what is right."""


_EQUALITY: Final = frozenset({Comparison.EQ, Comparison.NOT_EQ})
_PREFIX: Final = frozenset({Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH})
_ORDERED: Final = frozenset({"int", "long", "float", "double", "decimal", "date", "time", "string"}) | frozenset(
    {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
)
_EQUATED: Final = frozenset({"boolean", "uuid", "binary", "fixed"})
_NANOSECONDS: Final = frozenset({"timestamp_ns", "timestamptz_ns"})
_NUMBERS: Final = frozenset({"int", "long", "float", "double"})
_PARAMETERS: Final = re.compile(r"\d+")
_LONGEST: Final = 4096
_CONTEXT: Final = Context(prec=100)


def comparable(operator: Comparison, kind: Type) -> bool:
    """Return True if row filters can compare a column of the type with a literal by the operator.

    Booleans, UUIDs and binary values have no order that all engines share, so they can only be compared by equality.
    """
    name = type_name(kind)
    if operator in _PREFIX:
        return name == "string"
    return name in _ORDERED or (operator in _EQUALITY and name in _EQUATED)


def literal(value: Value, kind: Type) -> Value:
    """Return the value in the only form that its type has here. Raises NotALiteral if it is not a value of the type."""
    name = type_name(kind)
    if isinstance(kind, str) and name == "decimal":
        return _decimal(value, kind)
    if not is_value_of(value, kind):
        raise NotALiteral(f"{_shown(value)} is not a value of the type {name}")
    convert = _CONVERSIONS.get(name)
    return value if convert is None else convert(value, name)


def attribute_literal(text: str, kind: Type) -> Value:
    """Return the value of a user's attribute, which is always a text. Raises NotALiteral if it is not a value of the
    type.
    """
    name = type_name(kind)
    if name == "boolean" and text in ("true", "false"):
        return text == "true"
    if name in ("int", "long") and re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
        return literal(int(text), kind)
    if name in ("float", "double") and re.fullmatch(r"-?\d{1,40}(\.\d{1,40})?", text, re.ASCII):
        return literal(float(text), kind)
    if name in _NUMBERS or name == "boolean":
        raise NotALiteral(f"the text is not a value of the type {name}")
    return literal(text, kind)


def _shown(value: object) -> str:
    return repr(value)[:60]


def _decimal(value: Value, kind: str) -> str:
    precision, scale = (int(number) for number in _PARAMETERS.findall(kind))
    if isinstance(value, bool | float) or not re.fullmatch(r"[+-]?\d{1,40}(?:\.\d{1,40})?", str(value), re.ASCII):
        raise NotALiteral(f"{_shown(value)} is not a value of the type {kind}: write a text such as '12.50'")
    try:
        number = Decimal(str(value))
        exact = number.quantize(Decimal(1).scaleb(-scale), context=_CONTEXT)
    except InvalidOperation:
        raise NotALiteral(f"{_shown(value)} has too many digits for {kind}") from None
    if exact != number or len(exact.as_tuple().digits) > max(precision, scale):
        raise NotALiteral(f"{_shown(value)} has too many digits for {kind}")
    return f"{abs(exact) if exact == 0 else exact:f}"


def _float(value: Value, name: str) -> float:
    try:
        number = float(value)
        if name == "float":
            (number,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotALiteral(f"{_shown(value)} is outside the range of the type {name}")
    return number + 0.0  # the sum of negative zero and zero is zero


def _text(value: Value, name: str) -> str:
    text = str(value)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise NotALiteral("a text must be valid Unicode, without lone surrogates") from None
    if b"\0" in encoded:
        raise NotALiteral("a text must not contain NUL")
    if len(encoded) > _LONGEST:
        raise NotALiteral(f"a text must have at most {_LONGEST} bytes")
    return text


def _date(value: Value, name: str) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise NotALiteral(f"{_shown(value)} must have a year from 0001 to 9999") from None


def _time(value: Value, name: str) -> str:
    clock, _, fraction = str(value).partition(".")
    if clock.count(":") == 1:
        clock += ":00"
    digits = 9 if name in _NANOSECONDS else 6
    if fraction[digits:].strip("0"):
        raise NotALiteral(f"{_shown(value)} has more than {digits} digits after the second")
    return f"{clock}.{fraction[:digits]:0<{digits}}"


def _timestamp(value: Value, name: str) -> str:
    day, _, rest = str(value).partition("T")
    clock = re.sub(r"(?:Z|[+-]00:00)\Z", "", rest)
    zone = "+00:00" if name.startswith("timestamptz") else ""
    return f"{_date(day, name)}T{_time(clock, name)}{zone}"


_CONVERSIONS: Final[Mapping[str, Callable[[Value, str], Value]]] = {
    "float": _float,
    "double": _float,
    "string": _text,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "timestamp_ns": _timestamp,
    "timestamptz_ns": _timestamp,
    "uuid": lambda value, name: str(UUID(str(value))),
    "binary": lambda value, name: str(value).upper(),
    "fixed": lambda value, name: str(value).upper(),
}


_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)

_DATE: Final = r"(?P<year>\d{4}|-\d{4,9}|\+\d{5,9})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME: Final = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?"
_ZONE: Final = r"(?:Z|[+-]00:00)"
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    "date": re.compile(_DATE, re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "timestamp": re.compile(f"{_DATE}T{_TIME}", re.ASCII),
    "timestamptz": re.compile(f"{_DATE}T{_TIME}{_ZONE}", re.ASCII),
    "timestamp_ns": re.compile(f"{_DATE}T{_TIME}", re.ASCII),
    "timestamptz_ns": re.compile(f"{_DATE}T{_TIME}{_ZONE}", re.ASCII),
}
_DECIMAL: Final = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_YEARS: Final[Mapping[str, range]] = {
    "date": range(-999_999_999, 1_000_000_000),
    "timestamp": range(-290_000, 290_001),
    "timestamptz": range(-290_000, 290_001),
    "timestamp_ns": range(1678, 2262),
    "timestamptz_ns": range(1678, 2262),
}
"""Years whose values fit in 64 bits, in microseconds and nanoseconds since 1970."""

_LARGEST_FLOAT: Final = 3.4028234663852886e38
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def is_value_of(value: object, kind: Type) -> bool:
    """Return True if a JSON value, other than null, is a value of the type.

    Always False for variant, unknown, geometry and geography: their only default value is null. Always False for
    structs, lists and maps too: the Java library opens no table with such a default.
    """
    name = type_name(kind)
    if not isinstance(kind, str):
        return False
    if name == "boolean" or isinstance(value, bool):
        return name == "boolean" and isinstance(value, bool)
    if name in ("int", "long"):
        return isinstance(value, int) and value in (_INT if name == "int" else _LONG)
    if name in ("float", "double"):
        return isinstance(value, int | float) and (name == "double" or abs(value) <= _LARGEST_FLOAT)
    if not isinstance(value, str):
        return False
    if (form := _FORMS.get(name)) is not None:
        found = form.fullmatch(value)
        return found is not None and (name == "time" or _is_day(found, _YEARS[name]))
    check = _TEXTS.get(name)
    return check is not None and check(value, kind)


def _is_day(found: re.Match[str], years: range) -> bool:
    """Return True if the match is a date that exists in the calendar, in one of these years."""
    year = int(found["year"])
    try:
        # Python has only the years 1 to 9999. The calendar repeats every 400 years, so the day is checked in an equal
        # year.
        date(2000 + year % 400, int(found["month"]), int(found["day"]))
    except ValueError:
        return False
    return year in years


def _is_decimal(text: str, kind: str) -> bool:
    precision, scale = (int(number) for number in _PARAMETERS.findall(kind))
    if _DECIMAL.fullmatch(text) is None:
        return False
    _, digits, exponent = Decimal(text).as_tuple()
    return isinstance(exponent, int) and -exponent == scale and len(digits) <= precision


def _is_uuid(text: str, kind: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_fixed(text: str, kind: str) -> bool:
    (length,) = _PARAMETERS.findall(kind)
    return _HEX.fullmatch(text) is not None and len(text) == 2 * int(length)


_TEXTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "string": lambda text, kind: True,
    "binary": lambda text, kind: _HEX.fullmatch(text) is not None,
    "uuid": _is_uuid,
    "fixed": _is_fixed,
    "decimal": _is_decimal,
}
