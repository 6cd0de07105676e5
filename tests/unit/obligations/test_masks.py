# SPDX-License-Identifier: Apache-2.0
"""Mask actions by type, as in the table of the protocol."""

from __future__ import annotations

from itertools import product

import pytest

from gateway.obligations.projections import reveals_no_more, strictest
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type

PRIMITIVES = (
    "boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "time", "timestamp", "timestamptz",
    "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[16]", "binary", "variant", "unknown", "geometry",
    "geography",
)  # fmt: skip
TEMPORAL = {"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
HASHED = {"string", "int", "long", "binary"}
#: The types of each action; an action that is not listed applies to all.
FOR = {
    Action.MASK_ALPHANUM: {"string"},
    Action.SHOW_FIRST_4: {"string"},
    Action.SHOW_LAST_4: {"string"},
    Action.TRUNCATE_TO_YEAR: TEMPORAL,
    Action.TRUNCATE_TO_MONTH: TEMPORAL,
    Action.SHA_256_GLOBAL: HASHED,
    Action.SHA_256_QUERY_LOCAL: HASHED,
    Action.MASK_TO_FIXED_VALUE: set(PRIMITIVES) - {"unknown", "geometry", "geography"},
}


def struct(kind: Type) -> StructType:
    """Return a struct with one field of the type."""
    return StructType(fields=(NestedField(id=9, name="inner", required=False, type=kind),))


@pytest.mark.parametrize("kind", PRIMITIVES)
@pytest.mark.parametrize("action", sorted(FOR))
def test_an_action_applies_only_to_the_types_of_the_protocol(action: Action, kind: str) -> None:
    for required in (False, True):
        assert applies(action, kind, required=required) is (kind in FOR[action])


@pytest.mark.parametrize("kind", [*PRIMITIVES, struct("string")])
def test_null_replaces_any_type_except_in_a_required_column(kind: Type) -> None:
    assert applies(Action.REPLACE_WITH_NULL, kind, required=False)
    assert not applies(Action.REPLACE_WITH_NULL, kind, required=True)


@pytest.mark.parametrize("kind", ["unknown", "geometry", "geography", "geometry(srid:4326)"])
def test_a_type_with_a_nested_type_without_fixed_value_has_none(kind: str) -> None:
    nested: tuple[Type, ...] = (
        struct(kind),
        struct(struct(kind)),
        ListType(element_id=8, element=kind, element_required=False),
        MapType(key_id=7, key="string", value_id=8, value=kind, value_required=False),
        ListType(element_id=8, element=struct(kind), element_required=True),
    )
    for each in nested:
        assert not applies(Action.MASK_TO_FIXED_VALUE, each, required=True)
    assert applies(Action.MASK_TO_FIXED_VALUE, struct("string"), required=True)


@pytest.mark.threat("LG-DEC-25")
def test_several_actions_merge_to_the_strictest_in_any_order() -> None:
    for stricter, other in product(Action, Action):
        if reveals_no_more(stricter, other):
            pair = [Projection(1, other), Projection(1, stricter)]
            for some in (pair, pair[::-1]):
                assert strictest({1: some}) == (Projection(1, stricter),)
    assert strictest({2: [Projection(2, Action.SHOW_LAST_4)], 1: [Projection(1, Action.SHOW_LAST_4)], 3: []}) == (
        Projection(1, Action.SHOW_LAST_4),
        Projection(2, Action.SHOW_LAST_4),
    )
