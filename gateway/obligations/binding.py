# SPDX-License-Identifier: Apache-2.0
"""Bind data policies to one table and one principal: names and tags become field ids, attributes become values. Pure.

If a part cannot be bound, the result is stricter, and a problem is reported. A filter then keeps no row, and a mask
reveals nothing. If the protocol cannot express even that, `RestrictionNotExpressible` is raised and reading must be
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    Mask,
    NotTest,
    NullTest,
    PolicyInputs,
    PrincipalAttributes,
    RoleTest,
    RowFilter,
    Test,
)
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns, RestrictionNotExpressible, strictest
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.literals import NestedField, NotALiteral, attribute_literal, comparable, literal
from lakegate.restrictions.predicates import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    all_of,
    simplified,
)
from lakegate.restrictions.predicates import Literal as Value

__all__ = [
    "BindingResult",
    "PolicyProblem",
    "RestrictionNotExpressible",
    "restrictions_of",
]


class FilterNotApplicable(Exception):
    """A part of a row filter cannot be bound to the table. The message names the part and what to change."""


class TestBinder:
    """Binds the tests in the row filter of one policy."""

    __test__ = False  # pytest must not collect this class

    def __init__(self, table: TableColumns, bound: BoundPolicy, attributes: PrincipalAttributes) -> None:
        self._table = table
        self._recorded = set(bound.recorded) - set(bound.released)
        self._attributes = attributes
        self._mappings: Mapping[str, tuple[str, ...]] = dict(attributes.mappings)
        self._claims: Mapping[str, tuple[str, ...]] = dict(attributes.claims)

    def predicate(self, test: Test, *, negated: bool = False) -> Predicate:
        """Return the predicate of a test. `negated` is True inside of `not`.

        Raises FilterNotApplicable if any part cannot be bound: replacing the part by false would keep rows inside of
        `not`.
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
                # A check of a role without a user has no user id.
                return (self._attributes.principal,) if self._attributes.principal else ()
            case AttributeSource.CLAIM:
                return self._claims.get(attribute.name, ())
            case AttributeSource.MAPPING:
                return self._mappings.get(attribute.name, ())
            case _:
                assert_never(attribute.source)

    def _may_be_partial(self, attribute: Attribute) -> bool:
        """Return True if the principal may have further values of the attribute.

        Tests that need all values are then false.
        """
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
    """Convert the text of an attribute to a value.

    Error messages do not contain the text, because it belongs to the principal.
    """
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


@dataclass(frozen=True, slots=True, order=True)
class PolicyProblem:
    """A policy that could not be applied to a table as written. `problem` is text: what is wrong and what to do."""

    policy_id: str
    table_id: str
    problem: str


@dataclass(frozen=True, slots=True)
class BindingResult:
    """The merged restrictions, None if no policy restricts anything, and the problems in a fixed order."""

    restrictions: TableRestrictions | None
    problems: tuple[PolicyProblem, ...]


def restrictions_of(
    table_id: str,
    bound: Sequence[BoundPolicy],
    inputs: PolicyInputs,
    attributes: PrincipalAttributes,
    columns: Columns,
    metadata_location: str,
) -> BindingResult:
    """Return the restrictions of one table for one principal. The order of `bound` has no effect.

    `bound` has those policies of `inputs` that apply to the principal. `columns` come from the document at
    `metadata_location`. Raises RestrictionNotExpressible if reading must be refused.
    """
    table = TableColumns(columns, inputs)
    problems: set[PolicyProblem] = set()
    filters: list[Predicate] = []
    masks: dict[int, list[Projection]] = {}
    for one in bound:
        found: list[str] = []
        match one.policy.definition:
            case RowFilter() as row_filter:
                filters.append(_filter(row_filter, TestBinder(table, one, attributes), found))
            case Mask() as mask:
                for projection in _masks(mask, table, one, found):
                    masks.setdefault(projection.field_id, []).append(projection)
        problems.update(PolicyProblem(one.policy.id, table_id, text) for text in found)
    table.require_separable(masks)
    row_filter_of_all, merged = all_of(*filters), strictest(masks)
    ordered = tuple(sorted(problems))
    if row_filter_of_all == ALWAYS and not merged:
        return BindingResult(None, ordered)
    append = all(one.policy.allow_append for one in bound)
    return BindingResult(TableRestrictions(table_id, row_filter_of_all, merged, append, metadata_location), ordered)


def _filter(row_filter: RowFilter, binder: TestBinder, problems: list[str]) -> Predicate:
    """Return the predicate of one row filter. If a part of it cannot be bound, return NEVER and add a problem."""
    try:
        return simplified(binder.predicate(row_filter.test))
    except FilterNotApplicable as error:
        problems.append(f"{error}: the filter hides all rows until the policy or the table is changed")
        return NEVER


def _masks(mask: Mask, table: TableColumns, bound: BoundPolicy, problems: list[str]) -> list[Projection]:
    """Return the projections of one mask.

    Add a problem for each part that is applied more strictly than it is written.
    """
    exact, whole = table.masked(mask, bound, problems)
    found = []
    for field_id in sorted(exact | whole):
        action = Action.REPLACE_WITH_NULL if field_id in whole - exact else mask.action
        found.append(Projection(field_id, _applicable(action, table, field_id, problems)))
    return found


def _applicable(action: Action, table: TableColumns, field_id: int, problems: list[str]) -> Action:
    """Return the action if it applies to the column in all schemas, else one that reveals nothing: null or the fixed
    value.

    Raises RestrictionNotExpressible if none applies.
    """
    fields = table.definitions(field_id)
    required = any(field.required for field in fields)
    for each in (action, Action.REPLACE_WITH_NULL, Action.MASK_TO_FIXED_VALUE):
        if all(applies(each, field.type, required=required) for field in fields):
            if each is not action:
                problems.append(
                    f"the mask {action.value} does not apply to the column {fields[-1].name!r} and is replaced by "
                    f"{each.value}: choose a mask for the type of the column"
                )
            return each
    raise RestrictionNotExpressible(f"no mask applies to the required column {fields[-1].name!r}")
