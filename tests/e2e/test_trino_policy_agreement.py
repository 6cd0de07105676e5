# SPDX-License-Identifier: Apache-2.0
"""Compiled filters and masks of Trino, run on a real Trino against the reference interpreter.

Opt-in by `make test-trino`, which sets LAKEGATE_TEST_TRINO: see `tests/support/engines/trino.py`.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
import pyarrow as pa
import pytest

from gateway.obligations.compilers.trino import mask_sql, row_filter_sql
from lakegate.restrictions.actions import Action, applies
from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type
from tests.support.engines.random_policies import EVOLVING, NESTED, hidden
from tests.support.engines.trino import launched
from tests.support.policies.policy_agreement import COLUMNS, SALT, random_predicate, random_rows, written
from tests.support.policies.reference_policies import base, keeps, masked

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_TRINO"), reason="needs Trino: run `make test-trino`"),
]

FIELDS = tuple(id for id, (_, kind) in COLUMNS.items() if kind != "timestamp_ns")
TYPES = {
    "string": "varchar",
    "int": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp(6)",
    "timestamptz": "timestamp(6) with time zone",
    "boolean": "boolean",
    "binary": "varbinary",
    "fixed": "varbinary",
    "uuid": "uuid",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Trino without catalogs; queries read values of their own text."""
    with launched(tmp_path_factory.mktemp("trino"), {}) as trino:
        yield trino.url


def answer(url: str, sql: str) -> list[list[Any]]:
    """Run a statement and return its rows. The time zone of the session is not UTC."""
    rows: list[list[Any]] = []
    headers = {"X-Trino-User": "tester", "X-Trino-Time-Zone": "America/St_Johns"}
    with httpx.Client(trust_env=False, timeout=120, headers=headers) as http:
        body = http.post(f"{url}/v1/statement", content=sql.encode()).raise_for_status().json()
        while True:
            assert "error" not in body, body["error"]["message"]
            rows += body.get("data") or []
            if "nextUri" not in body:
                return rows
            body = http.get(body["nextUri"]).raise_for_status().json()


def type_of(kind: str) -> str:
    """Return the type of Trino for an Iceberg type."""
    return kind if base(kind) == "decimal" else TYPES[base(kind)]


def constant(value: Any, kind: str) -> str:
    """Return a value of the reference interpreter as SQL text."""
    if value is None:
        return f"CAST(NULL AS {type_of(kind)})"
    match base(kind):
        case "string":
            return f"from_utf8(X'{value.encode().hex()}')"
        case "binary" | "fixed":
            return f"X'{value.hex()}'"
        case "float" | "double":
            special = {math.inf: "infinity()", -math.inf: "-infinity()"}.get(value, f"DOUBLE '{value!r}'")
            return f"CAST({'nan()' if math.isnan(value) else special} AS {type_of(kind)})"
        case "timestamp" | "timestamptz":
            text = written(value, kind).replace("T", " ").replace("+00:00", " UTC")
            return f"CAST('{text}' AS {type_of(kind)})"
        case "boolean" | "int" | "long":
            return f"CAST('{str(value).lower()}' AS {type_of(kind)})"
        case _:
            return f"CAST('{written(value, kind)}' AS {type_of(kind)})"


def nested_type(kind: pa.DataType) -> Type:
    """Return the Iceberg type of an arrow type whose leaves are texts."""
    if pa.types.is_map(kind):
        return MapType(key_id=0, key="string", value_id=0, value=nested_type(kind.item_type), value_required=False)
    if pa.types.is_list(kind):
        return ListType(element_id=0, element=nested_type(kind.value_type), element_required=False)
    if pa.types.is_struct(kind):
        fields = (NestedField(id=0, name=each.name, required=False, type=nested_type(each.type)) for each in kind)
        return StructType(fields=tuple(fields))
    return "string"


def nested_text(kind: pa.DataType) -> str:
    """Return the type of Trino for an arrow type whose leaves are texts."""
    if pa.types.is_map(kind):
        return f"map(varchar, {nested_text(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"array({nested_text(kind.value_type)})"
    if pa.types.is_struct(kind):
        return f"row({', '.join(f'{each.name} {nested_text(each.type)}' for each in kind)})"
    return "varchar"


def nested_constant(value: Any, kind: pa.DataType) -> str:
    """Return a nested value of the reference interpreter as SQL text."""
    if value is None:
        text = "NULL"
    elif pa.types.is_map(kind):
        keys = ", ".join(constant(key, "string") for key, _ in value)
        text = f"MAP(ARRAY[{keys}], ARRAY[{', '.join(nested_constant(each, kind.item_type) for _, each in value)}])"
    elif pa.types.is_list(kind):
        text = f"ARRAY[{', '.join(nested_constant(each, kind.value_type) for each in value)}]"
    elif pa.types.is_struct(kind):
        text = f"ROW({', '.join(nested_constant(value[each.name], each.type) for each in kind)})"
    else:
        text = constant(value, "string")
    return f"CAST({text} AS {nested_text(kind)})"


def selected(url: str, rows: Sequence[Mapping[int, Any]], expressions: Sequence[str]) -> list[list[Any]]:
    """Return the results of expressions for each row, in the order of the rows."""
    cells = [[constant(row[id], COLUMNS[id][1]) for id in FIELDS] for row in rows]
    return evaluated(url, [COLUMNS[id][0] for id in FIELDS], cells, expressions)


