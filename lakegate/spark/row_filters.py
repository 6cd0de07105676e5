# SPDX-License-Identifier: Apache-2.0
"""Compile row predicates to Spark columns.

Predicates are true or false: every test except `is-null` and `is-nan` is false for null and NaN. SQL conditions can
also be unknown. The compiler moves negations to the tests, where it handles null and NaN explicitly. Otherwise the
condition has only AND and OR, for which an unknown operand selects no more rows than a false one. Spark can push such a
filter to Iceberg, which it could not if each test were in a `coalesce`.

Literals are cast from text with an explicit form, so neither the time zone of the session nor ANSI mode matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

from lakegate.restrictions.literals import type_name
from lakegate.restrictions.predicates import (
    And,
    Compare,
    Comparison,
    Constant,
    In,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)

_OPPOSITE: Final = {
    Comparison.EQ: Comparison.NOT_EQ,
    Comparison.NOT_EQ: Comparison.EQ,
    Comparison.LT: Comparison.GT_EQ,
    Comparison.GT_EQ: Comparison.LT,
    Comparison.GT: Comparison.LT_EQ,
    Comparison.LT_EQ: Comparison.GT,
    Comparison.STARTS_WITH: Comparison.NOT_STARTS_WITH,
    Comparison.NOT_STARTS_WITH: Comparison.STARTS_WITH,
}
#: Spark orders NaN above every number, so these comparisons hold for NaN there.
_TRUE_FOR_NAN: Final = frozenset({Comparison.NOT_EQ, Comparison.GT, Comparison.GT_EQ})
_FLOATS: Final = frozenset({"float", "double"})


def row_filter(predicate: Predicate, columns: Mapping[int, Column]) -> Column:
    """Return the condition of a `where` that keeps exactly the rows for which the predicate holds.

    `columns` has the Spark column of each field id in the predicate. The condition can be null instead of false.
    """
    return _compiled(predicate, columns, negated=False)


def _compiled(predicate: Predicate, columns: Mapping[int, Column], *, negated: bool) -> Column:
    match predicate:
        case Constant(value=value):
            return f.lit(value is not negated)
        case Not(operand=operand):
            return _compiled(operand, columns, negated=not negated)
        case And(operands=operands) | Or(operands=operands):
            conjunction = isinstance(predicate, And) is not negated
            return _joined([_compiled(each, columns, negated=negated) for each in operands], conjunction=conjunction)
        case IsNull(field_id=field_id):
            return columns[field_id].isNotNull() if negated else columns[field_id].isNull()
        case IsNan(field_id=field_id):
            # `isnan` returns false and never null for a null value, so its negation needs no test for null.
            return ~f.isnan(columns[field_id]) if negated else f.isnan(columns[field_id])
        case Compare():
            return _comparison(predicate, columns[predicate.field_id], negated=negated)
        case In():
            return _membership(predicate, columns[predicate.field_id], negated=negated)


def _joined(conditions: Sequence[Column], *, conjunction: bool) -> Column:
    if not conditions:
        return f.lit(conjunction)
    return reduce(and_ if conjunction else or_, conditions)


def _comparison(test: Compare, column: Column, *, negated: bool) -> Column:
    operator = _OPPOSITE[test.operator] if negated else test.operator
    condition = _compared(operator, column, literal(test.value, test.type))
    return _with_missing(condition, column, test.type, wanted=negated, holds_for_nan=operator in _TRUE_FOR_NAN)


def _membership(test: In, column: Column, *, negated: bool) -> Column:
    excluded = test.negated is not negated
    contained = column.isin([literal(each, test.type) for each in test.values]) if test.values else f.lit(False)
    condition = ~contained if excluded else contained
    if excluded and not test.values and not negated:
        condition = column.isNotNull()
    return _with_missing(condition, column, test.type, wanted=negated, holds_for_nan=excluded)


def _with_missing(condition: Column, column: Column, kind: str, *, wanted: bool, holds_for_nan: bool) -> Column:
    """Return the condition extended by null and NaN, which satisfy the result if and only if `wanted` is True."""
    if wanted:
        condition = condition | column.isNull()
    if kind in _FLOATS and holds_for_nan is not wanted:
        return condition | f.isnan(column) if wanted else condition & ~f.isnan(column)
    return condition


def _compared(operator: Comparison, column: Column, value: Column) -> Column:
    match operator:
        case Comparison.EQ:
            return column == value
        case Comparison.NOT_EQ:
            return column != value
        case Comparison.LT:
            return column < value
        case Comparison.LT_EQ:
            return column <= value
        case Comparison.GT:
            return column > value
        case Comparison.GT_EQ:
            return column >= value
        case Comparison.STARTS_WITH:
            return column.startswith(value)
        case Comparison.NOT_STARTS_WITH:
            return ~column.startswith(value)


def literal(value: Literal, kind: str) -> Column:
    """Return a checked literal (`lakegate.restrictions.literals`) as a column of the Spark type of `kind`."""
    match type_name(kind):
        case "binary" | "fixed":
            return f.lit(bytearray.fromhex(str(value)))
        case "timestamp":
            return f.lit(value).cast("timestamp_ntz")
        case "timestamptz":
            return f.lit(value).cast("timestamp")
        case "int" | "long" | "float" | "double" | "decimal" | "date" as name:
            spark = {"long": "bigint", "decimal": kind}.get(name, name)
            return f.lit(value).cast(spark)
        case _:
            return f.lit(value)
