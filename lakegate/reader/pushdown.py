# SPDX-License-Identifier: Apache-2.0
"""Translate filters to PyIceberg expressions that skip files and row groups.

The translation of a row filter keeps at least the rows that the filter keeps. A part without an exact translation is
left out, because the reader evaluates the whole filter afterwards. A user's filter applies to masked values, so its
parts about masked columns are never used to skip files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, cast

from pyiceberg import expressions as pyi
from pyiceberg import types as iceberg
from pyiceberg.expressions.visitors import bind, extract_field_ids
from pyiceberg.schema import Schema

from lakegate.reader.apply import children, walk
from lakegate.reader.predicates import scalar
from lakegate.restrictions.wire import Both, Compare, Constant, Either, Literal, Membership, Predicate, Reference, Unary

#: Types whose values and bounds PyIceberg compares exactly. Floats have NaN and two zeros, and are left out.
_EXACT: Final = (
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.StringType,
    iceberg.DateType,
    iceberg.DecimalType,
)
#: `Any`, because the type information of PyIceberg describes other constructors.
_TESTS: Final[Mapping[str, Any]] = {
    "eq": pyi.EqualTo,
    "lt": pyi.LessThan,
    "lt-eq": pyi.LessThanOrEqual,
    "gt": pyi.GreaterThan,
    "gt-eq": pyi.GreaterThanOrEqual,
    "starts-with": pyi.StartsWith,
    "is-null": pyi.IsNull,
    "not-null": pyi.NotNull,
    "in": pyi.In,
}


def superset(predicate: Predicate, schema: Schema) -> pyi.BooleanExpression:
    """Return an expression on `schema` that is true for all rows that the predicate keeps, and possibly for further
    rows.
    """
    fields = {field.field_id: field for field in schema.fields}

    def translated(part: Predicate) -> pyi.BooleanExpression:
        match part:
            case Constant(value=value):
                return pyi.AlwaysTrue() if value else pyi.AlwaysFalse()
            case Both(left=left, right=right):
                return pyi.And(translated(left), translated(right))
            case Either(left=left, right=right):
                return pyi.Or(translated(left), translated(right))
        return _one(part, fields)

    return translated(predicate)


def _one(part: Predicate, fields: Mapping[int, iceberg.NestedField]) -> pyi.BooleanExpression:
    """Return the expression for a test of one column. If there is no exact one, return the constant true."""
    literals: tuple[Literal, ...] = ()
    match part:
        case Unary(test=test, child=Reference(field_id=field_id)):
            pass
        case Compare(test=test, left=Reference(field_id=field_id), right=Literal() as literal):
            literals = (literal,)
        case Membership(child=Reference(field_id=field_id), values=literals, negated=False):
            test = "in"
        case _:
            return pyi.AlwaysTrue()
    field = fields.get(field_id)
    if test not in _TESTS or field is None or not isinstance(field.field_type, _EXACT):
        return pyi.AlwaysTrue()
    values = [_value(each, field) for each in literals]
    if None in values:
        return pyi.AlwaysTrue()
    if isinstance(part, Unary):
        found = _TESTS[test](field.name)
    else:
        found = _TESTS[test](field.name, values if test == "in" else values[0])
    return cast("pyi.BooleanExpression", found)


def _value(literal: Literal, field: iceberg.NestedField) -> Any:
    return scalar(literal, field.field_type).as_py()


def unmasked_parts(
    row_filter: pyi.BooleanExpression, schema: Schema, current: Schema, masked: Collection[int]
) -> pyi.BooleanExpression:
    """Return the conjunction of those parts of a user's filter that refer to no masked column.

    `schema` is the schema of the scan. PyIceberg plans by the column names in `current`. So a part is also left out if
    the name of its column belongs to another column in `current`.
    """
    hidden = _related(schema, masked)
    found: pyi.BooleanExpression = pyi.AlwaysTrue()
    for part in _conjuncts(row_filter):
        used = extract_field_ids(bind(schema, part, case_sensitive=True))
        named = all(_name(schema, each) == _name(current, each) is not None for each in used)
        if named and not used & hidden:
            found = pyi.And(found, part)
    return found


def _conjuncts(expression: pyi.BooleanExpression) -> Iterator[pyi.BooleanExpression]:
    if isinstance(expression, pyi.And):
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression


def _name(schema: Schema, field_id: int) -> str | None:
    return schema.find_column_name(field_id)


def _related(schema: Schema, masked: Collection[int]) -> set[int]:
    """Return the ids of the masked fields, of the fields inside them, and of the fields that contain them."""
    found: set[int] = set()
    for field in walk(schema.fields):
        inside = {each.field_id for each in walk(children(field.field_type))}
        if field.field_id in masked:
            found |= {field.field_id, *inside}
        elif inside & set(masked):
            found.add(field.field_id)
    return found