def evaluated(
    url: str, names: Sequence[str], rows: Sequence[Sequence[str]], expressions: Sequence[str]
) -> list[list[Any]]:
    """Return the results of expressions for rows of SQL constants."""
    values = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(rows))
    columns = ", ".join(map(quoted, names))
    text = f'SELECT {", ".join(expressions)}, "row" FROM (VALUES {values}) AS given("row", {columns})'
    return [row[:-1] for row in sorted(answer(url, text), key=lambda each: each[-1])]


def quoted(name: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + name.lower().replace('"', '""') + '"'


@pytest.mark.parametrize("seed", range(6))
def test_random_predicates_agree_with_the_reference_interpreter(url: str, seed: int) -> None:
    rnd = random.Random(seed)
    rows = random_rows(rnd, FIELDS, 25)
    names = {id: name for id, (name, _) in COLUMNS.items()}
    predicates = [random_predicate(rnd, FIELDS) for _ in range(60)]
    found = selected(url, rows, [row_filter_sql(each, names) for each in predicates])
    for number, predicate in enumerate(predicates):
        got = [row[number] for row in found]
        assert got == [keeps(predicate, row) for row in rows], f"{predicate}: {row_filter_sql(predicate, names)}"


@pytest.mark.parametrize("seed", range(3))
def test_masks_agree_with_the_reference_interpreter_and_keep_the_type(url: str, seed: int) -> None:
    rnd = random.Random(seed)
    rows = random_rows(rnd, FIELDS, 25)
    masks = [
        (id, action)
        for id in FIELDS
        for action in Action
        if action is not Action.SHA_256_QUERY_LOCAL and applies(action, COLUMNS[id][1], required=False)
    ]
    expressions = []
    for id, action in masks:
        name, kind = COLUMNS[id]
        text = mask_sql(action, name, kind, required=False)
        column = quoted(name)
        wanted = (constant(masked(action, kind, row[id], SALT), kind) for row in rows)
        results = " ".join(f"WHEN {number} THEN {each}" for number, each in enumerate(wanted))
        equal = f'{text} IS NOT DISTINCT FROM CASE "row" {results} END'
        expressions.append(f"{equal} AND typeof({text}) = typeof({column})")
    found = selected(url, rows, expressions)
    for number, (id, action) in enumerate(masks):
        wrong = [row[id] for row, result in zip(rows, found, strict=True) if result[number] is not True]
        assert wrong == [], f"{action} of {COLUMNS[id]}: {expressions[number]}"


@pytest.mark.parametrize("seed", range(4))
def test_nested_and_required_columns_agree_with_the_reference_interpreter(url: str, seed: int) -> None:
    rnd = random.Random(seed)
    rows = EVOLVING.random_rows(rnd, 25)
    names = {id: f'Nested "{id}' if id in NESTED else COLUMNS[id][0] for id in EVOLVING.fields}
    cells = [
        [
            nested_constant(row[id], NESTED[id].kind) if id in NESTED else constant(row[id], COLUMNS[id][1])
            for id in names
        ]
        for row in rows
    ]
    tests = [EVOLVING.random_test(rnd) for _ in range(60)]
    masks = [(id, action) for id in names for action in Action if EVOLVING.applies(action, id)]
    texts = [row_filter_sql(each, names) for each in tests]
    for id, action in masks:
        kind = nested_type(NESTED[id].kind) if id in NESTED else COLUMNS[id][1]
        text = mask_sql(action, names[id], kind, required=id in EVOLVING.required)
        results = " ".join(f"WHEN {number} THEN {_shown(action, id, row[id])}" for number, row in enumerate(rows))
        equal = f'{text} IS NOT DISTINCT FROM CASE "row" {results} END'
        texts.append(f"{equal} AND typeof({text}) = typeof({quoted(names[id])})")
    found = evaluated(url, list(names.values()), cells, texts)
    for number, test in enumerate(tests):
        assert [row[number] for row in found] == [keeps(test, row) for row in rows], f"{test}: {texts[number]}"
    for number, (id, action) in enumerate(masks, len(tests)):
        assert [row[number] for row in found] == [True] * len(rows), f"{action} of {names[id]}: {texts[number]}"


def _shown(action: Action, id: int, value: Any) -> str:
    """Return the masked value as SQL text. Trino has no salt: a local hash is null, or fixed in a required column."""
    if action is Action.SHA_256_QUERY_LOCAL:
        action = Action.MASK_TO_FIXED_VALUE if id in EVOLVING.required else Action.REPLACE_WITH_NULL
    shown = hidden(action, id, value)
    return nested_constant(shown, NESTED[id].kind) if id in NESTED else constant(shown, COLUMNS[id][1])


def test_mask_of_every_fixed_value_has_the_type_of_the_column(url: str) -> None:
    """A mask of another type makes Trino fail every query of the table."""
    columns = [(name.lower().replace('"', '""'), kind) for name, kind in (COLUMNS[id] for id in FIELDS)]
    texts = [
        f"typeof({mask_sql(action, name, kind, required=False)}), typeof(CAST(NULL AS {type_of(kind)}))"
        for name, kind in columns
        for action in (Action.MASK_TO_FIXED_VALUE, Action.REPLACE_WITH_NULL)
    ]
    (row,) = answer(url, f"SELECT {', '.join(texts)}")
    assert row[::2] == row[1::2]
