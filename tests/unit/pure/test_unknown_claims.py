# SPDX-License-Identifier: Apache-2.0
"""Row filters with unknown claims show no row that any values of the claims would hide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.obligations.binding import restrictions_of
from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    Attribute,
    AttributeSource,
    BoundPolicy,
    ColumnReference,
    CompareTest,
    ConstantTest,
    DataPolicy,
    InTest,
    NotTest,
    NullTest,
    PolicyInputs,
    PrincipalAttributes,
    RowFilter,
    Test,
    attributes_of,
)
from gateway.obligations.projections import Columns
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import ALWAYS, NEVER, Comparison, Predicate
from tests.support.policies.reference_policies import keeps

FIELDS = tuple(NestedField(id=id, name=name, type="string", required=False) for id, name in ((1, "a"), (2, "b")))
TABLE = Columns(FIELDS, (FIELDS,))
TEXTS = ("", "eu", "us", "asia")
ROWS = [{1: a, 2: b} for a in (None, *TEXTS) for b in (None, *TEXTS)]
PATHS = ("team", "org.site")

Claims = tuple[tuple[str, tuple[str, ...]], ...]

columns = st.sampled_from([ColumnReference(name=each.name) for each in FIELDS])
texts = st.sampled_from(TEXTS)
claims = st.sampled_from([Attribute(AttributeSource.CLAIM, path) for path in PATHS])
claim_tests = st.builds(InTest, columns, claims, st.booleans()) | st.builds(
    CompareTest, st.sampled_from(Comparison), columns, claims
)
other_tests = (
    st.builds(InTest, columns, st.lists(texts, min_size=1, max_size=3).map(tuple), st.booleans())
    | st.builds(CompareTest, st.sampled_from(Comparison), columns, texts)
    | st.builds(NullTest, columns, st.booleans())
    | st.builds(ConstantTest, st.booleans())
)
tests: st.SearchStrategy[Any] = st.recursive(
    claim_tests | other_tests,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        .map(tuple)
        .flatmap(lambda some: st.sampled_from([AllOf(some), AnyOf(some), NotTest(some[0])]))
    ),
    max_leaves=8,
)
known = st.dictionaries(
    st.sampled_from(PATHS), st.lists(texts, min_size=1, max_size=3, unique=True).map(sorted).map(tuple)
).map(lambda found: tuple(sorted(found.items())))


def bound(test: Test, values: Claims = ()) -> Predicate:
    """Return the row filter for a principal with these claims."""
    policy = BoundPolicy(policy=DataPolicy(id="p", version=1, definition=RowFilter(test)))
    user = PrincipalAttributes(principal="oidc~anna", claims=values)
    result = restrictions_of("t", (policy,), PolicyInputs(bound=(policy,)), user, TABLE, "m")
    return ALWAYS if result.restrictions is None else result.restrictions.row_filter


@settings(max_examples=400, deadline=None)
@given(tests, known)
def test_claims_can_only_show_more_rows(test: Test, values: Claims) -> None:
    without, with_claims = bound(test), bound(test, values)
    shown = [row for row in ROWS if keeps(without, row)]
    assert all(keeps(with_claims, row) for row in shown)


@given(claim_tests)
def test_a_test_with_an_unknown_claim_holds_for_no_row(test: InTest | CompareTest) -> None:
    assert bound(test) == NEVER
    assert bound(NotTest(test)) == NEVER
    assert bound(AllOf((test, ConstantTest(True)))) == NEVER


@pytest.mark.parametrize("operator", Comparison)
@given(st.lists(texts, min_size=2, unique=True).map(tuple))
def test_a_comparison_with_several_values_holds_for_no_row(operator: Comparison, values: tuple[str, ...]) -> None:
    test = CompareTest(operator, ColumnReference(name="a"), Attribute(AttributeSource.CLAIM, "team"))
    assert bound(test, (("team", values),)) == NEVER


@given(tests)
def test_the_claims_of_a_definition_are_found_at_each_level(test: Test) -> None:
    found = attributes_of(RowFilter(test), AttributeSource.CLAIM)
    assert found == {path for path in PATHS if f"name='{path}'" in repr(test)}
    assert attributes_of(RowFilter(test), AttributeSource.MAPPING) == frozenset()
