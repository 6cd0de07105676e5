# SPDX-License-Identifier: Apache-2.0
"""Proven implications of row filters hold for every row, and frequent ones are proven."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.obligations.implication import implies
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
)

ROWS = [dict(enumerate(values, 1)) for values in itertools.product([None, 0, 1, 2], repeat=2)]
OPERATORS = {
    Comparison.EQ: int.__eq__,
    Comparison.NOT_EQ: int.__ne__,
    Comparison.LT: int.__lt__,
    Comparison.GT_EQ: int.__ge__,
}


def among(*values: int, field: int = 1, negated: bool = False) -> In:
    return In(field, "int", values, negated)


def equal(value: int, field: int = 1) -> Compare:
    return Compare(Comparison.EQ, field, "int", value)


def keeps(predicate: Predicate, row: dict[int, int | None]) -> bool:
    match predicate:
        case Constant(value=value):
            return value
        case And(operands=operands):
            return all(keeps(each, row) for each in operands)
        case Or(operands=operands):
            return any(keeps(each, row) for each in operands)
        case Not(operand=operand):
            return not keeps(operand, row)
        case IsNull(field_id=field):
            return row[field] is None
        case Compare(operator=operator, field_id=field, value=value):
            found = row[field]
            return found is not None and isinstance(value, int) and bool(OPERATORS[operator](found, value))
        case In(field_id=field, values=values, negated=negated):
            return row[field] is not None and (row[field] in values) is not negated
        case _:
            raise TypeError(predicate)


fields, numbers = st.sampled_from([1, 2]), st.integers(0, 2)
leaves: st.SearchStrategy[Predicate] = st.one_of(
    st.sampled_from([ALWAYS, NEVER]),
    fields.map(IsNull),
    st.builds(Compare, st.sampled_from(list(OPERATORS)), fields, st.just("int"), numbers),
    st.builds(In, fields, st.just("int"), st.lists(numbers, max_size=3).map(tuple), st.booleans()),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda some: And(tuple(some))),
        st.lists(inner, max_size=3).map(lambda some: Or(tuple(some))),
        inner.map(Not),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(predicates, predicates)
def test_proven_implication_holds_for_every_row(narrow: Predicate, wide: Predicate) -> None:
    if implies(narrow, wide):
        assert all(keeps(wide, row) for row in ROWS if keeps(narrow, row))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (among(0), among(0, 1)),
        (equal(0), among(0, 1)),
        (among(0), equal(0)),
        (among(0, 1, negated=True), among(0, negated=True)),
        (And((equal(0), equal(1, 2))), equal(1, 2)),
        (equal(0), Or((equal(0), equal(1, 2)))),
        (Or((equal(0), equal(1))), among(0, 1)),
        (And((among(0), equal(1, 2))), And((equal(1, 2), among(0, 1)))),
    ],
)
def test_narrower_filter_is_proven_and_a_wider_one_is_not(narrow: Predicate, wide: Predicate) -> None:
    assert implies(narrow, wide)
    if any(keeps(wide, row) and not keeps(narrow, row) for row in ROWS):
        assert not implies(wide, narrow)
