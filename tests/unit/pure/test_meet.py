# SPDX-License-Identifier: Apache-2.0
"""The merge of masks is the meet of a lattice, and the merge of restrictions does not depend on their order."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import meet, reveals_no_more
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.predicates import ALWAYS, NEVER, And, Compare, Comparison, IsNull, Not, Predicate
from tests.support.policies.reference_policies import merged

EVERY = list(Action)


def test_meet_is_associative_commutative_and_idempotent() -> None:
    for a, b, c in product(EVERY, EVERY, EVERY):
        assert meet(a, meet(b, c)) is meet(meet(a, b), c)
        assert meet(a, b) is meet(b, a)
        assert meet(a, a) is a


def test_meet_is_the_greatest_action_that_reveals_no_more_than_both() -> None:
    for a, b in product(EVERY, EVERY):
        below = [each for each in EVERY if reveals_no_more(each, a) and reveals_no_more(each, b)]
        assert meet(a, b) in below
        assert all(reveals_no_more(each, meet(a, b)) for each in below)


def test_meet_is_that_of_the_reference_table() -> None:
    for one, other in product(EVERY, EVERY):
        assert meet(one, other) is merged(one, other), (one, other)


def test_merge_gives_null_only_if_one_operand_is_null() -> None:
    """A required column never has the mask `replace-with-null`, so its merged masks must not be null either."""
    for a, b in product(EVERY, EVERY):
        assert (meet(a, b) is Action.REPLACE_WITH_NULL) == (Action.REPLACE_WITH_NULL in (a, b))


PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.sampled_from([ALWAYS, NEVER, IsNull(1), Compare(Comparison.EQ, 2, "int", 3), Not(IsNull(2))]),
    lambda inner: st.lists(inner, max_size=3).map(lambda some: And(tuple(some))),
    max_leaves=6,
)
RESTRICTIONS = st.builds(
    TableRestrictions,
    table=st.just("t"),
    row_filter=PREDICATES,
    masks=st.dictionaries(st.integers(1, 3), st.sampled_from(Action)).map(
        lambda some: tuple(Projection(id, action) for id, action in sorted(some.items()))
    ),
    append=st.booleans(),
    metadata_location=st.sampled_from(["m1", "m2"]),
)


@given(RESTRICTIONS, RESTRICTIONS, RESTRICTIONS)
def test_restrictions_merge_in_any_order(a: TableRestrictions, b: TableRestrictions, c: TableRestrictions) -> None:
    assert a.strictest(b) == b.strictest(a)
    assert a.strictest(b).strictest(c) == a.strictest(b.strictest(c))
    assert a.strictest(b).strictest(b) == a.strictest(b)
    assert a.strictest(b).identity() == b.strictest(a).identity()
