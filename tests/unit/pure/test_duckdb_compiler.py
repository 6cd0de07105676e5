# SPDX-License-Identifier: Apache-2.0
"""Compiled filters, masks and views of DuckDB, run on a real DuckDB against the reference interpreter."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.obligations.compilers.duckdb import DIALECT, mask_sql, row_filter_sql
from gateway.obligations.compilers.sql import view_text
from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type
from lakegate.restrictions.predicates import ALWAYS, NEVER, Compare, Comparison, In, IsNull, Or, Predicate
from tests.support.policies.policy_agreement import Engine, compare_masks, compare_predicates
from tests.support.policies.policy_engines import duckdb_engine

MAIL = "prashant010696@gmail.com"
ALICE = "alice@example.com"
#: The test vectors of the protocol: action, type, value in SQL, result.
VECTORS: list[tuple[Action, str, str, Any]] = [
    (Action.MASK_ALPHANUM, "string", f"'{MAIL}'", "xxxxxxxxnnnnnn@xxxxx.xxx"),
    (Action.SHOW_FIRST_4, "string", f"'{MAIL}'", "prasxxxxnnnnnn@xxxxx.xxx"),
    (Action.SHOW_LAST_4, "string", f"'{MAIL}'", "xxxxxxxxnnnnnn@xxxxx.com"),
    (Action.MASK_ALPHANUM, "string", "'+1 (555) 010-9999'", "xnx(nnn)xnnn-nnnn"),
    (Action.SHOW_LAST_4, "string", "'Łódź_7'", "xxdź_7"),
    (Action.SHOW_FIRST_4, "string", "'7€'", "7€"),
    (
        Action.SHA_256_GLOBAL, "string", f"'{ALICE}'",
        "ff8d9819fc0e12bf0d24892e45987e249a28dce836a85cad60e28eaaa8c6d976",
    ),
    (Action.SHA_256_GLOBAL, "int", "42::INTEGER", -290282264),
    (Action.SHA_256_GLOBAL, "int", "(-1)::INTEGER", 454268333),
    (Action.SHA_256_GLOBAL, "long", "42::BIGINT", -4111196313959201555),
    (
        Action.SHA_256_GLOBAL, "binary", "unhex('00ff')",
        bytes.fromhex("06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"),
    ),
    (
        Action.SHA_256_QUERY_LOCAL, "string", f"'{ALICE}'",
        "a665c52829b935765f945e38e973753a5c696f59f488d8ca90a67ed7da798d80",
    ),
]  # fmt: skip


def selected(expression: str, source: str) -> Any:
    """Return the single value of an expression over one row."""
    row = duckdb.connect().execute(f"SELECT {expression} FROM ({source})").fetchone()
    assert row is not None
    return row[0]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return duckdb_engine()


@pytest.mark.parametrize(("action", "kind", "value", "result"), VECTORS)
def test_masks_give_the_test_vectors_of_the_protocol(action: Action, kind: str, value: str, result: Any) -> None:
    text = mask_sql(action, "v", kind, required=False, salt=bytes(range(16)))
    assert selected(text, f"SELECT {value} AS v") == result


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_predicates_agree_with_the_reference_interpreter(engine: Engine, seed: int) -> None:
    assert compare_predicates(engine, random.Random(seed), rows=20, predicates=20) == 20


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_masks_agree_with_the_reference_interpreter(engine: Engine, seed: int) -> None:
    assert compare_masks(engine, random.Random(seed), rows=20) > 50


def field(id: int, name: str, kind: Type, *, required: bool = True) -> NestedField:
    """Return a column or a field of a struct."""
    return NestedField(id=id, name=name, type=kind, required=required)


STRUCT = StructType(
    fields=(
        field(2, 'q"uote', "string"),
        field(3, "inner", StructType(fields=(field(4, "n", "int"),)), required=False),
        field(5, "l", ListType(element_id=6, element="date", element_required=True)),
    )
)


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        (STRUCT, {'q"uote': "XXXXXXXX", "inner": {"n": 0}, "l": []}),
        (ListType(element_id=8, element="long", element_required=False), []),
        (MapType(key_id=7, key="string", value_id=8, value="long", value_required=False), {}),
        ("fixed[3]", b"\0\0\0"),
    ],
)
def test_fixed_values_of_nested_types_are_filled_recursively(kind: Type, result: Any) -> None:
    assert selected(mask_sql(Action.MASK_TO_FIXED_VALUE, "v", kind, required=True), "SELECT 1 AS v") == result


def test_view_filters_on_original_values_and_then_masks() -> None:
    fields = (
        field(1, "region", "string", required=False),
        field(2, 'e"mail', "string", required=False),
        field(3, "n", "int"),
    )
    row_filter = Or((Compare(Comparison.EQ, 1, "string", "EU"), IsNull(1)))
    masks = (Projection(1, Action.REPLACE_WITH_NULL), Projection(2, Action.MASK_ALPHANUM))
    connection = duckdb.connect()
    people = pa.table(
        {"region": ["EU", "US", None], 'e"mail': ["a@b1", "c", "d"], "n": pa.array([1, 2, 3], pa.int32())}
    )
    connection.register("people", people)
    text = view_text(fields, row_filter, masks, "people", DIALECT)
    found = connection.execute(text).to_arrow_table()
    assert found.column_names == ["region", 'e"mail', "n"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [(None, "x@xn", 1), (None, "x", 3)]
    assert connection.execute(view_text(fields, NEVER, (), "people", DIALECT)).fetchall() == []
    assert len(connection.execute(view_text(fields, ALWAYS, (), "people", DIALECT)).fetchall()) == 3


def test_view_has_no_hashes_of_one_query_and_refuses_masks_of_other_columns() -> None:
    fields = (field(1, "a", "string", required=False), field(2, "b", "string"))
    local = (Projection(1, Action.SHA_256_QUERY_LOCAL), Projection(2, Action.SHA_256_QUERY_LOCAL))
    text = view_text(fields, ALWAYS, local, "(SELECT 'x' AS a, 'y' AS b)", DIALECT)
    assert duckdb.connect().execute(text).fetchall() == [(None, "XXXXXXXX")]
    with pytest.raises(RestrictionNotExpressible):
        view_text(fields, ALWAYS, (Projection(3, Action.MASK_ALPHANUM),), "t", DIALECT)


@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        (IsNull(2), {1: "a"}),
        (IsNull(1), {1: "a\0"}),
        (Compare(Comparison.EQ, 1, "string", "a\0"), {1: "a"}),
        (In(1, "timestamptz_ns", ("2020-01-01T00:00:00.000000000+00:00",)), {1: "a"}),
    ],
)
def test_predicate_that_cannot_be_expressed_is_refused(predicate: Predicate, names: dict[int, str]) -> None:
    with pytest.raises(RestrictionNotExpressible):
        row_filter_sql(predicate, names)


@pytest.mark.parametrize(
    ("action", "kind", "required"),
    [
        (Action.REPLACE_WITH_NULL, "int", True),
        (Action.MASK_ALPHANUM, "int", False),
        (Action.MASK_TO_FIXED_VALUE, "geometry", False),
        (Action.SHA_256_QUERY_LOCAL, "string", False),
        (Action.MASK_TO_FIXED_VALUE, "fixed[999999999]", False),
    ],
)
def test_mask_that_cannot_be_expressed_is_refused(action: Action, kind: str, required: bool) -> None:
    with pytest.raises(RestrictionNotExpressible):
        mask_sql(action, "v", kind, required=required)


def test_long_disjunctions_and_lists_are_accepted_by_the_parser() -> None:
    """A flat chain of a thousand operands would exceed the depth of the parser of some engines."""
    parts = Or(tuple(Compare(Comparison.EQ, 1, "int", number) for number in range(1000)))
    text = row_filter_sql(
        Or((parts, In(2, "double", tuple(float(number) for number in range(1000))))), {1: "a", 2: "b"}
    )
    assert selected(text, "SELECT 999 AS a, 1.5::DOUBLE AS b") is True
    assert selected(text, "SELECT 1000 AS a, NULL::DOUBLE AS b") is False
