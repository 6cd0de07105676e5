# SPDX-License-Identifier: Apache-2.0
"""Decode the `read-restrictions` of a load response for one table. Nothing here needs Spark.

The decoder is strict: a member, an action, a test, a literal or a field id that it does not know raises
`RestrictionsRefused`, because a reader that cannot apply a restriction must fail (Iceberg REST specification, schema
`ReadRestrictions`). Only top-level columns are supported; a restriction on a nested field is refused.

In the protocol `not-eq`, `not-in` and `not-starts-with` hold for null and for NaN. Predicates of `iceberg.predicates`
are false for both, so the decoder adds `is-null` and `is-nan` to these tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.iceberg.predicates import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Comparison,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    canonical,
)
from gateway.iceberg.types import NestedField, type_name
from gateway.obligations.masks import Action, applies
from gateway.obligations.projections import Projection
from lakegate.spark.catalog_client import LoadedTable
from lakegate.spark.errors import RestrictionsRefused
from lakegate.spark.literals import check_literal

_MAX_DEPTH: Final = 400
_RETAINS_NULL: Final = frozenset({Comparison.NOT_EQ, Comparison.NOT_STARTS_WITH})
_MEMBERS: Final = frozenset({"required-column-projections", "required-row-filter"})


class Restrictions(msgspec.Struct, frozen=True, kw_only=True):
    """The restrictions of one load response: the row filter on original values, and the masks by field id."""

    row_filter: Predicate = ALWAYS
    masks: tuple[Projection, ...] = ()

    def __bool__(self) -> bool:
        """Return True if anything is restricted."""
        return self.row_filter != ALWAYS or bool(self.masks)

    def canonical(self) -> bytes:
        """Return bytes that are equal for equal restrictions."""
        return canonical(self.row_filter) + msgspec.json.encode(sorted(self.masks), order="deterministic")


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The top-level columns of the schema that is read, and every field id of every schema of the table."""

    current: tuple[NestedField, ...]
    known: frozenset[int]

    def find(self, field_id: int) -> NestedField | None:
        """Return the current column with this id."""
        return next((each for each in self.current if each.id == field_id), None)


def restrictions_of(loaded: LoadedTable) -> Restrictions:
    """Return the decoded restrictions of a load response, for its current schema."""
    metadata = loaded.metadata
    schemas = [each.fields for each in metadata.schemas]
    return decode(loaded.read_restrictions, columns_of(schemas, metadata.schema.fields))


def decode(document: object, columns: Columns) -> Restrictions:
    """Return the restrictions of the decoded member `read-restrictions`. An empty object restricts nothing.

    Raises:
        RestrictionsRefused: the document contains anything that this reader cannot apply in full.
    """
    if not isinstance(document, dict) or not set(document) <= _MEMBERS:
        raise RestrictionsRefused(f"read-restrictions must be an object with at most the members {sorted(_MEMBERS)}")
    masks = _masks(document.get("required-column-projections", []), columns)
    wire = document.get("required-row-filter", True)
    return Restrictions(row_filter=_predicate(wire, columns, 0), masks=masks)


def _masks(wire: object, columns: Columns) -> tuple[Projection, ...]:
    if not isinstance(wire, list):
        raise RestrictionsRefused("required-column-projections must be an array")
    masks: dict[int, Projection] = {}
    for each in wire:
        members = _members(each, {"field-id", "action"})
        field_id = _field_id(members["field-id"])
        try:
            action = Action(members["action"])
        except ValueError:
            raise RestrictionsRefused(f"field {field_id}: unknown action {members['action']!r}") from None
        if field_id in masks:
            raise RestrictionsRefused(f"field {field_id} has two actions")
        column = columns.find(field_id)
        if column is None:
            # A column of another schema of the table is not in the result, so there is nothing to mask.
            _check_known(field_id, columns)
            continue
        if not applies(action, column.type, required=column.required):
            raise RestrictionsRefused(f"field {field_id}: {action} does not apply to its type {type_name(column.type)}")
        masks[field_id] = Projection(field_id, action)
    return tuple(masks[key] for key in sorted(masks))


def _check_known(field_id: int, columns: Columns) -> None:
    """Raise `RestrictionsRefused` unless the id is that of a top-level column in another schema of the table."""
    if field_id not in columns.known:
        raise RestrictionsRefused(f"field {field_id} is not a top-level column of any schema of the table")


def _predicate(wire: object, columns: Columns, depth: int) -> Predicate:
    if isinstance(wire, bool):
        return ALWAYS if wire else NEVER
    if depth > _MAX_DEPTH:
        raise RestrictionsRefused(f"the row filter is nested deeper than {_MAX_DEPTH}")
    kind = wire.get("type") if isinstance(wire, dict) else None
    match kind:
        case "and" | "or":
            members = _members(wire, {"type", "left", "right"})
            both = tuple(_predicate(members[side], columns, depth + 1) for side in ("left", "right"))
            return And(both) if kind == "and" else Or(both)
        case "not":
            return Not(_predicate(_members(wire, {"type", "child"})["child"], columns, depth + 1))
        case "is-null" | "not-null" | "is-nan" | "not-nan":
            return _unary(kind, _members(wire, {"type", "child"})["child"], columns)
        case "in" | "not-in":
            return _membership(_members(wire, {"type", "child", "values"}), columns)
        case str() if kind in set(Comparison):
            return _comparison(_members(wire, {"type", "left", "right"}), columns)
        case _:
            raise RestrictionsRefused(f"the row filter has an unknown test: {kind!r}")


