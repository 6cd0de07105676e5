# SPDX-License-Identifier: Apache-2.0
"""The nine actions that replace a column's values in an engine, and the column types of each action.

Source: `ReadRestrictions` and `Action` in the Iceberg REST catalog specification. The set is closed: a reader must fail
on an unknown action, so the gateway sends no other action.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from lakegate.restrictions.literals import ListType, MapType, StructType, Type, type_name


class Action(StrEnum):
    """The replacement of a column's values. The values are the names of the actions in the protocol."""

    MASK_ALPHANUM = "mask-alphanum"
    MASK_TO_FIXED_VALUE = "mask-to-fixed-value"
    REPLACE_WITH_NULL = "replace-with-null"
    SHOW_FIRST_4 = "show-first-4"
    SHOW_LAST_4 = "show-last-4"
    TRUNCATE_TO_YEAR = "truncate-to-year"
    TRUNCATE_TO_MONTH = "truncate-to-month"
    SHA_256_GLOBAL = "sha-256-global"
    SHA_256_QUERY_LOCAL = "sha-256-query-local"


class Projection(msgspec.Struct, frozen=True, order=True):
    """The replacement of the values of one column. `field_id` is greater than 0."""

    field_id: int
    action: Action


_TEXTS: Final = frozenset({"string"})
_DATES: Final = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_HASHED: Final = frozenset({"string", "int", "long", "binary"})
_WITHOUT_FIXED_VALUE: Final = frozenset({"unknown", "geometry", "geography"})

_FOR: Final[dict[Action, frozenset[str]]] = {
    Action.MASK_ALPHANUM: _TEXTS,
    Action.SHOW_FIRST_4: _TEXTS,
    Action.SHOW_LAST_4: _TEXTS,
    Action.TRUNCATE_TO_YEAR: _DATES,
    Action.TRUNCATE_TO_MONTH: _DATES,
    Action.SHA_256_GLOBAL: _HASHED,
    Action.SHA_256_QUERY_LOCAL: _HASHED,
}


def applies(action: Action, kind: Type, *, required: bool) -> bool:
    """Return True if an engine can apply this action to a column of the type.

    Null can replace the values of every optional column. A fixed value exists for every type, except for those of
    `_WITHOUT_FIXED_VALUE` and for types that contain one of them at any depth.
    """
    if action is Action.REPLACE_WITH_NULL:
        return not required
    if action is Action.MASK_TO_FIXED_VALUE:
        return all(name not in _WITHOUT_FIXED_VALUE for name in _names_within(kind))
    return type_name(kind) in _FOR[action]


def without_salt(action: Action, *, required: bool) -> Action:
    """Return the action for stored rows or texts, for which there is no salt of one query.

    `sha-256-query-local` prevents that equal values are recognized across queries. With a fixed salt its hashes would
    be equal in all queries. So values are replaced by null instead, or by the fixed value in a required column.
    """
    if action is not Action.SHA_256_QUERY_LOCAL:
        return action
    return Action.MASK_TO_FIXED_VALUE if required else Action.REPLACE_WITH_NULL


def _names_within(kind: Type) -> Iterator[str]:
    """Yield the names of the type and of all types within it."""
    yield type_name(kind)
    for inner in _inside(kind):
        yield from _names_within(inner)


def _inside(kind: Type) -> tuple[Type, ...]:
    match kind:
        case StructType(fields=fields):
            return tuple(field.type for field in fields)
        case ListType(element=element):
            return (element,)
        case MapType(key=key, value=value):
            return (key, value)
        case _:
            return ()
