# SPDX-License-Identifier: Apache-2.0
"""The roles and mapping tables that a definition refers to, at any depth."""

from __future__ import annotations

import pytest

from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    Attribute,
    AttributeSource,
    ColumnReference,
    CompareTest,
    Definition,
    InTest,
    Mask,
    NotTest,
    NullTest,
    RoleTest,
    RowFilter,
    Test,
    attributes_of,
    roles_tested_by,
)
from lakegate.restrictions.actions import Action
from lakegate.restrictions.predicates import Comparison

COLUMN = ColumnReference(name="region")


def mapping(name: str) -> Attribute:
    return Attribute(AttributeSource.MAPPING, name)


def nested(*tests: Test) -> RowFilter:
    return RowFilter(AnyOf((NullTest(COLUMN), AllOf((NotTest(NullTest(COLUMN)), AnyOf(tests))))))


def test_mapping_tables_are_found_in_comparisons_and_lists() -> None:
    definition = nested(
        CompareTest(Comparison.EQ, COLUMN, mapping("regions")),
        InTest(COLUMN, mapping("countries")),
        InTest(COLUMN, ("mapping", "attribute")),
        CompareTest(Comparison.EQ, COLUMN, Attribute(AttributeSource.CLAIM, "department")),
        CompareTest(Comparison.EQ, COLUMN, Attribute(AttributeSource.PRINCIPAL)),
    )
    assert attributes_of(definition, AttributeSource.MAPPING) == {"regions", "countries"}


def test_roles_are_found_at_any_depth() -> None:
    assert roles_tested_by(nested(RoleTest("a"), AllOf((RoleTest("b"),)))) == {"a", "b"}


@pytest.mark.parametrize("definition", [Mask(Action.MASK_ALPHANUM), RowFilter(NullTest(COLUMN))])
def test_other_definitions_refer_to_nothing(definition: Definition) -> None:
    assert attributes_of(definition, AttributeSource.MAPPING) == roles_tested_by(definition) == frozenset()
