# SPDX-License-Identifier: Apache-2.0
"""Validation of values in the single-value JSON form (Iceberg table specification, appendix D).

A default value that engines cannot parse makes the table unreadable, so the catalog rejects it in the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from gateway.iceberg.types import Type, type_name

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
_PARAMETERS: Final = re.compile(r"\d+")


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
    """Return True if the match is a date of the calendar in one of these years."""
    year = int(found["year"])
    try:
        # The calendar repeats every 400 years. Python knows the years 1 to 9999 only.
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
