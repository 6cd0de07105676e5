# SPDX-License-Identifier: Apache-2.0
"""Compile masks to SQL text, and restrictions to the text of a view, in the dialect of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gateway.obligations.columns import RestrictionNotExpressible
from gateway.obligations.compilers.sql import Dialect, predicate_sql
from lakegate.restrictions.actions import Action, Projection, applies, without_salt
from lakegate.restrictions.predicates import ALWAYS, Predicate
from lakegate.restrictions.types import NestedField, Type, type_name

_SALT_BYTES = 16


def mask_text(
    action: Action, column: str, kind: Type, dialect: Dialect, *, required: bool, salt: bytes | None = None
) -> str:
    """Return the expression that replaces `column`, an expression of the type.

    `salt` has at least 16 random bytes that are made for one query; only `sha-256-query-local` uses them. Raises
    RestrictionNotExpressible if the action does not apply to the type, the engine does not have the type, or the salt
    is missing.
    """
    _require_applicable(action, kind, required=required)
    if not dialect.salted:
        action = without_salt(action, required=required)
    match action:
        case Action.REPLACE_WITH_NULL:
            return f"CAST(NULL AS {dialect.type_of(kind)})"
        case Action.MASK_TO_FIXED_VALUE:
            return dialect.fixed_of(kind)
        case Action.MASK_ALPHANUM:
            return _alphanum(column, dialect)
        case Action.SHOW_FIRST_4:
            shown, hidden = f"{dialect.substring}({column}, 1, 4)", f"{dialect.substring}({column}, 5)"
            return dialect.concat.format(shown, _alphanum(hidden, dialect))
        case Action.SHOW_LAST_4:
            length = f"greatest(length({column}) - 4, 0)"
            hidden, shown = (
                f"{dialect.substring}({column}, 1, {length})",
                f"{dialect.substring}({column}, {length} + 1)",
            )
            return dialect.concat.format(_alphanum(hidden, dialect), shown)
        case Action.TRUNCATE_TO_YEAR:
            return dialect.truncated("year", column, kind)
        case Action.TRUNCATE_TO_MONTH:
            return dialect.truncated("month", column, kind)
        case Action.SHA_256_GLOBAL:
            return dialect.hashed(column, kind, b"")
        case Action.SHA_256_QUERY_LOCAL:
            if salt is None or len(salt) < _SALT_BYTES:
                raise RestrictionNotExpressible("sha-256-query-local needs a salt of at least 16 bytes for the query")
            return dialect.hashed(column, kind, salt)
        case _:
            assert_never(action)


def view_text(
    fields: Sequence[NestedField], row_filter: Predicate, masks: Sequence[Projection], source: str, dialect: Dialect
) -> str:
    """Return a SELECT of the columns `fields` of `source`, a table or subquery in SQL, with the restrictions applied.

    The filter reads original values. A text has no salt that is made for one query, so `sha-256-query-local` gives
    null, or the fixed value of a required column. Raises RestrictionNotExpressible for what the engine cannot express.
    """
    actions = {each.field_id: each.action for each in masks}
    names = {field.id: field.name for field in fields}
    if unknown := actions.keys() - names.keys():
        raise RestrictionNotExpressible(f"the field {min(unknown)} is masked and is not a column of the view")
    raw = dialect.quote("unrestricted")
    selected = []
    for field in fields:
        column = f"{raw}.{dialect.quote(field.name)}"
        if field.id in actions:
            action = without_salt(actions[field.id], required=field.required)
            column = mask_text(action, column, field.type, dialect, required=field.required)
        selected.append(f"{column} AS {dialect.quote(field.name)}")
    text = f"SELECT {', '.join(selected)} FROM {source} AS {raw}"  # noqa: S608 - `source` is SQL, the rest is quoted
    if row_filter == ALWAYS:
        return text
    return f"{text} WHERE {predicate_sql(row_filter, names, dialect, f'{raw}.')}"


def _require_applicable(action: Action, kind: Type, *, required: bool) -> None:
    if not applies(action, kind, required=required):
        needed = "required" if required else "optional"
        raise RestrictionNotExpressible(f"{action.value} does not apply to {needed} columns of type {type_name(kind)}")


def _alphanum(text: str, dialect: Dialect) -> str:
    """Replace all characters but digits and the six that are kept with `x`, then digits with `n`."""
    return dialect.replace.format(dialect.replace.format(text, "[^0-9(),.@-]", "x"), "[0-9]", "n")
