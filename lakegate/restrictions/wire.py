# SPDX-License-Identifier: Apache-2.0
"""Decode the `read-restrictions` of a load response. Unknown content is an error, never ignored.

The form is that of the Iceberg REST specification: `LoadTableResult.read-restrictions`, with the predicates of
`format/expressions-spec.md`. Columns are identified only by field id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from lakegate.restrictions.actions import Action, Projection

#: The maximum nesting of a filter, so that a response cannot exhaust the stack. The gateway sends fewer than 100
#: levels.
DEEPEST: Final = 128
_INT_MAX: Final = 2**31 - 1


class RestrictionNotSupported(Exception):
    """Raised for a restriction that a client cannot apply in full. No row is returned then.

    The text names the restriction and field ids. It contains no value of a row and no literal of a filter.
    """


@dataclass(frozen=True)
class Reference:
    """A column, which is identified by its field id."""

    field_id: int


@dataclass(frozen=True, repr=False)
class Literal:
    """A value in the single-value JSON form of the Iceberg table specification. It has a type if the server sent one.

    The value is not in the `repr`, because filters can contain attributes of users.
    """

    value: bool | int | float | str | None
    data_type: str | None = None

    def __repr__(self) -> str:
        return "Literal(…)"


Value: TypeAlias = Reference | Literal


@dataclass(frozen=True)
class Constant:
    """A predicate that holds for all rows, or for none."""

    value: bool


@dataclass(frozen=True)
class Both:
    """Holds if both operands hold."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Either:
    """Holds if at least one operand holds."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Not:
    """Holds if the operand does not hold."""

    child: Predicate


@dataclass(frozen=True)
class Unary:
    """A test of one value. `test` is `is-null`, `not-null`, `is-nan` or `not-nan`."""

    test: str
    child: Value


@dataclass(frozen=True)
class Compare:
    """A comparison of two values. `test` is the name in the protocol, for example `lt-eq`."""

    test: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Membership:
    """Holds if the value equals one of the literals, or none of them if `negated`."""

    child: Value
    values: tuple[Literal, ...]
    negated: bool


Predicate: TypeAlias = Constant | Both | Either | Not | Unary | Compare | Membership

UNARY: Final = frozenset({"is-null", "not-null", "is-nan", "not-nan"})
COMPARISONS: Final = frozenset(
    {"eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq", "starts-with", "not-starts-with"},
)


@dataclass(frozen=True)
class ReadRestrictions:
    """The restrictions of one load response: at most one projection for each field id, and a row filter."""

    projections: tuple[Projection, ...] = ()
    row_filter: Predicate = Constant(True)


def decode(content: bytes | str) -> ReadRestrictions:
    """Decode the JSON value of `read-restrictions`. An empty object restricts nothing.

    Raises RestrictionNotSupported for invalid JSON, for an unknown field, action, predicate or value, for two
    projections of one field id, and for a column that is identified by name.
    """
    try:
        value = json.loads(content, object_pairs_hook=_members, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = _INVALID
    if value is _INVALID:  # raised outside of the handler: the parser's error would contain parts of the text
        raise RestrictionNotSupported("read-restrictions is not valid JSON")
    found = _object(value, "read-restrictions", (), ("required-column-projections", "required-row-filter"))
    projections = _projections(found.get("required-column-projections", []))
    if "required-row-filter" not in found:
        return ReadRestrictions(projections)
    return ReadRestrictions(projections, _predicate(found["required-row-filter"], DEEPEST))


_INVALID: Final = object()


def _members(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError("an object has a member twice")
        found[name] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _object(value: object, place: str, needed: Iterable[str], optional: Iterable[str] = ()) -> dict[str, object]:
    if not isinstance(value, dict):
        raise RestrictionNotSupported(f"{place} is not an object")
    if missing := sorted(set(needed) - value.keys()):
        raise RestrictionNotSupported(f"{place} lacks {', '.join(missing)}")
    if value.keys() - set(needed) - set(optional):
        raise RestrictionNotSupported(f"{place} has a member that this reader does not know; update the reader")
    return value


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise RestrictionNotSupported(f"{place} is not a list")
    return value


def _field_id(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _INT_MAX:
        raise RestrictionNotSupported("a field id is not a positive 32-bit integer")
    return value


def _projections(value: object) -> tuple[Projection, ...]:
    found: dict[int, Projection] = {}
    for item in _list(value, "required-column-projections"):
        members = _object(item, "a projection", ("action", "field-id"))
        field_id = _field_id(members["field-id"])
        if members["action"] not in list(Action):
            raise RestrictionNotSupported(f"the action of field {field_id} is unknown; update the reader")
        if field_id in found:
            raise RestrictionNotSupported(f"field {field_id} has two projections")
        found[field_id] = Projection(field_id, Action(str(members["action"])))
    return tuple(found.values())


def _predicate(value: object, depth: int) -> Predicate:
    if isinstance(value, bool):
        return Constant(value)
    if depth == 0:
        raise RestrictionNotSupported(f"the row filter is nested deeper than {DEEPEST}")
    kind = value.get("type") if isinstance(value, dict) else None
    place = "the row filter"
    match kind:
        case "true" | "false":
            _object(value, place, ("type",))
            return Constant(kind == "true")
        case "and" | "or":
            members = _object(value, kind, ("type", "left", "right"))
            left, right = _predicate(members["left"], depth - 1), _predicate(members["right"], depth - 1)
            return Both(left, right) if kind == "and" else Either(left, right)
        case "not":
            return Not(_predicate(_object(value, kind, ("type", "child"))["child"], depth - 1))
        case "in" | "not-in":
            members = _object(value, kind, ("type", "child", "values"))
            return Membership(_value(members["child"]), _literals(members["values"]), kind == "not-in")
    if isinstance(kind, str) and kind in UNARY:
        return Unary(kind, _value(_object(value, kind, ("type", "child"))["child"]))
    if isinstance(kind, str) and kind in COMPARISONS:
        members = _object(value, kind, ("type", "left", "right"))
        return Compare(kind, _value(members["left"]), _value(members["right"]))
    raise RestrictionNotSupported("the row filter has a predicate that this reader does not know; update the reader")


def _value(value: object) -> Value:
    if isinstance(value, dict) and value.get("type") == "reference":
        if "name" in value:
            raise RestrictionNotSupported("the row filter names a column; a restriction refers to field ids")
        return Reference(_field_id(_object(value, "a reference", ("type", "id"))["id"]))
    return _literal(value)


def _literals(value: object) -> tuple[Literal, ...]:
    data_type = None
    if isinstance(value, dict) and value.get("type") == "literals":
        members = _object(value, "literals", ("type", "values"), ("data-type",))
        value, data_type = members["values"], _data_type(members)
    return tuple(_literal(item, data_type) for item in _list(value, "the values of a filter"))


def _literal(value: object, data_type: str | None = None) -> Literal:
    if isinstance(value, dict) and value.get("type") == "literal":
        members = _object(value, "a literal", ("type", "value"), ("data-type",))
        value, data_type = members["value"], _data_type(members) or data_type
    if value is None or isinstance(value, bool | int | float | str):
        return Literal(value, data_type)
    raise RestrictionNotSupported("the row filter has a value that this reader does not know; update the reader")


def _data_type(members: dict[str, object]) -> str | None:
    found = members.get("data-type")
    if found is not None and not isinstance(found, str):
        raise RestrictionNotSupported("the row filter has a literal of a nested type")
    return found
