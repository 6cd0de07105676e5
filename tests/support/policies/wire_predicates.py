# SPDX-License-Identifier: Apache-2.0
"""Evaluate a row filter in the JSON of the protocol, as readers of the specification and older readers do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

Wire: TypeAlias = Any
"""The decoded JSON of a predicate."""


class Nulls(Enum):
    """The result of a comparison with null or NaN."""

    SPECIFICATION = "null equals null only; an order with null is false; NaN is like null"
    ORDERED = "null is less than all values, NaN is greater"


def holds(wire: Wire, row: Mapping[int, Any], literal_of: Callable[[int, Any], Any], nulls: Nulls) -> bool:
    """Return True if the predicate keeps the row. `literal_of` (field id, JSON value) decodes a literal."""
    if isinstance(wire, bool):
        return wire
    kind = wire["type"]
    if kind in ("and", "or"):
        left, right = (holds(wire[side], row, literal_of, nulls) for side in ("left", "right"))
        return left and right if kind == "and" else left or right
    if kind == "not":
        return not holds(wire["child"], row, literal_of, nulls)
    field_id = wire["left" if "left" in wire else "child"]["id"]
    value = row[field_id]
    nan = isinstance(value, float) and math.isnan(value)
    match kind:
        case "is-null":
            return value is None
        case "not-null":
            return value is not None
        case "is-nan":
            return nan
        case "not-nan":
            return not nan
        case "in" | "not-in":
            found = any(value == literal_of(field_id, each) for each in wire["values"])
            return found is (kind == "in")
    return _compared(kind, value, literal_of(field_id, wire["right"]["value"]), nulls)


def _compared(kind: str, value: Any, other: Any, nulls: Nulls) -> bool:
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    if kind in ("eq", "not-eq"):
        return (not absent and value == other) is (kind == "eq")
    if kind in ("starts-with", "not-starts-with"):
        return (not absent and value.startswith(other)) is (kind == "starts-with")
    if not absent:
        if isinstance(value, str):
            value, other = value.encode(), other.encode()
        sign = (value > other) - (value < other)
    elif nulls is Nulls.SPECIFICATION:
        return False
    else:
        sign = -1 if value is None else 1
    results: dict[str, bool] = {"lt": sign < 0, "lt-eq": sign <= 0, "gt": sign > 0, "gt-eq": sign >= 0}
    return results[kind]
