# SPDX-License-Identifier: Apache-2.0
"""Binding of data policies to a table and a principal: columns over all schemas, attributes, problems."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gateway.obligations.binding import BindingResult, RestrictionNotExpressible, restrictions_of
from gateway.obligations.binding_columns import unambiguous_names
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
    Definition,
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
from gateway.obligations.projections import Columns
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import NestedField, StructType, Type
from lakegate.restrictions.predicates import NEVER, And, Compare, Comparison, In, IsNull, Not, Or, Predicate
from tests.support.policies.reference_policies import keeps

HIDDEN = "hides all rows"
ANNA = PrincipalAttributes(principal="oidc~anna")
NULL, FIXED = Action.REPLACE_WITH_NULL, Action.MASK_TO_FIXED_VALUE


def field(id: int, name: str, kind: Type = "string", *, required: bool = False) -> NestedField:
    """Return a top-level column."""
    return NestedField(id=id, name=name, type=kind, required=required)


def columns(*schemas: list[NestedField]) -> Columns:
    """Return the columns of a table with these schemas, the last one current."""
    return Columns(tuple(schemas[-1]), tuple(map(tuple, schemas)))


def bound(definition: Definition, id: str = "p1", *, append: bool = False, **members: Any) -> BoundPolicy:
    """Return a bound policy with this definition."""
    return BoundPolicy(policy=DataPolicy(id=id, version=1, definition=definition, allow_append=append), **members)


def bind(
    *policies: BoundPolicy,
    table: Columns,
    attributes: PrincipalAttributes = ANNA,
    **inputs: Any,
) -> BindingResult:
    """Return the restrictions of the table with id `t`."""
    return restrictions_of("t", policies, PolicyInputs(bound=policies, **inputs), attributes, table, "m1")


def masks_of(result: BindingResult) -> dict[int, Action]:
    """Return the merged action of each masked field id."""
    found = () if result.restrictions is None else result.restrictions.masks
    return {each.field_id: each.action for each in found}


def filter_of(result: BindingResult) -> Predicate:
    """Return the merged row filter."""
    assert result.restrictions is not None
    return result.restrictions.row_filter


def mask(*names: str, action: Action = Action.MASK_ALPHANUM) -> Mask:
    """Return a mask of columns by name."""
    return Mask(action, tuple(ColumnReference(name=name) for name in names))


def equals(name: str, value: Any) -> CompareTest:
    """Return a test for equality."""
    return CompareTest(Comparison.EQ, ColumnReference(name=name), value)


def test_table_without_policies_has_no_restrictions() -> None:
    assert bind(table=columns([field(1, "a")])) == BindingResult(None, ())
    assert bind(bound(RowFilter(ConstantTest(True))), table=columns([field(1, "a")])).restrictions is None


def test_column_that_was_dropped_and_added_again_stays_masked() -> None:
    table = columns([field(1, "id"), field(2, "email")], [field(1, "id")], [field(1, "id"), field(3, "Email")])
    assert masks_of(bind(bound(mask("email")), table=table)) == {2: Action.MASK_ALPHANUM, 3: Action.MASK_ALPHANUM}


def test_renamed_column_stays_masked_by_its_former_name() -> None:
    table = columns([field(2, "email")], [field(2, "contact")])
    assert masks_of(bind(bound(mask("email")), table=table)) == {2: Action.MASK_ALPHANUM}


def test_renamed_column_stays_masked_after_its_schema_was_removed() -> None:
    table = columns([field(2, "contact")])
    assert masks_of(bind(bound(mask("email")), table=table, former_columns=((2, "EMAIL"),))) == {
        2: Action.MASK_ALPHANUM
    }
    assert masks_of(bind(bound(mask("email"), recorded=(2,)), table=table)) == {2: Action.MASK_ALPHANUM}


def test_released_column_is_not_masked_and_an_unknown_id_is_left_out() -> None:
    table = columns([field(2, "email")], [field(3, "email")])
    policy = bound(mask("email"), recorded=(2, 9), released=(2,))
    assert masks_of(bind(policy, table=table)) == {3: Action.MASK_ALPHANUM}


@pytest.mark.parametrize("required", [False, True])
def test_mask_that_does_not_apply_to_the_type_reveals_nothing_and_is_reported(required: bool) -> None:
    result = bind(bound(mask("age")), table=columns([field(1, "age", "int", required=required)]))
    assert masks_of(result) == {1: FIXED if required else NULL}
    assert "mask-alphanum does not apply to the column 'age'" in result.problems[0].problem
    assert (result.problems[0].policy_id, result.problems[0].table_id) == ("p1", "t")


def test_null_mask_of_a_column_that_was_ever_required_becomes_the_fixed_value() -> None:
    table = columns([field(1, "a", required=True)], [field(1, "a")])
    assert masks_of(bind(bound(mask("a", action=NULL)), table=table)) == {1: FIXED}


def test_required_column_without_a_fixed_value_refuses_reading() -> None:
    with pytest.raises(RestrictionNotExpressible):
        bind(bound(mask("place")), table=columns([field(1, "place", "geometry", required=True)]))


def test_nested_field_masks_its_whole_column() -> None:
    person = StructType(fields=(field(2, "email"),))
    result = bind(bound(mask("person.Email")), table=columns([field(1, "person", person)]))
    assert masks_of(result) == {1: NULL}
    assert "nested field" in result.problems[0].problem


def test_masked_column_that_is_nested_in_another_schema_refuses_reading() -> None:
    table = columns([field(1, "p", StructType(fields=(field(2, "email"),)))], [field(2, "email")])
    with pytest.raises(RestrictionNotExpressible):
        bind(bound(mask("email")), table=table)


def test_missing_column_of_a_mask_is_reported() -> None:
    result = bind(bound(mask("email")), table=columns([field(1, "a")]))
    assert result.restrictions is None
    assert "no column 'email'" in result.problems[0].problem


def test_mask_by_tag_covers_all_columns_that_share_a_name_with_a_tagged_one() -> None:
    table = columns([field(1, "email"), field(2, "x")], [field(1, "mail"), field(3, "email"), field(2, "x")])
    policy = bound(Mask(Action.MASK_ALPHANUM), tag="T")
    assert set(masks_of(bind(policy, table=table, tagged_fields=(("T", 1), ("U", 2))))) == {1, 3}
    assert set(masks_of(bind(policy, table=table, tagged_fields=(("T", None),)))) == {1, 2, 3}


def test_tag_in_a_policy_is_found_by_its_name() -> None:
    policy = bound(Mask(Action.MASK_ALPHANUM, (ColumnReference(tag="pii"),)))
    table = columns([field(1, "a"), field(2, "b")])
    result = bind(policy, table=table, tagged_fields=(("T", 2),), tag_names=(("T", "pii"), ("U", "other")))
    assert masks_of(result) == {2: Action.MASK_ALPHANUM}
    assert "no tag 'pii'" in bind(policy, table=table).problems[0].problem


def test_masks_of_several_policies_merge_in_any_order() -> None:
    table = columns([field(1, "a"), field(2, "b", "int")])
    policies = [
        bound(mask("a", action=Action.SHOW_FIRST_4), "p1", append=True),
        bound(mask("a", action=Action.SHOW_LAST_4), "p2"),
        bound(mask("b"), "p3"),
        bound(RowFilter(equals("a", "x")), "p4", append=True),
        bound(RowFilter(equals("b", 1)), "p5"),
    ]
    first = bind(*policies, table=table)
    assert masks_of(first) == {1: Action.MASK_ALPHANUM, 2: NULL}
    assert first.restrictions is not None
    assert not first.restrictions.append
    for seed in range(20):
        random.Random(seed).shuffle(policies)
        assert bind(*policies, table=table) == first


def test_filter_uses_the_recorded_column_after_a_rename() -> None:
    table = columns([field(1, "region"), field(2, "x")], [field(1, "area"), field(2, "region")])
    test = RowFilter(equals("region", "EU"))
    assert filter_of(bind(bound(test, recorded=(1,)), table=table)) == Compare(Comparison.EQ, 1, "string", "EU")
    assert filter_of(bind(bound(test), table=table)) == Compare(Comparison.EQ, 2, "string", "EU")


def test_exact_name_wins_among_columns_whose_names_differ_in_letter_case() -> None:
    table = columns([field(1, "Case"), field(2, "case")])
    for recorded in ((), (1, 2), (2,)):
        policy = bound(RowFilter(equals("case", "EU")), recorded=recorded)
        assert filter_of(bind(policy, table=table)) == Compare(Comparison.EQ, 2, "string", "EU")
    assert bind(bound(RowFilter(equals("CASE", "EU"))), table=table).problems
    # A column that a writer adds must not take the mask from the one that had it.
    assert masks_of(bind(bound(mask("case")), table=table)) == {1: Action.MASK_ALPHANUM, 2: Action.MASK_ALPHANUM}
    assert [each.id for each in table.meant("case", one=True)] == [2]
    assert [each.id for each in table.meant("case", one=False)] == [1, 2]


def test_filter_keeps_no_row_if_two_of_its_columns_exchanged_a_name() -> None:
    """The column that has the name now need not be the one that the author meant."""
    table = columns([field(1, "region"), field(2, "area")], [field(1, "old"), field(2, "region")])
    assert filter_of(bind(bound(RowFilter(equals("region", "EU")), recorded=(1, 2)), table=table)) == NEVER


def test_filter_finds_the_only_column_that_formerly_had_the_name() -> None:
    table = columns([field(1, "region")], [field(1, "area")])
    only = bind(bound(RowFilter(equals("region", "EU"))), table=table)
    assert filter_of(only) == Compare(Comparison.EQ, 1, "string", "EU")
    table = columns(
        [field(1, "region"), field(2, "x")], [field(1, "y"), field(2, "region")], [field(1, "y"), field(2, "z")]
    )
    result = bind(bound(RowFilter(equals("region", "EU"))), table=table)
    assert filter_of(result) == NEVER


@pytest.mark.parametrize(
    "test",
    [
        equals("gone", "x"),
        equals("n", "x"),
        equals("n", 2**31),
        equals("n", True),
        equals("amount", "1.234"),
        equals("day", "0000-01-01"),
        equals("name", "a\0b"),
        CompareTest(Comparison.LT, ColumnReference(name="id"), "00000000-0000-0000-0000-000000000000"),
        CompareTest(Comparison.STARTS_WITH, ColumnReference(name="n"), "1"),
        NotTest(equals("gone", "x")),
        AnyOf((ConstantTest(True), equals("gone", "x"))),
        NotTest(equals("name", Attribute(AttributeSource.MAPPING, "regions"))),
        NotTest(NullTest(ColumnReference(tag="pii"))),
        NullTest(ColumnReference(tag="pii")),
        NotTest(InTest(ColumnReference(name="name"), Attribute(AttributeSource.PRINCIPAL))),
    ],
)
def test_filter_that_cannot_be_bound_hides_all_rows_and_is_reported(test: Test) -> None:
    table = columns(
        [field(1, "n", "int"), field(2, "amount", "decimal(9,2)"), field(3, "day", "date"), field(4, "name"),
         field(5, "id", "uuid")]
    )  # fmt: skip
    result = bind(bound(RowFilter(test)), table=table)
    assert filter_of(result) == NEVER
    assert HIDDEN in result.problems[0].problem


REGIONS = Attribute(AttributeSource.MAPPING, "regions")


@pytest.mark.parametrize(
    ("values", "compared", "among", "not_among"),
    [
        ((), NEVER, NEVER, NEVER),
        (("3",), Compare(Comparison.EQ, 1, "int", 3), In(1, "int", (3,)), In(1, "int", (3,), True)),
        (("3", "4", "3"), NEVER, In(1, "int", (3, 4)), In(1, "int", (3, 4), True)),
    ],
)
def test_attributes_become_literals(
    values: tuple[str, ...], compared: Predicate, among: Predicate, not_among: Predicate
) -> None:
    table, column = columns([field(1, "n", "int")]), ColumnReference(name="n")
    anna = PrincipalAttributes(principal="anna", mappings=(("regions", values),))

    def bound_to(test: Test) -> Predicate:
        return filter_of(bind(bound(RowFilter(test)), table=table, attributes=anna))

    assert bound_to(CompareTest(Comparison.EQ, column, REGIONS)) == compared
    assert bound_to(InTest(column, REGIONS)) == among
    assert bound_to(InTest(column, REGIONS, negated=True)) == not_among


def test_attribute_of_the_wrong_type_hides_all_rows_and_is_not_shown() -> None:
    anna = PrincipalAttributes(principal="anna", claims=(("team", ("secret",)),))
    test = InTest(ColumnReference(name="n"), Attribute(AttributeSource.CLAIM, "team"))
    result = bind(bound(RowFilter(test)), table=columns([field(1, "n", "int")]), attributes=anna)
    assert filter_of(result) == NEVER
    assert "secret" not in result.problems[0].problem


def test_role_test_inside_of_not_hides_all_rows() -> None:
    result = bind(bound(RowFilter(NotTest(RoleTest("r1")))), table=columns([field(1, "a")]))
    assert filter_of(result) == NEVER
    assert "has-role" in result.problems[0].problem


def test_role_test_holds_for_members_only() -> None:
    test = RowFilter(AnyOf((RoleTest("r1"), equals("a", "x"))))
    table = columns([field(1, "a")])
    assert filter_of(bind(bound(test), table=table)) == Compare(Comparison.EQ, 1, "string", "x")
    member = PrincipalAttributes(principal="anna", roles=("r1",))
    assert bind(bound(test), table=table, attributes=member).restrictions is None


def test_filter_over_a_tag_holds_for_each_tagged_column() -> None:
    test = RowFilter(AllOf((CompareTest(Comparison.EQ, ColumnReference(tag="region"), "EU"),)))
    table = columns([field(1, "a"), field(2, "b"), field(3, "c")])
    result = bind(bound(test), table=table, tagged_fields=(("T", 1), ("T", 3)), tag_names=(("T", "region"),))
    assert filter_of(result) == And(
        (Compare(Comparison.EQ, 1, "string", "EU"), Compare(Comparison.EQ, 3, "string", "EU"))
    )


@pytest.mark.parametrize("tagged", [(("T", None),), (("T", None), ("T", 1))])
def test_filter_over_a_tag_of_the_table_holds_for_all_columns(tagged: tuple[tuple[str, int | None], ...]) -> None:
    """A tag that is also on one column covers no fewer columns than the tag of the table."""
    test = RowFilter(CompareTest(Comparison.EQ, ColumnReference(tag="region"), "x"))
    table = columns([field(1, "a"), field(2, "b")])
    result = bind(bound(test), table=table, tagged_fields=tagged, tag_names=(("T", "region"),))
    found = filter_of(result)
    rows = [{1: "x", 2: "y"}, {1: "x", 2: "x"}, {1: "y", 2: "y"}]
    assert [row for row in rows if keeps(found, row)] == [{1: "x", 2: "x"}]
    mixed = bind(
        bound(test),
        table=columns([field(1, "a"), field(2, "b", "long")]),
        tagged_fields=tagged,
        tag_names=(("T", "region"),),
    )
    assert filter_of(mixed) == NEVER, "x is no number"


def test_null_tests_bind_to_any_type() -> None:
    test = RowFilter(AnyOf((NullTest(ColumnReference(name="a")), NullTest(ColumnReference(name="b"), negated=True))))
    found = filter_of(bind(bound(test), table=columns([field(1, "a"), field(2, "b", StructType(fields=()))])))
    assert set(found.operands) == {IsNull(1), Not(IsNull(2))} if isinstance(found, Or) else False


def test_projections_are_sorted_by_field_id() -> None:
    result = bind(bound(mask("b", "a", "c")), table=columns([field(3, "a"), field(1, "b"), field(2, "c")]))
    assert result.restrictions is not None
    assert result.restrictions.masks == tuple(Projection(id, Action.MASK_ALPHANUM) for id in (1, 2, 3))


def test_names_that_another_column_has_or_had_are_ambiguous() -> None:
    table = columns([field(1, "a"), field(2, "b")], [field(1, "a"), field(3, "B"), field(4, "c"), field(5, "d")])
    assert unambiguous_names(table, PolicyInputs()) == {1: "a", 4: "c", 5: "d"}
    assert unambiguous_names(table, PolicyInputs(former_columns=((9, "D"), (4, "c")))) == {1: "a", 4: "c"}


def test_two_spellings_of_one_name_in_unicode_are_the_same_column() -> None:
    table = columns([field(1, "e\N{COMBINING ACUTE ACCENT}tage")])
    assert masks_of(bind(bound(mask("\N{LATIN CAPITAL LETTER E WITH ACUTE}TAGE")), table=table)) == {
        1: Action.MASK_ALPHANUM
    }
