# SPDX-License-Identifier: Apache-2.0
"""Obligations: they merge to the strictest in any order, have one fingerprint, and are never ignored."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.obligations.application import (
    EnforcementPoint,
    hidden_operations,
    restrictions_for_load,
    restrictions_on,
    unenforced,
    vending_terms,
)
from gateway.obligations.guardrails import StatedObligations
from gateway.obligations.kinds import (
    KINDS,
    AppendOnly,
    ColumnMasks,
    CredentialLife,
    HiddenOperations,
    NoVending,
    Obligation,
    ReadableColumns,
    RowFilters,
    TableRestrictions,
)
from gateway.obligations.merging import Obligations
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.predicates import ALWAYS, NEVER, IsNull, all_of

_WORDS = st.frozensets(st.sampled_from(["a", "b", "c"]), min_size=1)
_PROJECTIONS = st.dictionaries(st.integers(1, 4), st.sampled_from(Action)).map(
    lambda found: tuple(Projection(id, action) for id, action in sorted(found.items()))
)
_BY_KIND: dict[type[Any], st.SearchStrategy[Any]] = {
    CredentialLife: st.builds(CredentialLife, st.integers(0, 4)),
    NoVending: st.just(NoVending()),
    AppendOnly: st.just(AppendOnly()),
    HiddenOperations: st.builds(HiddenOperations, _WORDS),
    RowFilters: st.builds(RowFilters, _WORDS),
    ColumnMasks: st.builds(ColumnMasks, _WORDS),
    ReadableColumns: st.builds(
        ReadableColumns,
        st.sampled_from(["t1", "t2"]),
        st.frozensets(st.integers(1, 4)),
        _PROJECTIONS,
        st.sampled_from(["m1", "m2"]),
    ),
    TableRestrictions: st.builds(
        TableRestrictions,
        st.sampled_from(["t1", "t2"]),
        st.sampled_from([ALWAYS, IsNull(1), all_of(IsNull(1), IsNull(2)), NEVER]),
        _PROJECTIONS,
        st.booleans(),
        st.sampled_from(["m1", "m2"]),
    ),
}
_SETS = st.lists(st.one_of(*_BY_KIND.values()), max_size=5).map(lambda some: Obligations.of(*some))

_COLUMNS = ReadableColumns("t1", frozenset({1}), (Projection(2, Action.REPLACE_WITH_NULL),), "m1")


def test_every_kind_of_the_union_is_tested_here() -> None:
    assert set(KINDS) == set(get_args(Obligation)) == set(_BY_KIND)


@given(_SETS, _SETS, _SETS)
def test_merging_is_associative(one: Obligations, two: Obligations, three: Obligations) -> None:
    assert one.merged(two).merged(three) == one.merged(two.merged(three)) == one.merged(two, three)


@given(_SETS, _SETS)
def test_merging_is_commutative(one: Obligations, two: Obligations) -> None:
    assert one.merged(two) == two.merged(one)


@given(_SETS)
def test_merging_is_idempotent_and_has_an_empty_identity(one: Obligations) -> None:
    assert one.merged(one) == one
    assert one.merged(Obligations()) == one


@given(_SETS, _SETS)
def test_a_merge_is_at_least_as_strict_as_each_operand(one: Obligations, two: Obligations) -> None:
    both = vending_terms(one.merged(two))
    for terms in (vending_terms(one), vending_terms(two)):
        assert terms.seconds is None or (both.seconds is not None and both.seconds <= terms.seconds)
        assert both.may_delete <= terms.may_delete
        assert both.whole <= terms.whole
        assert terms.refusal is None or both.refusal is not None
    for enforcement_point in EnforcementPoint:
        refused = unenforced(one, enforcement_point) is not None or unenforced(two, enforcement_point) is not None
        assert (unenforced(one.merged(two), enforcement_point) is not None) is refused
    assert hidden_operations(one.merged(two)) == hidden_operations(one) | hidden_operations(two)


@given(_SETS, _SETS)
def test_fingerprints_are_equal_only_for_equal_obligations(one: Obligations, two: Obligations) -> None:
    assert (one.fingerprint == two.fingerprint) is (one == two)
    assert (one.fingerprint == b"") is (one == Obligations())


def test_columns_of_two_tables_do_not_merge() -> None:
    other = ReadableColumns("t2", frozenset({1}), (), "m1")
    assert len(Obligations.of(_COLUMNS, other).each) == 2


def test_the_metadata_location_does_not_change_obligations() -> None:
    moved = ReadableColumns(_COLUMNS.table, _COLUMNS.fields, _COLUMNS.projections, "m2")
    assert Obligations.of(moved) == Obligations.of(_COLUMNS)
    assert Obligations.of(moved).fingerprint == Obligations.of(_COLUMNS).fingerprint


_NOWHERE: frozenset[EnforcementPoint] = frozenset()
_EVERYWHERE = frozenset(EnforcementPoint)
_NEVER_IN_PART = frozenset(
    {EnforcementPoint.SIGN, EnforcementPoint.WRITE, EnforcementPoint.APPEND, EnforcementPoint.UNREGISTER}
)


@pytest.mark.parametrize(
    ("obligation", "refused_at"),
    [
        (CredentialLife(900), _NOWHERE),
        (NoVending(), {EnforcementPoint.SIGN}),
        (AppendOnly(), _NOWHERE),
        (HiddenOperations(frozenset({"drop_table"})), _NOWHERE),
        (RowFilters(frozenset({"region = 'EU'"})), _EVERYWHERE),
        (ColumnMasks(frozenset({"email: sha-256-global"})), _EVERYWHERE),
        (_COLUMNS, _NEVER_IN_PART),
        (TableRestrictions("t1", ALWAYS, _COLUMNS.projections, False, "m1"), _NEVER_IN_PART),
        (TableRestrictions("t1", ALWAYS, _COLUMNS.projections, True, "m1"), _NEVER_IN_PART - {EnforcementPoint.APPEND}),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, (set, frozenset)) else "",
)
def test_an_unenforceable_obligation_is_refused_where_it_cannot_be_applied(
    obligation: Obligation, refused_at: set[EnforcementPoint]
) -> None:
    obligations = Obligations.of(obligation)
    assert {
        enforcement_point
        for enforcement_point in EnforcementPoint
        if unenforced(obligations, enforcement_point) is not None
    } == set(refused_at)


def test_credentials_apply_every_obligation() -> None:
    terms = vending_terms(Obligations.of(CredentialLife(900), AppendOnly(), _COLUMNS))
    assert (terms.seconds, terms.may_delete, terms.whole, terms.refusal) == (900, False, False, None)
    assert vending_terms(Obligations.of(NoVending())).refusal == "a policy forbids vending"
    assert "filters its rows" in str(vending_terms(Obligations.of(RowFilters(frozenset({"x"})))).refusal)


def test_a_load_returns_the_projections_of_its_own_table() -> None:
    encoded = restrictions_for_load(Obligations.of(_COLUMNS), "t1")
    assert msgspec.json.decode(encoded) == {
        "required-column-projections": [{"field-id": 2, "action": "replace-with-null"}]
    }
    assert restrictions_for_load(Obligations.of(_COLUMNS), "t2") == b""


def test_a_load_returns_column_grants_and_masks_as_one_projection_for_each_column() -> None:
    masked = (Projection(2, Action.SHOW_LAST_4), Projection(3, Action.MASK_ALPHANUM))
    both = Obligations.of(_COLUMNS, TableRestrictions("t1", ALWAYS, masked, True, "m1"))
    assert msgspec.json.decode(restrictions_for_load(both, "t1")) == {
        "required-column-projections": [
            {"field-id": 2, "action": "replace-with-null"},
            {"field-id": 3, "action": "mask-alphanum"},
        ]
    }
    found = restrictions_on(both, "t1")
    assert found is not None
    assert not found.append, "expected no append by a caller that may read some columns only"


@pytest.mark.parametrize("append", [True, False])
def test_a_data_policy_allows_writes_only_where_it_allows_appends(append: bool) -> None:
    terms = vending_terms(Obligations.of(TableRestrictions("t1", NEVER, (), append, "m1")))
    assert (terms.whole, terms.appends) == (False, append)


def test_the_audit_records_counts_and_no_data() -> None:
    both = Obligations.of(
        CredentialLife(900),
        NoVending(),
        RowFilters(frozenset({"region = 'EU'", "secret = 1"})),
        _COLUMNS,
        ReadableColumns("t2", frozenset({1, 2}), (), "m1"),
    )
    assert both.audited() == {
        "max_credential_seconds": 900,
        "no_vending": True,
        "row_filters": 2,
        "readable_columns": 3,
    }


def test_the_audit_records_a_limit_of_zero() -> None:
    assert Obligations.of(CredentialLife(0)).audited() == {"max_credential_seconds": 0}


def test_each_kind_that_guardrails_can_state_has_one_field() -> None:
    stated = [kind.rego[0] for kind in KINDS if kind.rego is not None]
    assert [each.name for each in msgspec.structs.fields(StatedObligations)] == stated
