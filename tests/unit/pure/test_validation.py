# SPDX-License-Identifier: Apache-2.0
"""Definitions of data policies are refused with the position and the reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.obligations.data_policies import Definition
from gateway.obligations.projections import Columns
from gateway.obligations.validation import DEEPEST, MOST_LITERALS, MOST_TESTS, problems_of
from lakegate.restrictions.literals import NestedField, StructType, Type


def field(id: int, name: str, kind: Type, *, required: bool = False) -> NestedField:
    """Return a top-level column."""
    return NestedField(id=id, name=name, type=kind, required=required)


FIELDS = (
    field(1, "name", "string"),
    field(2, "age", "int"),
    field(3, "id", "uuid", required=True),
    field(4, "person", StructType(fields=(field(5, "email", "string"),))),
    field(6, "amount", "decimal(9,2)"),
)
COLUMNS = Columns(FIELDS, (FIELDS,))
NAME, AGE, TAG = {"name": "name"}, {"name": "age"}, {"tag": "pii"}


def problems(definition: Any, columns: Columns | None = COLUMNS) -> list[tuple[str, str]]:
    """Return (pointer, problem) of each problem of a definition in JSON."""
    decoded = msgspec.json.decode(msgspec.json.encode(definition), type=Definition)
    return [(each.pointer, each.problem) for each in problems_of(decoded, columns)]


def row_filter(test: Any) -> Any:
    return {"kind": "row-filter", "test": test}


def compare(column: Any, operator: str, value: Any) -> Any:
    return {"type": "compare", "operator": operator, "column": column, "value": value}


CLAIM = {"type": "attribute", "source": "claim", "name": "team"}


@pytest.mark.parametrize(
    "test",
    [
        compare(NAME, "starts-with", "A"),
        compare(AGE, "lt", 18),
        compare({"name": "amount"}, "gt-eq", "12.5"),
        compare(TAG, "eq", CLAIM),
        {"type": "not", "operand": compare(AGE, "eq", 1)},
        {"type": "in", "column": NAME, "values": ["a", "b"]},
        {"type": "or", "operands": [{"type": "has-role", "role": "r1"}, {"type": "is-null", "column": NAME}]},
    ],
)
def test_valid_filters_have_no_problems(test: Any) -> None:
    assert problems(row_filter(test)) == []


@pytest.mark.parametrize(
    ("test", "pointer", "problem"),
    [
        (compare({"name": "gone"}, "eq", "a"), "/test/column/name", "no column 'gone'"),
        (compare({"name": "person.email"}, "eq", "a"), "/test/column/name", "nested field"),
        (compare(AGE, "eq", "a"), "/test/value", "not a value of the type int"),
        (compare(AGE, "eq", 2**31), "/test/value", "not a value of the type int"),
        (compare({"name": "amount"}, "eq", "1.234"), "/test/value", "too many digits"),
        (compare({"name": "id"}, "lt", "0" * 32), "/test/operator", "does not support lt"),
        (compare(AGE, "starts-with", 1), "/test/operator", "does not support starts-with"),
        (compare({"name": "person"}, "eq", "a"), "/test/operator", "does not support eq"),
        (compare(NAME, "eq", "a\0b"), "/test/value", "NUL"),
        (compare(NAME, "eq", "a" * 4097), "/test/value", "4096 bytes"),
        (compare({"tag": ""}, "eq", "a"), "/test/column/tag", "not be empty"),
        ({"type": "in", "column": NAME, "values": []}, "/test/values", "at least one"),
        ({"type": "in", "column": NAME, "values": ["a", 1]}, "/test/values/1", "not a value"),
        ({"type": "in", "column": {"name": "person"}, "values": ["a"]}, "/test/column", "cannot be compared"),
        ({"type": "and", "operands": []}, "/test/operands", "at least one"),
        ({"type": "has-role", "role": ""}, "/test/role", "not be empty"),
        (
            {"type": "or", "operands": [{"type": "constant", "value": True}, compare({"name": "x"}, "eq", 1)]},
            "/test/operands/1/column/name",
            "no column 'x'",
        ),
        ({"type": "not", "operand": {"type": "has-role", "role": "r1"}}, "/test/operand", "has-role"),
        ({"type": "not", "operand": compare(NAME, "eq", CLAIM)}, "/test/operand/value", "attribute"),
        ({"type": "not", "operand": {"type": "is-null", "column": TAG}}, "/test/operand/column/tag", "tag"),
        (
            compare(NAME, "eq", {"type": "attribute", "source": "principal", "name": "x"}),
            "/test/value/name",
            "has no name",
        ),
        (compare(NAME, "eq", {"type": "attribute", "source": "mapping"}), "/test/value/name", "not be empty"),
    ],
)
def test_problem_of_a_filter_has_its_position(test: Any, pointer: str, problem: str) -> None:
    found = problems(row_filter(test))
    assert pointer in [each for each, _ in found]
    assert problem in " ".join(text for each, text in found if each == pointer)


def test_names_and_types_are_not_checked_without_a_table() -> None:
    assert problems(row_filter(compare({"name": "gone"}, "eq", 1)), None) == []
    assert problems({"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "gone"}]}, None) == []
    assert problems(row_filter(compare(NAME, "starts-with", 1)), None) == [("/test/value", "starts-with needs a text")]


@pytest.mark.parametrize(
    ("action", "column", "pointer"),
    [
        ("mask-alphanum", AGE, "/action"),
        ("replace-with-null", {"name": "ID"}, "/action"),
        ("mask-alphanum", {"name": "gone"}, "/columns/0/name"),
        ("mask-alphanum", {"name": "person.email"}, "/columns/0/name"),
    ],
)
def test_problem_of_a_mask_has_its_position(action: str, column: Any, pointer: str) -> None:
    assert [each for each, _ in problems({"kind": "mask", "action": action, "columns": [column]})] == [pointer]


def test_valid_masks_have_no_problems() -> None:
    assert problems({"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "NAME"}, TAG]}) == []
    assert problems({"kind": "mask", "action": "mask-alphanum"}) == []


def nested(levels: int) -> Any:
    test: Any = {"type": "constant", "value": True}
    for _ in range(levels - 1):
        test = {"type": "not", "operand": test}
    return test


def test_limits_of_depth_tests_and_literals() -> None:
    assert problems(row_filter(nested(DEEPEST))) == []
    assert [text for _, text in problems(row_filter(nested(DEEPEST + 1)))] == [
        "tests are nested more than 16 levels deep"
    ]
    many = {"type": "and", "operands": [{"type": "constant", "value": True}] * MOST_TESTS}
    assert "201 tests" in problems(row_filter(many))[0][1]
    values = {"type": "in", "column": AGE, "values": list(range(MOST_LITERALS + 1))}
    assert "1001 literals" in problems(row_filter(values))[0][1]


def test_reference_by_name_and_tag_is_refused_by_the_decoder() -> None:
    with pytest.raises(msgspec.ValidationError, match="either `name` or `tag`"):
        problems(row_filter(compare({"name": "a", "tag": "b"}, "eq", 1)))


def test_a_column_is_named_in_any_unicode_form() -> None:
    fields = (field(1, "e\u0301tat", "int"),)
    for name in ("e\u0301tat", "\u00e9tat", "\u00c9TAT"):
        mask = {"kind": "mask", "action": "mask-to-fixed-value", "columns": [{"name": name}]}
        assert problems(mask, Columns(fields, (fields,))) == []
        assert problems(row_filter(compare({"name": name}, "eq", 1)), Columns(fields, (fields,))) == []
