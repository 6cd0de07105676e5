# SPDX-License-Identifier: Apache-2.0
"""Bind the `read-restrictions` of a load response to the columns of one table. The module does not need Spark.

An action, a test, a literal or a field id that Spark cannot apply raises `RestrictionsRefused`, because a reader that
cannot apply a restriction must fail (Iceberg REST specification, schema `ReadRestrictions`). Only top-level columns are
supported; a restriction on a nested field is refused.

In the protocol `not-eq`, `not-in` and `not-starts-with` hold for null and for NaN. In the predicates of
`lakegate.restrictions` they are false for both, so `is-null` and `is-nan` are added to these tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from lakegate.restrictions import wire
from lakegate.restrictions.actions import Projection, applies
from lakegate.restrictions.literals import NestedField, NotALiteral, literal, type_name
from lakegate.restrictions.predicates import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Comparison,
    In,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    canonical,
)
from lakegate.spark.catalog_client import LoadedTable
from lakegate.spark.errors import RestrictionsRefused

_RETAINS_NULL: Final = frozenset({Comparison.NOT_EQ, Comparison.NOT_STARTS_WITH})
_NOT_COMPARED: Final = frozenset(
    {"time", "timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"}
)


class Restrictions(msgspec.Struct, frozen=True, kw_only=True):
    """The restrictions of one load response: the row filter on original values, and the masks by field id."""

    row_filter: Predicate = ALWAYS
    masks: tuple[Projection, ...] = ()

    def __bool__(self) -> bool:
        """Return True if anything is restricted."""
        return self.row_filter != ALWAYS or bool(self.masks)

    def canonical(self) -> bytes:
        """Return bytes by which restrictions are compared: equal restrictions have equal bytes."""
        return canonical(self.row_filter) + msgspec.json.encode(sorted(self.masks), order="deterministic")


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The top-level columns of the schema that is read, and the field ids of all schemas of the table."""

    current: tuple[NestedField, ...]
    known: frozenset[int]

    def find(self, field_id: int) -> NestedField | None:
        """Return the current column with this id."""
        return next((each for each in self.current if each.id == field_id), None)


def restrictions_of(loaded: LoadedTable) -> Restrictions:
    """Return the decoded restrictions of a load response, for its current schema."""
    metadata = loaded.metadata
    schemas = [each.fields for each in metadata.schemas]
    return decode(bytes(loaded.read_restrictions), columns_of(schemas, metadata.schema.fields))


def decode(content: bytes | str, columns: Columns) -> Restrictions:
    """Decode the JSON of `read-restrictions`. An empty object restricts nothing.

    Raises:
        RestrictionsRefused: the document contains anything that this reader cannot apply in full.
    """
    try:
        found = wire.decode(content)
    except wire.RestrictionNotSupported as refused:
        raise RestrictionsRefused(str(refused)) from None
    return Restrictions(row_filter=_bound(found.row_filter, columns), masks=_masks(found.projections, columns))


def _masks(projections: Sequence[Projection], columns: Columns) -> tuple[Projection, ...]:
    found = []
    for each in projections:
        column = columns.find(each.field_id)
        if column is None:
            # A column of another schema of the table is not in the result, so there is nothing to mask.
            if each.field_id not in columns.known:
                raise RestrictionsRefused(f"field {each.field_id} is not a top-level column of any schema of the table")
            continue
        if not applies(each.action, column.type, required=column.required):
            raise RestrictionsRefused(
                f"field {each.field_id}: {each.action} does not apply to its type {type_name(column.type)}"
            )
        found.append(each)
    return tuple(sorted(found))


