# SPDX-License-Identifier: Apache-2.0
"""The decoder of `read-restrictions` refuses everything that it cannot apply in full, without Spark."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import And, Compare, Comparison, In, IsNan, IsNull, Not, Or
from lakegate.spark.catalog_client import LoadedTable
from lakegate.spark.errors import RestrictionsRefused
from lakegate.spark.restrictions import Restrictions, check_literal, columns_of
from lakegate.spark.restrictions import decode as decode_json

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "name", "type": "string", "required": False},
    {"id": 3, "name": "ratio", "type": "double", "required": False},
    {"id": 4, "name": "key", "type": "uuid", "required": False},
    {"id": 5, "name": "hour", "type": "time", "required": False},
    {
        **{"id": 6, "name": "address", "required": False},
        "type": {"type": "struct", "fields": [{"id": 7, "name": "street", "type": "string", "required": False}]},
    },
]
CURRENT = msgspec.convert(FIELDS, tuple[NestedField, ...])
OLD = msgspec.convert([{"id": 9, "name": "gone", "type": "string", "required": False}], tuple[NestedField, ...])
COLUMNS = columns_of([CURRENT, OLD], CURRENT)


def decode(document: object) -> Restrictions:
    return decode_json(msgspec.json.encode(document), COLUMNS)


def mask(field: object, action: object, **more: object) -> dict[str, Any]:
    return {"required-column-projections": [{"field-id": field, "action": action, **more}]}


def keep(test: object) -> dict[str, Any]:
    return {"required-row-filter": test}


def reference(field: int) -> dict[str, Any]:
    return {"type": "reference", "id": field}


def compare(operator: str, field: int, value: object) -> dict[str, Any]:
    return {"type": operator, "left": reference(field), "right": value}


@pytest.mark.parametrize("document", [{}, {"required-column-projections": []}, keep(True), keep({"type": "true"})])
def test_empty_restrictions_restrict_nothing(document: object) -> None:
    assert not decode(document)


def test_an_absent_member_restricts_nothing_and_null_is_refused() -> None:
    metadata = b'{"metadata": {"table-uuid": "t", "current-schema-id": 0, "schemas": []}'
    absent, null = (
        msgspec.json.decode(metadata + end, type=LoadedTable) for end in (b"}", b', "read-restrictions": null}')
    )
    assert not decode_json(bytes(absent.read_restrictions), COLUMNS)
    with pytest.raises(RestrictionsRefused):
        decode_json(bytes(null.read_restrictions), COLUMNS)


def test_masks_and_the_filter_are_decoded() -> None:
    literal = {"type": "literal", "value": 34, "data-type": "long"}
    document = mask(2, "show-last-4") | keep(
        {"type": "and", "left": compare("gt", 1, literal), "right": {"type": "not-nan", "child": reference(3)}}
    )
    decoded = decode(document)
    assert decoded == Restrictions(
        row_filter=And((Compare(Comparison.GT, 1, "long", 34), Not(IsNan(3)))),
        masks=(Projection(2, Action.SHOW_LAST_4),),
    )
    assert decoded


def test_negated_tests_of_the_protocol_hold_for_null_and_nan() -> None:
    assert decode(keep(compare("not-eq", 2, "x"))).row_filter == Or(
        (Compare(Comparison.NOT_EQ, 2, "string", "x"), IsNull(2))
    )
    values = {"type": "not-in", "child": reference(3), "values": [1, 2.5]}
    assert decode(keep(values)).row_filter == Or((In(3, "double", (1.0, 2.5), negated=True), IsNull(3), IsNan(3)))


def test_a_mask_of_a_column_that_the_read_schema_does_not_have_is_skipped() -> None:
    assert not decode(mask(9, "mask-alphanum"))


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"required-column-masks": []},
        {"required-column-projections": {}},
        mask(2, "mask-email"),
        mask(2, "mask-alphanum", argument=1),
        mask("2", "mask-alphanum"),
        mask(True, "mask-to-fixed-value"),
        mask(8, "replace-with-null"),
        mask(7, "replace-with-null"),
        mask(1, "replace-with-null"),
        mask(1, "mask-alphanum"),
        {"required-column-projections": [{"field-id": 2, "action": name} for name in ("mask-alphanum", "show-last-4")]},
        keep(None),
        keep("true"),
        keep({"type": "xor", "left": True, "right": True}),
        keep({"type": "and", "left": True}),
        keep({"type": "not", "child": True, "term": "x"}),
        keep({"type": "eq", "term": "name", "value": "x"}),
        keep({"type": "eq", "left": {"type": "reference", "name": "name"}, "right": "x"}),
        keep({"type": "eq", "left": {"type": "apply", "function": "lower", "arguments": []}, "right": "x"}),
        keep({"type": "eq", "left": "x", "right": reference(2)}),
        keep(compare("eq", 2, reference(2))),
        keep(compare("eq", 9, "x")),
        keep(compare("eq", 7, "x")),
        keep(compare("eq", 6, "x")),
        keep(compare("eq", 2, None)),
        keep(compare("eq", 1, "1")),
        keep(compare("eq", 1, True)),
        keep(compare("eq", 1, 2**63)),
        keep(compare("eq", 2, {"type": "literal", "value": "x", "data-type": "uuid"})),
        keep(compare("starts-with", 1, 1)),
        keep(compare("lt", 4, "f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        keep(compare("eq", 5, "10:00:00")),
        keep({"type": "is-nan", "child": reference(2)}),
        keep({"type": "in", "child": reference(2), "values": "xyz"}),
        keep({"type": "in", "child": reference(2), "values": ["x", None]}),
    ],
)
def test_what_cannot_be_applied_in_full_is_refused(document: object) -> None:
    with pytest.raises(RestrictionsRefused):
        decode(document)


def test_a_filter_that_is_nested_too_deep_is_refused_without_a_stack_overflow() -> None:
    test: dict[str, Any] | bool = True
    for _ in range(900):
        test = {"type": "not", "child": test}
    with pytest.raises(RestrictionsRefused, match="deeper than 128"):
        decode(keep(test))


@pytest.mark.parametrize(
    ("kind", "value", "canonical"),
    [
        ("decimal(9,2)", "14.20", "14.20"),
        ("decimal(9,2)", "14.2", "14.20"),
        ("decimal(9,2)", "14.2000", "14.20"),
        ("decimal(9,2)", "-0", "0.00"),
        ("date", "2017-11-16", "2017-11-16"),
        ("timestamp", "2017-11-16T22:31:08", "2017-11-16T22:31:08.000000"),
        ("timestamptz", "2017-11-16T22:31:08.000001+00:00", "2017-11-16T22:31:08.000001+00:00"),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("fixed[2]", "00ff", "00FF"),
    ],
)
def test_literals_in_text_form_get_one_form(kind: str, value: str, canonical: str) -> None:
    assert check_literal(value, kind) == canonical


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("decimal(9,2)", "14.205"),
        ("decimal(9,2)", "12345678.00"),
        ("decimal(9,2)", "NaN"),
        ("decimal(9,2)", "1E+3"),
        ("decimal(9,2)", "1e999999999"),
        ("date", "2017-02-30"),
        ("date", "today"),
        ("timestamp", "2017-11-16T22:31:08+00:00"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("timestamptz", "2017-11-16T22:31:08+01:00"),
        ("fixed[2]", "00"),
        ("binary", "0"),
        ("float", 1e39),
        ("double", float("nan")),
        ("int", 2**31),
        ("int", 1.0),
    ],
)
def test_literals_that_are_no_value_of_the_type_are_refused(kind: str, value: object) -> None:
    with pytest.raises(RestrictionsRefused):
        check_literal(value, kind)
