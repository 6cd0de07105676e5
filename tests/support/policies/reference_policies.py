# SPDX-License-Identifier: Apache-2.0
"""The reference interpreter of row filters and masks: one row at a time, in plain Python.

It shares no code with the compilers and with the merge of masks. Values are Python values; temporal values are
integers, as Iceberg stores them: days of a date, microseconds of a time or timestamp, nanoseconds of a `timestamp_ns`.
UUIDs are lower-case texts.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from lakegate.restrictions.actions import Action
from lakegate.restrictions.predicates import And, Compare, Comparison, Constant, In, IsNan, IsNull, Not, Or, Predicate

Row = Mapping[int, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIXED: Mapping[str, Any] = {
    "boolean": False,
    "float": 0.0,
    "double": 0.0,
    "decimal": Decimal(0),
    "string": "XXXXXXXX",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "binary": b"",
}


#: The mask of a column with two masks of one family. Two masks of different families show nothing.
MERGED: Mapping[frozenset[Action], Action] = {
    frozenset({Action.SHOW_FIRST_4, Action.SHOW_LAST_4}): Action.MASK_ALPHANUM,
    frozenset({Action.SHOW_FIRST_4, Action.MASK_ALPHANUM}): Action.MASK_ALPHANUM,
    frozenset({Action.SHOW_LAST_4, Action.MASK_ALPHANUM}): Action.MASK_ALPHANUM,
    frozenset({Action.TRUNCATE_TO_MONTH, Action.TRUNCATE_TO_YEAR}): Action.TRUNCATE_TO_YEAR,
    frozenset({Action.SHA_256_GLOBAL, Action.SHA_256_QUERY_LOCAL}): Action.SHA_256_QUERY_LOCAL,
}


@lru_cache(maxsize=100)
def base(kind: str) -> str:
    """Return the name of a primitive type without parameters."""
    return re.split(r"[\[(]", kind)[0]


def keeps(predicate: Predicate, row: Row) -> bool:
    """Return True if the predicate holds for the row. Every comparison with null or NaN is false."""
    match predicate:
        case Constant():
            return predicate.value
        case And():
            return all(keeps(each, row) for each in predicate.operands)
        case Or():
            return any(keeps(each, row) for each in predicate.operands)
        case Not():
            return not keeps(predicate.operand, row)
        case IsNull():
            return row[predicate.field_id] is None
        case IsNan():
            value = row[predicate.field_id]
            return isinstance(value, float) and math.isnan(value)
        case In():
            value = row[predicate.field_id]
            if _absent(value):
                return False
            found = any(value == parsed(each, predicate.type) for each in predicate.values)
            return found is not predicate.negated
        case Compare():
            return _compare(predicate, row[predicate.field_id])
    raise TypeError(predicate)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _compare(test: Compare, value: Any) -> bool:
    if _absent(value):
        return False
    other = parsed(test.value, test.type)
    if isinstance(value, str) and base(test.type) == "string":
        value, other = value.encode(), other.encode()
    match test.operator:
        case Comparison.EQ:
            return bool(value == other)
        case Comparison.NOT_EQ:
            return bool(value != other)
        case Comparison.LT:
            return bool(value < other)
        case Comparison.LT_EQ:
            return bool(value <= other)
        case Comparison.GT:
            return bool(value > other)
        case Comparison.GT_EQ:
            return bool(value >= other)
        case Comparison.STARTS_WITH:
            return bool(value[: len(other)] == other)
        case Comparison.NOT_STARTS_WITH:
            return bool(value[: len(other)] != other)


def parsed(literal: Any, kind: str) -> Any:
    """Return the value of a literal in the single-value JSON form."""
    match base(kind):
        case "decimal":
            return Decimal(literal)
        case "date":
            return date.fromisoformat(literal).toordinal() - date(1970, 1, 1).toordinal()
        case "time":
            return _ticks(literal) // 1000
        case "timestamp" | "timestamptz":
            return _moment(literal) // 1000
        case "timestamp_ns":
            return _moment(literal)
        case "binary" | "fixed":
            return bytes.fromhex(literal)
        case _:
            return literal


def _ticks(clock: str) -> int:
    """Return the nanoseconds of a time of day."""
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 10**9 + int(fraction.ljust(9, "0"))


def _moment(text: str) -> int:
    """Return the nanoseconds since the epoch."""
    day, _, clock = text.removesuffix("+00:00").partition("T")
    return int(parsed(day, "date")) * 86_400 * 10**9 + _ticks(clock)


def merged(one: Action, other: Action) -> Action:
    """Return the mask of a column that has two masks."""
    both = frozenset({one, other})
    if len(both) == 1:
        return one
    if Action.REPLACE_WITH_NULL in both:
        return Action.REPLACE_WITH_NULL
    return MERGED.get(both, Action.MASK_TO_FIXED_VALUE)


def masked(action: Action, kind: str, value: Any, salt: bytes = b"") -> Any:
    """Return the masked value. Null stays null, except for a fixed value."""
    if action is Action.MASK_TO_FIXED_VALUE:
        if base(kind) == "fixed":
            return bytes(int(kind[6:-1]))
        return FIXED.get(base(kind), 0)
    if value is None or action is Action.REPLACE_WITH_NULL:
        return None
    match action:
        case Action.MASK_ALPHANUM:
            return _veiled(value)
        case Action.SHOW_FIRST_4:
            return value[:4] + _veiled(value[4:])
        case Action.SHOW_LAST_4:
            return value if len(value) <= 4 else _veiled(value[:-4]) + value[-4:]
        case Action.SHA_256_GLOBAL | Action.SHA_256_QUERY_LOCAL:
            return _hashed(kind, value, salt if action is Action.SHA_256_QUERY_LOCAL else b"")
        case _:
            return _truncated(kind, value, month=action is Action.TRUNCATE_TO_MONTH)


def _veiled(text: str) -> str:
    return "".join("n" if each in "0123456789" else each if each in "(),.-@" else "x" for each in text)


def _hashed(kind: str, value: Any, salt: bytes) -> Any:
    sizes = {"int": 4, "long": 8}
    if kind == "string":
        return hashlib.sha256(salt + value.encode()).hexdigest()
    if kind == "binary":
        return hashlib.sha256(salt + value).digest()
    encoded = value.to_bytes(sizes[kind], "little", signed=True)
    return int.from_bytes(hashlib.sha256(salt + encoded).digest()[: sizes[kind]], "little", signed=True)


def _truncated(kind: str, value: int, *, month: bool) -> int:
    day = {"date": 1, "timestamp_ns": 86_400 * 10**9}.get(kind, 86_400 * 10**6)
    moment = EPOCH + timedelta(days=value // day)
    first = moment.replace(day=1) if month else moment.replace(month=1, day=1)
    return (first - EPOCH).days * day
