# SPDX-License-Identifier: Apache-2.0
"""Convert the test of a row filter to a predicate over field ids, for one table and one principal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    Attribute,
    AttributeSource,
    BoundPolicy,
    ColumnReference,
    CompareTest,
    ConstantTest,
    InTest,
    NotTest,
    NullTest,
    PrincipalAttributes,
    RoleTest,
    Test,
)
from lakegate.restrictions.literals import NotALiteral, attribute_literal, comparable, literal
from lakegate.restrictions.predicates import NEVER, And, Compare, Comparison, Constant, In, IsNull, Not, Or, Predicate
from lakegate.restrictions.predicates import Literal as Value
from lakegate.restrictions.types import NestedField


class FilterNotApplicable(Exception):
    """A part of a row filter cannot be bound to the table. The text says which, and what to change."""


class TestBinder:
    """Binds the test of one policy."""

    __test__ = False  # pytest must not collect it

    def __init__(self, table: TableColumns, bound: BoundPolicy, attributes: PrincipalAttributes) -> None:
        self._table = table
        self._recorded = set(bound.recorded) - set(bound.released)
        self._attributes = attributes
        self._mappings: Mapping[str, tuple[str, ...]] = dict(attributes.mappings)
        self._claims: Mapping[str, tuple[str, ...]] = dict(attributes.claims)

    def predicate(self, test: Test, *, negated: bool = False) -> Predicate:
        """Return the predicate. `negated` is True inside of `not`.

        Raises FilterNotApplicable if any part cannot be bound: a part that is only false would hold inside of `not`.
        """
        match test:
            case ConstantTest(value=value):
                return Constant(value)
            case AllOf(operands=operands):
                return And(tuple(self.predicate(each, negated=negated) for each in operands))
            case AnyOf(operands=operands):
                return Or(tuple(self.predicate(each, negated=negated) for each in operands))
            case NotTest(operand=operand):
                return Not(self.predicate(operand, negated=True))
            case RoleTest(role=role):
                if negated:
                    raise FilterNotApplicable("`not` must not contain has-role")
                return Constant(role in self._attributes.roles)
            case NullTest(column=column, negated=is_not):
                return And(tuple(_null(field, is_not) for field in self._columns(column, negated)))
            case CompareTest():
                return self._compare(test, negated)
            case InTest():
                return self._in(test, negated)
            case _:
                assert_never(test)

    def _columns(self, reference: ColumnReference, negated: bool) -> list[NestedField]:
        if reference.tag is not None and negated:
            raise FilterNotApplicable(f"`not` must not contain the tag {self._table.tag_name(reference.tag)!r}")
        found = self._table.filtered(reference, self._recorded)
        if not found:
            what = f"column {reference.name!r}"
            if reference.tag is not None:
                what = f"column with the tag {self._table.tag_name(reference.tag)!r}"
            raise FilterNotApplicable(f"the current schema has no {what}, or several")
        return found

    def _values(self, attribute: Attribute, negated: bool) -> tuple[str, ...]:
        if negated:
            raise FilterNotApplicable("`not` must not contain an attribute")
        match attribute.source:
            case AttributeSource.PRINCIPAL:
                # A role that is checked without a user has no id of a user.
                return (self._attributes.principal,) if self._attributes.principal else ()
            case AttributeSource.CLAIM:
                return self._claims.get(attribute.name, ())
            case AttributeSource.MAPPING:
                return self._mappings.get(attribute.name, ())
            case _:
                assert_never(attribute.source)

    def _may_be_partial(self, attribute: Attribute) -> bool:
        """Return True if the principal may have more values: tests that need all of them are then false."""
        return attribute.source is AttributeSource.MAPPING and not self._attributes.complete

    def _compare(self, test: CompareTest, negated: bool) -> Predicate:
        fields = self._columns(test.column, negated)
        for field in fields:
            if not comparable(test.operator, field.type):
                raise FilterNotApplicable(f"the column {field.name!r} does not support {test.operator.value}")
        if not isinstance(test.value, Attribute):
            return And(tuple(_compared(test.operator, field, _literal(test.value, field)) for field in fields))
        values = self._values(test.value, negated)
        if len(values) != 1 or self._may_be_partial(test.value):
            return NEVER
        return And(tuple(_compared(test.operator, field, _attribute(values[0], field)) for field in fields))

    def _in(self, test: InTest, negated: bool) -> Predicate:
        fields = self._columns(test.column, negated)
        for field in fields:
            if not comparable(Comparison.EQ, field.type):
                raise FilterNotApplicable(f"the column {field.name!r} does not support `in`")
        if not isinstance(test.values, Attribute):
            stated = test.values
            return And(tuple(_among(field, [_literal(v, field) for v in stated], test.negated) for field in fields))
        values = self._values(test.values, negated)
        if not values or (test.negated and self._may_be_partial(test.values)):
            return NEVER
        return And(tuple(_among(field, [_attribute(v, field) for v in values], test.negated) for field in fields))


def _null(field: NestedField, is_not: bool) -> Predicate:
    return Not(IsNull(field.id)) if is_not else IsNull(field.id)


def _literal(value: Value, field: NestedField) -> Value:
    try:
        return literal(value, field.type)
    except NotALiteral as error:
        raise FilterNotApplicable(f"the column {field.name!r}: {error}") from None


def _attribute(text: str, field: NestedField) -> Value:
    """Convert a text of an attribute. The message does not contain the text: it belongs to the principal."""
    try:
        return attribute_literal(text, field.type)
    except NotALiteral:
        raise FilterNotApplicable(
            f"an attribute of the principal has a value that is not of the type of the column {field.name!r}"
        ) from None


def _compared(operator: Comparison, field: NestedField, value: Value) -> Predicate:
    return Compare(operator, field.id, str(field.type), value)


def _among(field: NestedField, values: list[Value], negated: bool) -> Predicate:
    distinct = tuple(dict.fromkeys(values))
    return In(field.id, str(field.type), tuple(sorted(distinct, key=repr)), negated)
