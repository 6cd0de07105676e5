# SPDX-License-Identifier: Apache-2.0
"""Compile restrictions to the JSON of `read-restrictions` in a load response (Iceberg REST specification).

A reader of the specification keeps rows with null for negated comparisons. Older readers also order null below all
values, and NaN above them. So `not-null` and `not-nan` are written beside every comparison that such a reader could
answer with true for null or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from gateway.obligations.kinds import TableRestrictions
from lakegate.restrictions.literals import type_name
from lakegate.restrictions.predicates import (
    ALWAYS,
    And,
    Compare,
    Comparison,
    Constant,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    simplified,
)

Json = bool | dict[str, Any]
"""A predicate of the protocol."""

_NULL_IS_FALSE: Final = frozenset({Comparison.EQ, Comparison.GT, Comparison.GT_EQ, Comparison.STARTS_WITH})
_FLOATS: Final = frozenset({"float", "double"})


def read_restrictions(restrictions: TableRestrictions) -> bytes:
    """Return the JSON of `read-restrictions`; empty if nothing is restricted.

    An absent member means the same as an empty object. Equal restrictions give equal bytes. The JSON has only field
    ids, actions and literals: no policy, role or tag. A filter that keeps all rows is left out.
    """
    members: dict[str, Any] = {}
    if restrictions.masks:
        members["required-column-projections"] = [
            {"field-id": each.field_id, "action": each.action.value} for each in sorted(restrictions.masks)
        ]
    row_filter = simplified(restrictions.row_filter)
    if row_filter != ALWAYS:
        members["required-row-filter"] = predicate_json(row_filter)
    return msgspec.json.encode(members) if members else b""


def predicate_json(predicate: Predicate) -> Json:
    """Return the predicate in the form of the protocol.

    All readers, including older ones, keep exactly the rows that it keeps.
    """
    match predicate:
        case Constant(value=value):
            return value
        case And(operands=operands):
            return _joined("and", [predicate_json(each) for each in operands])
        case Or(operands=operands):
            return _joined("or", [predicate_json(each) for each in operands])
        case Not(operand=IsNull(field_id=field_id)):
            return _unary("not-null", field_id)
        case Not(operand=operand):
            return {"type": "not", "child": predicate_json(operand)}
        case IsNull(field_id=field_id):
            return _unary("is-null", field_id)
        case IsNan(field_id=field_id):
            return _joined("and", [_unary("not-null", field_id), _unary("is-nan", field_id)])
        case Compare():
            return _compare(predicate)
        case In():
            return _in(predicate)
        case _:
            assert_never(predicate)


def _reference(field_id: int) -> dict[str, Any]:
    return {"type": "reference", "id": field_id}


def _unary(name: str, field_id: int) -> Json:
    return {"type": name, "child": _reference(field_id)}


def _joined(name: str, parts: Sequence[Json]) -> Json:
    """Join operands in a balanced tree, because readers recurse. No operands mean true for `and` and false for `or`."""
    if not parts:
        return name == "and"
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return {"type": name, "left": _joined(name, parts[:middle]), "right": _joined(name, parts[middle:])}


def _guards(field_id: int, kind: str) -> list[Json]:
    guards = [_unary("not-null", field_id)]
    return [*guards, _unary("not-nan", field_id)] if type_name(kind) in _FLOATS else guards


def _compare(part: Compare) -> Json:
    test: Json = {
        "type": part.operator.value,
        "left": _reference(part.field_id),
        "right": {"type": "literal", "value": part.value},
    }
    exact = part.operator is Comparison.EQ or (part.operator in _NULL_IS_FALSE and type_name(part.type) not in _FLOATS)
    return test if exact else _joined("and", [*_guards(part.field_id, part.type), test])


def _in(part: In) -> Json:
    guards = _guards(part.field_id, part.type)
    if not part.values:
        return _joined("and", guards) if part.negated else False
    test: Json = {
        "type": "not-in" if part.negated else "in",
        "child": _reference(part.field_id),
        "values": list(part.values),
    }
    return _joined("and", [*guards, test]) if part.negated else test