def _unary(kind: str, child: object, columns: Columns) -> Predicate:
    column = _reference(child, columns)
    test: Predicate
    if kind.endswith("nan"):
        if column.type not in {"float", "double"}:
            raise RestrictionsRefused(f"{kind} does not apply to field {column.id} of type {type_name(column.type)}")
        test = IsNan(column.id)
    else:
        test = IsNull(column.id)
    return Not(test) if kind.startswith("not") else test


def _comparison(members: Mapping[str, Any], columns: Columns) -> Predicate:
    column, operator = _reference(members["left"], columns), Comparison(members["type"])
    kind = _primitive(column)
    value = _literal(members["right"], kind)
    if kind == "uuid" and operator not in {Comparison.EQ, Comparison.NOT_EQ}:
        raise RestrictionsRefused(f"field {column.id}: Spark cannot order values of type uuid")
    if operator in {Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH} and kind != "string":
        raise RestrictionsRefused(f"field {column.id}: {operator} does not apply to type {kind}")
    test = Compare(operator, column.id, kind, value)
    return _or_missing(test, column) if operator in _RETAINS_NULL else test


def _membership(members: Mapping[str, Any], columns: Columns) -> Predicate:
    column = _reference(members["child"], columns)
    kind, values = _primitive(column), members["values"]
    if isinstance(values, dict):
        _check_literal_type(values, "literals", "values", kind)
        values = values["values"]
    if not isinstance(values, list):
        raise RestrictionsRefused(f"field {column.id}: the values of {members['type']} must be an array")
    literals = tuple(_literal(each, kind) for each in values)
    if members["type"] == "in":
        return In(column.id, kind, literals)
    return _or_missing(In(column.id, kind, literals, negated=True), column)


def _or_missing(test: Predicate, column: NestedField) -> Predicate:
    """Return the test, extended by null and NaN, for which the protocol's negated tests hold."""
    missing: list[Predicate] = [test, IsNull(column.id)]
    if column.type in {"float", "double"}:
        missing.append(IsNan(column.id))
    return Or(tuple(missing))


def _reference(wire: object, columns: Columns) -> NestedField:
    members = _members(wire, {"type", "id"})
    if members["type"] != "reference":
        raise RestrictionsRefused("a test of the row filter must have the reference to a column by `id` on its left")
    field_id = _field_id(members["id"])
    column = columns.find(field_id)
    if column is None:
        raise RestrictionsRefused(f"the row filter needs field {field_id}, which is no top-level column of the schema")
    return column


def _primitive(column: NestedField) -> str:
    if not isinstance(column.type, str):
        raise RestrictionsRefused(f"field {column.id}: a row filter cannot compare a {type_name(column.type)}")
    return column.type


def _literal(wire: object, kind: str) -> bool | int | float | str:
    if isinstance(wire, dict):
        _check_literal_type(wire, "literal", "value", kind)
        wire = wire["value"]
    return check_literal(wire, kind)


def _check_literal_type(wire: Mapping[str, Any], tag: str, member: str, kind: str) -> None:
    if wire.get("type") != tag or member not in wire or not set(wire) <= {"type", member, "data-type"}:
        raise RestrictionsRefused(f"the row filter has an unknown form of literal: {sorted(map(str, wire))}")
    data_type = wire.get("data-type", kind)
    if not isinstance(data_type, str) or data_type.replace(" ", "") != kind:
        raise RestrictionsRefused(f"the row filter compares a column of type {kind} with a literal of another type")


def _field_id(wire: object) -> int:
    if isinstance(wire, bool) or not isinstance(wire, int) or wire < 1:
        raise RestrictionsRefused(f"a field id must be an integer greater than 0, not {wire!r}")
    return wire


def _members(wire: object, names: set[str]) -> Mapping[str, Any]:
    """Return `wire` if it is an object with exactly these members."""
    if not isinstance(wire, dict) or set(wire) != names:
        found = sorted(map(str, wire)) if isinstance(wire, dict) else type(wire).__name__
        raise RestrictionsRefused(f"read-restrictions: expected the members {sorted(names)}, found {found}")
    return wire


def columns_of(schemas: Sequence[Sequence[NestedField]], current: Sequence[NestedField]) -> Columns:
    """Return the columns of a read. `schemas`: the top-level fields of every schema of the table."""
    return Columns(current=tuple(current), known=frozenset(field.id for fields in schemas for field in fields))
