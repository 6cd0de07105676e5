# SPDX-License-Identifier: Apache-2.0
"""The tables of `docs/data-policies.md` and `docs/auditor.md` state what the code does."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest

from gateway.access.decisions.decision import Failure, Outcome
from gateway.identity.errors import Refusal
from gateway.obligations.compilers import duckdb, spark, trino
from gateway.obligations.projections import RestrictionNotExpressible, meet
from lakegate.restrictions.actions import Action, applies
from lakegate.restrictions.literals import ListType, NestedField, StructType, Type, comparable
from lakegate.restrictions.predicates import Comparison
from tests.support.docs_commands import ROOT

_PAGE = (ROOT / "docs" / "data-policies.md").read_text()
_AUDITOR = (ROOT / "docs" / "auditor.md").read_text()
_FIELD = NestedField(id=9, name="x", required=False, type="string")
_TYPES: dict[str, Type] = {
    **{
        name: name for name in ["boolean", "int", "long", "float", "double", "date", "time", "string", "uuid", "binary"]
    },
    **{name: name for name in ["timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "variant", "unknown"]},
    "decimal": "decimal(9,2)",
    "fixed": "fixed[4]",
    "geometry": "geometry",
    "geography": "geography",
    "struct": StructType(fields=(_FIELD,)),
    "list": ListType(element_id=9, element="string", element_required=False),
}


def _table(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the first table below a line that begins with `heading`."""
    lines = page[page.index(heading) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|---") or line.startswith("| ---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_table_of_operators_is_that_of_the_code() -> None:
    groups = (
        (Comparison.EQ, Comparison.NOT_EQ),
        (Comparison.LT, Comparison.LT_EQ, Comparison.GT, Comparison.GT_EQ),
        (Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH),
    )
    rows = _table(_PAGE, "#### Types and operators")
    assert {name for cells in rows for name in _code(cells[0])} == _TYPES.keys() | {"map"}
    for cells in rows:
        for name, (group, answer) in product(_code(cells[0]), zip(groups, cells[1:], strict=True)):
            if name in _TYPES:
                assert {comparable(each, _TYPES[name]) for each in group} == {answer.startswith("yes")}, (name, group)


def test_the_table_of_masks_is_that_of_the_code() -> None:
    rows = _table(_PAGE, "### Masks")
    assert [_code(cells[0]) for cells in rows] == [
        [action.value]
        for action in (
            Action.MASK_ALPHANUM,
            Action.SHOW_FIRST_4,
            Action.SHOW_LAST_4,
            Action.REPLACE_WITH_NULL,
            Action.MASK_TO_FIXED_VALUE,
            Action.TRUNCATE_TO_YEAR,
            Action.TRUNCATE_TO_MONTH,
            Action.SHA_256_GLOBAL,
            Action.SHA_256_QUERY_LOCAL,
        )
    ]
    for cells in rows:
        action, named = Action(_code(cells[0])[0]), set(_code(cells[1]))
        stamps = {name for name in _TYPES if name.startswith("timestamp")}
        shown = _TYPES.keys() - named if cells[1].startswith("all") else named
        shown |= stamps if "all timestamps" in cells[1] else set()
        required = set() if "only optional columns" in cells[1] else shown
        for possible, is_required in ((shown, False), (required, True)):
            found = {name for name, kind in _TYPES.items() if applies(action, kind, required=is_required)}
            assert found == possible, (action, is_required)


def test_types_that_contain_one_without_a_fixed_value_have_none() -> None:
    (cells,) = (cells for cells in _table(_PAGE, "### Masks") if _code(cells[0]) == ["mask-to-fixed-value"])
    assert "types that contain one of them" in cells[1]
    for name in _code(cells[1]):
        column = NestedField(id=9, name="x", required=False, type=_TYPES[name])
        within = ListType(element_id=10, element=StructType(fields=(_FIELD, column)), element_required=False)
        assert not applies(Action.MASK_TO_FIXED_VALUE, within, required=False), name


def test_the_fixed_values_are_those_of_the_code() -> None:
    text = _PAGE[_PAGE.index("Fixed values:") :].partition("\n\n")[0]
    names = ("boolean", "int", "double", "string", "date", "time", "timestamp")
    for name, stated in zip(names, _code(text), strict=False):
        value = stated.replace("1970-01-01T", "1970-01-01 ").removesuffix(".0").lower()
        sql = duckdb.mask_sql(Action.MASK_TO_FIXED_VALUE, "c", name, required=False).lower()
        assert sql.removeprefix("cast(").removeprefix("'").startswith(value), (name, stated, sql)


def test_the_table_of_merged_masks_is_that_of_the_code() -> None:
    rows = _table(_PAGE, "### Several policies")
    assert {name for cells in rows for name in _code(cells[0])} == set(Action)
    for cells in rows:
        [result] = map(Action, _code(cells[1]))
        named = [Action(name) for name in _code(cells[0])]
        if "any other" in cells[0]:
            excluded = {named[0], Action.REPLACE_WITH_NULL}
            pairs = [(named[0], each) for each in Action if each not in excluded]
        elif len(named) == 3:
            pairs = [(named[0], named[1]), (named[0], named[2])]
        elif len(named) == 1:
            pairs = [(named[0], Action.SHA_256_GLOBAL), (named[0], Action.TRUNCATE_TO_YEAR)]
        else:
            pairs = [(named[0], named[1])]
        assert {meet(*pair) for pair in pairs} == {result}, cells


@pytest.mark.parametrize(("column", "mask"), [(1, trino.mask_sql), (2, spark.mask_sql), (3, duckdb.mask_sql)])
def test_the_table_of_engines_is_that_of_their_compilers(column: int, mask: Callable[..., str]) -> None:
    rows = {tuple(_code(cells[0])): cells[column] for cells in _table(_PAGE, "### Engines") if cells[0]}
    for name in ("time", "timestamp_ns", "timestamptz_ns", "variant"):
        try:
            mask(Action.MASK_TO_FIXED_VALUE, "c", _TYPES[name], required=False)
            expressible = True
        except RestrictionNotExpressible:
            expressible = False
        assert (rows[(name,)] != "refused") is expressible, name


def test_the_auditor_finds_each_failure_outcome_and_reason_of_a_record() -> None:
    rows = {tuple(_code(cells[0])): cells[1] for cells in _table(_AUDITOR, "## Fields of a record")}
    assert set(_code(rows[("decisions[].failure",)])) == {each.value for each in Failure}
    assert set(_code(rows[("decisions[].outcome",)])) == {each.value for each in Outcome}
    refused = {tuple(_code(cells[0])): cells[1] for cells in _table(_AUDITOR, "## Refused logins")}
    assert set(_code(refused[("detail.reason",)])) == {each.value for each in Refusal}