def _bound(predicate: wire.Predicate, columns: Columns) -> Predicate:
    match predicate:
        case wire.Constant(value=value):
            return ALWAYS if value else NEVER
        case wire.Both(left=left, right=right):
            return And((_bound(left, columns), _bound(right, columns)))
        case wire.Either(left=left, right=right):
            return Or((_bound(left, columns), _bound(right, columns)))
        case wire.Not(child=child):
            return Not(_bound(child, columns))
        case wire.Unary():
            return _unary(predicate.test, _column(predicate.child, columns))
        case wire.Compare():
            return _comparison(predicate, _column(predicate.left, columns))
        case wire.Membership():
            column = _column(predicate.child, columns)
            kind = _primitive(column)
            values = tuple(_literal(each, kind) for each in predicate.values)
            test = In(column.id, kind, values, negated=predicate.negated)
            return _or_missing(test, column) if predicate.negated else test


def _unary(kind: str, column: NestedField) -> Predicate:
    test: Predicate
    if kind.endswith("nan"):
        if column.type not in {"float", "double"}:
            raise RestrictionsRefused(f"{kind} does not apply to field {column.id} of type {type_name(column.type)}")
        test = IsNan(column.id)
    else:
        test = IsNull(column.id)
    return Not(test) if kind.startswith("not") else test


def _comparison(predicate: wire.Compare, column: NestedField) -> Predicate:
    operator, kind = Comparison(predicate.test), _primitive(column)
    value = _literal(predicate.right, kind)
    if kind == "uuid" and operator not in {Comparison.EQ, Comparison.NOT_EQ}:
        raise RestrictionsRefused(f"field {column.id}: Spark cannot order values of type uuid")
    if operator in {Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH} and kind != "string":
        raise RestrictionsRefused(f"field {column.id}: {operator} does not apply to type {kind}")
    test = Compare(operator, column.id, kind, value)
    return _or_missing(test, column) if operator in _RETAINS_NULL else test


def _or_missing(test: Predicate, column: NestedField) -> Predicate:
    """Return the test, extended so that it also holds for null and NaN, as the protocol requires for negated tests."""
    missing: list[Predicate] = [test, IsNull(column.id)]
    if column.type in {"float", "double"}:
        missing.append(IsNan(column.id))
    return Or(tuple(missing))


def _column(value: wire.Value, columns: Columns) -> NestedField:
    if not isinstance(value, wire.Reference):
        raise RestrictionsRefused("a test of the row filter must have the reference to a column by `id` on its left")
    column = columns.find(value.field_id)
    if column is None:
        raise RestrictionsRefused(
            f"the row filter needs field {value.field_id}, which is no top-level column of the schema"
        )
    return column


def _primitive(column: NestedField) -> str:
    if not isinstance(column.type, str):
        raise RestrictionsRefused(f"field {column.id}: a row filter cannot compare a {type_name(column.type)}")
    return column.type


def _literal(value: wire.Value, kind: str) -> Literal:
    if not isinstance(value, wire.Literal):
        raise RestrictionsRefused("a test of the row filter must have a literal on its right")
    if value.data_type is not None and value.data_type.replace(" ", "") != kind:
        raise RestrictionsRefused(f"the row filter compares a column of type {kind} with a literal of another type")
    return check_literal(value.value, kind)


def check_literal(value: object, kind: str) -> Literal:
    """Return the literal in the only form of its type (`lakegate.restrictions.literals`).

    Raises:
        RestrictionsRefused: the value is not one of this type, or Spark cannot have the type. A cast could change the
            value, and the filter with it.
    """
    if type_name(kind) in _NOT_COMPARED:
        raise RestrictionsRefused(f"the row filter tests a column of type {kind}, which Spark cannot compare here")
    if isinstance(value, bool | int | float | str):
        with suppress(NotALiteral):
            return literal(value, kind)
    raise RestrictionsRefused(f"the row filter has a literal that is no value of type {kind}")


def columns_of(schemas: Sequence[Sequence[NestedField]], current: Sequence[NestedField]) -> Columns:
    """Return the columns of a read. `schemas`: the top-level fields of every schema of the table."""
    return Columns(current=tuple(current), known=frozenset(field.id for fields in schemas for field in fields))
