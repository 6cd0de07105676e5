# SPDX-License-Identifier: Apache-2.0
"""Compiled filters and masks of Trino, run on a real Trino against the reference interpreter."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from gateway.obligations.compilers.trino import mask_sql, row_filter_sql
from gateway.obligations.masks import Action, applies
from tests.e2e.test_trino import pytestmark
from tests.e2e.trino_lake import Lake
from tests.policy_agreement import COLUMNS, Engine, compare_predicates, random_rows, values_of
from tests.reference_policies import base, masked

__all__ = ["pytestmark"]

#: Trino's Iceberg connector has no nanoseconds. Its names are in lower case, and this test does not need others.
FIELD_IDS = tuple(id for id, (_, kind) in COLUMNS.items() if kind != "timestamp_ns")
TYPES = {
    "string": "varchar",
    "int": "integer",
    "long": "bigint",
    "float": "real",
    "timestamp": "timestamp(6)",
    "timestamptz": "timestamp(6) with time zone",
    "time": "time(6)",
    "binary": "varbinary",
    "fixed": "varbinary",
}


def _literal(value: Any, kind: str) -> str:
    """Return the value as an expression of Trino with the type of the column."""
    name = base(kind)
    sql_type = TYPES.get(name, kind)
    if value is None:
        return f"cast(null as {sql_type})"
    if name in ("string", "uuid"):
        quoted = str(value).replace("'", "''")
        return f"cast('{quoted}' as {sql_type})"
    if name in ("binary", "fixed"):
        return f"X'{value.hex()}'"
    if name in ("float", "double"):
        text = {"nan": "nan()", "inf": "infinity()", "-inf": "-infinity()"}.get(str(value), f"double '{value!r}'")
        return f"cast({text} as {sql_type})"
    if name == "date":
        return f"date_add('day', {value}, date '1970-01-01')"
    if name == "time":
        return f"cast('{pa.scalar(value, pa.time64('us')).cast(pa.string())}' as time(6))"
    if name in ("timestamp", "timestamptz"):
        text = f"timestamp '{pa.scalar(value, pa.int64()).cast(pa.timestamp('us')).cast(pa.string())}'"
        return f"with_timezone({text}, 'UTC')" if name == "timestamptz" else text
    text = f"{value:f}" if name == "decimal" else value
    return f"cast('{text}' as {sql_type})"


def _rows(rows: Sequence[dict[int, Any]]) -> str:
    """Return the rows as a relation with the columns of the test, and their order in `n`."""
    lines = [
        f"({number}, {', '.join(_literal(row[id], COLUMNS[id][1]) for id in FIELD_IDS)})"
        for number, row in enumerate(rows)
    ]
    names = ", ".join('"{}"'.format(COLUMNS[id][0].lower().replace('"', '""')) for id in FIELD_IDS)
    return f"(values {', '.join(lines)}) t (n, {names})"


def _select(lake: Lake, rows: Sequence[dict[int, Any]], expressions: Sequence[str]) -> list[list[Any]]:
    columns = ", ".join(f"{each} as c{number}" for number, each in enumerate(expressions))
    found = lake.trino.run(lake.owner, f"select n, {columns} from {_rows(rows)} order by n")
    return [row[1:] for row in found]


def _engine(lake: Lake, rows_of: Callable[[pa.Table], list[dict[int, Any]]]) -> Engine:
    def select(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
        found = _select(lake, rows_of(table), expressions)
        return pa.table({f"c{number}": [row[number] for row in found] for number in range(len(expressions))})

    def mask(action: Action, name: str, kind: str) -> str:
        return mask_sql(action, name, kind, required=False)

    return Engine("Trino", FIELD_IDS, select, row_filter_sql, mask)


def _rows_of(table: pa.Table) -> list[dict[int, Any]]:
    columns = {id: values_of(table.column(COLUMNS[id][0])) for id in FIELD_IDS}
    return [{id: columns[id][number] for id in FIELD_IDS} for number in range(table.num_rows)]


@pytest.mark.parametrize("seed", range(3))
def test_random_row_filters_agree_with_the_reference_interpreter(lake: Lake, seed: int) -> None:
    engine = _engine(lake, _rows_of)
    assert compare_predicates(engine, random.Random(f"trino {seed}"), rows=12, predicates=30) == 30


@pytest.mark.parametrize("seed", range(2))
def test_masks_agree_with_the_reference_interpreter_and_keep_the_type(lake: Lake, seed: int) -> None:
    """A mask of another type than the column fails every query. Values are compared by Trino, as it writes them."""
    rows = random_rows(random.Random(f"masks {seed}"), FIELD_IDS, 12)
    masks = [
        (id, action)
        for id in FIELD_IDS
        for action in Action
        if applies(action, COLUMNS[id][1], required=False) and action is not Action.SHA_256_QUERY_LOCAL
    ]
    texts = [mask_sql(action, COLUMNS[id][0], COLUMNS[id][1], required=False) for id, action in masks]
    types = [f"typeof({text})" for text in texts]
    expected_types = [TYPES.get(base(COLUMNS[id][1]), COLUMNS[id][1]) for id, _ in masks]
    # Trino converts a mask with a text of limited length to the type of the column.
    (found,) = _select(lake, rows[:1], types)
    assert [re.sub(r"varchar\(\d+\)", "varchar", each) for each in found] == expected_types
    wrong = []
    for (id, action), text in zip(masks, texts, strict=True):
        kind = COLUMNS[id][1]
        right = [_literal(masked(action, kind, row[id], b""), kind) for row in rows]
        chosen = " ".join(f"when {number} then {value}" for number, value in enumerate(right))
        same = f"({text}) is not distinct from (case n {chosen} end)"
        results = [cell for (cell,) in _select(lake, rows, [same])]
        wrong += [(action, kind, row[id]) for row, result in zip(rows, results, strict=True) if result is not True]
    assert not wrong
