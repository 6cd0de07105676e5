# SPDX-License-Identifier: Apache-2.0
"""The JSON of `read-restrictions`: explicit tests for null and NaN, balanced trees, and nothing that is not needed."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.obligations.compilers.read_restrictions import predicate_json, read_restrictions
from gateway.obligations.kinds import TableRestrictions
from lakegate.restrictions.actions import Action, Projection
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
from tests.support.policies.policy_agreement import COLUMNS, random_predicate, random_rows
from tests.support.policies.reference_policies import keeps, parsed
from tests.support.policies.wire_predicates import Nulls, holds


def restrictions(row_filter: Predicate = ALWAYS, *masks: Projection) -> TableRestrictions:
    """Return restrictions of the table `t`."""
    return TableRestrictions("t", row_filter, masks, False, "m1")


def reference(id: int) -> dict[str, Any]:
    return {"type": "reference", "id": id}


def test_restrictions_have_projections_and_a_filter_by_field_id() -> None:
    masks = (Projection(8, Action.TRUNCATE_TO_YEAR), Projection(4, Action.SHOW_LAST_4))
    encoded = read_restrictions(restrictions(Compare(Comparison.EQ, 14, "string", "US"), *masks))
    assert json.loads(encoded) == {
        "required-column-projections": [
            {"field-id": 4, "action": "show-last-4"},
            {"field-id": 8, "action": "truncate-to-year"},
        ],
        "required-row-filter": {"type": "eq", "left": reference(14), "right": {"type": "literal", "value": "US"}},
    }


def test_filter_that_always_holds_is_left_out_and_one_that_never_holds_is_false() -> None:
    assert read_restrictions(restrictions()) == b""
    assert read_restrictions(restrictions(Or((ALWAYS, IsNull(1))))) == b""
    assert read_restrictions(restrictions(And((NEVER, IsNull(1))))) == b'{"required-row-filter":false}'


def test_negated_comparisons_exclude_null_and_nan_explicitly() -> None:
    assert predicate_json(In(1, "int", (1, 2), negated=True)) == {
        "type": "and",
        "left": {"type": "not-null", "child": reference(1)},
        "right": {"type": "not-in", "child": reference(1), "values": [1, 2]},
    }
    found = predicate_json(Compare(Comparison.GT, 1, "double", 0.5))
    assert json.dumps(found).count("not-nan") == 1
    assert predicate_json(Not(IsNull(1))) == {"type": "not-null", "child": reference(1)}


def test_equal_restrictions_give_equal_bytes() -> None:
    parts = (IsNull(1), IsNull(2), Compare(Comparison.EQ, 3, "int", 1))
    assert read_restrictions(restrictions(And(parts))) == read_restrictions(restrictions(And(parts[::-1])))


def depth(found: Any) -> int:
    return 1 + max(map(depth, found.values()), default=0) if isinstance(found, dict) else 0


def test_long_conjunctions_become_balanced_trees() -> None:
    found = predicate_json(And(tuple(IsNull(number) for number in range(1, 1001))))
    assert depth(found) < 20


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.parametrize("nulls", list(Nulls))
def test_every_order_of_nulls_of_a_reader_gives_the_same_rows(nulls: Nulls, seed: int) -> None:
    """Readers differ for null and NaN: two-valued by the specification, or null first and NaN last in older ones."""
    rnd = random.Random(seed)
    rows = random_rows(rnd, tuple(COLUMNS), 20)
    for _ in range(5):
        predicate = random_predicate(rnd, tuple(COLUMNS))
        wire = json.loads(json.dumps(predicate_json(predicate)))
        assert [holds(wire, row, literal_of, nulls) for row in rows] == [keeps(predicate, row) for row in rows]


def literal_of(field_id: int, value: Any) -> Any:
    """Return the value of a literal that is compared with a column."""
    return parsed(value, COLUMNS[field_id][1])


def test_constants_are_json_booleans() -> None:
    assert predicate_json(Constant(True)) is True
    assert predicate_json(Or(())) is False
    assert predicate_json(In(1, "int", ())) is False


def test_references_are_ids_and_the_document_names_nothing_else() -> None:
    found: Mapping[str, Any] = json.loads(
        read_restrictions(restrictions(IsNull(3), Projection(1, Action.MASK_ALPHANUM)))
    )
    assert found.keys() == {"required-column-projections", "required-row-filter"}
