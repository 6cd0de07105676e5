# SPDX-License-Identifier: Apache-2.0
"""Random rows, predicates and masks, and the comparison of an engine with the reference interpreter.

A table has one column for each type, with names that need quotes. Many predicates are evaluated in one query. A seed
determines everything random.
"""

from __future__ import annotations

import math
import random
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakegate.restrictions.actions import Action, applies
from lakegate.restrictions.literals import comparable, literal
from lakegate.restrictions.predicates import And, Compare, Comparison, Constant, In, IsNan, IsNull, Not, Or, Predicate
from tests.support.policies.reference_policies import base, keeps, masked

COLUMNS: Mapping[int, tuple[str, str]] = {
    1: ("text", "string"),
    2: ("Upper Case", "int"),
    3: ('quo"te', "long"),
    4: ("dot.ted", "float"),
    5: ("back`tick", "double"),
    6: ("apo'strophe", "decimal(9,2)"),
    7: ("wide", "decimal(38,10)"),
    8: ("day", "date"),
    9: ("moment", "timestamp"),
    10: ("instant", "timestamptz"),
    11: ("flag", "boolean"),
    12: ("bytes", "binary"),
    13: ("four", "fixed[4]"),
    14: ("id", "uuid"),
    15: ("clock", "time"),
    16: ("nano", "timestamp_ns"),
    17: ("sélect", "string"),
}
"""The name and type of each column by field id."""

SALT = bytes(range(16))
DAY = 86_400 * 10**6
TEXTS = (
    "",
    "a",
    "A",
    "é",
    "zz",
    "abc",
    "abcd",
    "abcde",
    "a'b",
    'a"b',
    "a\\b",
    "a\nb",
    "\\n",
    "\\",
    "%",
    "a%",
    "_",
    "$1",
)
MORE_TEXTS = (
    "😀",
    "😀😀😀😀😀",
    "\uffff",
    "\U00010000",
    "+1 (555) 010-9999",
    "٣٤",
    "e\u0301",
    "x,y@z.de",
    "a\r\n",
    "${x}",
)
ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "time": pa.time64("us"),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "fixed": pa.binary(),
    "uuid": pa.string(),
}


def random_value(rnd: random.Random, kind: str) -> Any:
    """Return a value of the type in the form of the reference interpreter. Limits and special values are frequent."""
    match base(kind):
        case "string":
            parts = [rnd.choice(TEXTS + MORE_TEXTS) for _ in range(rnd.randint(1, 2))]
            return "".join(parts)
        case "int":
            return rnd.choice((0, 1, -1, 2**31 - 1, -(2**31), rnd.randint(-5, 5), rnd.randint(-(2**31), 2**31 - 1)))
        case "long":
            return rnd.choice((0, 1, -1, 2**63 - 1, -(2**63), rnd.randint(-5, 5), rnd.randint(-(2**63), 2**63 - 1)))
        case "float" | "double":
            return _random_float(rnd, kind)
        case "decimal":
            digits, scale = (9, 2) if kind == "decimal(9,2)" else (38, 10)
            limit = 10**digits - 1
            unscaled = rnd.choice((0, 1, -1, 100, limit, -limit, rnd.randint(-500, 500), rnd.randint(-limit, limit)))
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
        case "date":
            return rnd.choice((0, -1, 1, -719_162, 2_932_896, rnd.randint(-40_000, 40_000)))
        case "timestamp" | "timestamptz":
            return rnd.choice((0, -1, 1, DAY - 1, -DAY, -719_162 * DAY, rnd.randint(-(10**16), 10**16)))
        case "timestamp_ns":
            return rnd.choice((0, -1, 1, 999, -1000, -1001, rnd.randint(-(9 * 10**18), 9 * 10**18)))
        case "time":
            return rnd.choice((0, DAY - 1, 1, rnd.randint(0, DAY - 1)))
        case "boolean":
            return rnd.random() < 0.5
        case _:
            return _random_bytes(rnd, kind)


def _random_bytes(rnd: random.Random, kind: str) -> Any:
    if kind == "uuid":
        return str(uuid.UUID(int=rnd.choice((0, 1, 2**128 - 1, 2**127, rnd.getrandbits(128)))))
    length = rnd.randint(0, 3) if kind == "binary" else 4
    return bytes(rnd.choice((0, 1, 39, 128, 255)) for _ in range(length))


def _random_float(rnd: random.Random, kind: str) -> float:
    limit = 3.0e38 if kind == "float" else 1.7e308
    value = rnd.choice(
        (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -1.5, 1e-30, limit, -limit, rnd.uniform(-10, 10))
    )
    return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else value


def written(value: Any, kind: str) -> Any:
    """Return a value as a literal of a policy author (single-value JSON form)."""
    match base(kind):
        case "decimal":
            return f"{value:f}"
        case "date":
            return str(_scalar(value, kind).cast(pa.string()))
        case "binary" | "fixed":
            return value.hex()
        case "time":
            return str(_scalar(value, kind).cast(pa.string()))
        case "timestamp" | "timestamptz" | "timestamp_ns":
            plain = pa.timestamp("ns" if base(kind) == "timestamp_ns" else "us")
            text = pa.scalar(value, pa.int64()).cast(plain).cast(pa.string()).as_py().replace(" ", "T")
            return text + ("+00:00" if base(kind) == "timestamptz" else "")
        case _:
            return value


def _scalar(value: int, kind: str) -> Any:
    integer = pa.int32() if base(kind) == "date" else pa.int64()
    return pa.scalar(value, integer).cast(ARROW[base(kind)])


def random_predicate(rnd: random.Random, field_ids: Sequence[int], depth: int = 3) -> Predicate:
    """Return a predicate over these columns, with at most `depth` levels of `and`, `or` and `not`."""
    choice = rnd.randint(0, 9 if depth else 4)
    if choice >= 5:
        operands = tuple(random_predicate(rnd, field_ids, depth - 1) for _ in range(rnd.randint(1, 3)))
        return Not(operands[0]) if choice <= 6 else And(operands) if choice <= 8 else Or(operands)
    field_id = rnd.choice(field_ids)
    kind = COLUMNS[field_id][1]
    if choice == 0:
        return Constant(rnd.random() < 0.5) if rnd.random() < 0.2 else IsNull(field_id)
    if choice == 1 and base(kind) in ("float", "double"):
        return IsNan(field_id)
    if choice <= 2:
        values = tuple(dict.fromkeys(_random_literal(rnd, kind) for _ in range(rnd.randint(0, 3))))
        return In(field_id, kind, values, rnd.random() < 0.5)
    operator = rnd.choice([each for each in Comparison if comparable(each, kind)])
    return Compare(operator, field_id, kind, _random_literal(rnd, kind))


def _random_literal(rnd: random.Random, kind: str) -> Any:
    value = random_value(rnd, kind)
    while isinstance(value, float) and not math.isfinite(value):
        value = random_value(rnd, kind)
    return literal(written(value, kind), kind)


def random_rows(rnd: random.Random, field_ids: Sequence[int], count: int) -> list[dict[int, Any]]:
    """Return rows; a fifth of the values is null."""
    return [
        {id: None if rnd.random() < 0.2 else random_value(rnd, COLUMNS[id][1]) for id in field_ids}
        for _ in range(count)
    ]


def arrow_of(rows: Sequence[Mapping[int, Any]], field_ids: Sequence[int]) -> pa.Table:
    """Return the rows as an arrow table."""
    arrays = {}
    for id in field_ids:
        name, kind = COLUMNS[id]
        values = [row[id] for row in rows]
        if base(kind) == "decimal":
            precision, scale = (9, 2) if kind == "decimal(9,2)" else (38, 10)
            arrays[name] = pa.array(values, pa.decimal128(precision, scale))
        elif base(kind) in ("date", "time", "timestamp", "timestamptz", "timestamp_ns"):
            arrays[name] = pa.array(values, pa.int32() if kind == "date" else pa.int64()).cast(ARROW[base(kind)])
        else:
            arrays[name] = pa.array(values, ARROW[base(kind)])
    return pa.table(arrays)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of an arrow column in the form of the reference interpreter."""
    if pa.types.is_date32(column.type):
        return [each for each in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_temporal(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if column.type == pa.binary(16):
        return [None if each is None else str(uuid.UUID(bytes=each)) for each in column.to_pylist()]
    return [str(each) if isinstance(each, uuid.UUID) else each for each in column.to_pylist()]


@dataclass(frozen=True)
class Engine:
    """An engine under test.

    `select` returns the results of expressions over a table, in arrow columns. `row_filter` and `mask` compile.
    """

    name: str
    field_ids: tuple[int, ...]
    select: Callable[[pa.Table, Sequence[str]], pa.Table]
    row_filter: Callable[[Predicate, Mapping[int, str]], str]
    mask: Callable[[Action, str, str], str]


def compare_predicates(engine: Engine, rnd: random.Random, *, rows: int, predicates: int) -> int:
    """Compare random predicates on random rows. Returns the number of predicates. Raises AssertionError."""
    some = random_rows(rnd, engine.field_ids, rows)
    names = {id: name for id, (name, _) in COLUMNS.items()}
    tested = [random_predicate(rnd, engine.field_ids) for _ in range(predicates)]
    texts = [engine.row_filter(each, names) for each in tested]
    found = engine.select(arrow_of(some, engine.field_ids), texts)
    for number, (predicate, text) in enumerate(zip(tested, texts, strict=True)):
        expected = [keeps(predicate, row) for row in some]
        got = found.column(number).to_pylist()
        if got != expected:
            wrong = [(row, result) for row, result, right in zip(some, got, expected, strict=True) if result != right]
            raise AssertionError(f"{engine.name}: {predicate} as {text}: wrong for {wrong[0]}")
    return predicates


def compare_masks(engine: Engine, rnd: random.Random, *, rows: int) -> int:
    """Compare every mask that applies to a column, on random rows. Returns their number. Raises AssertionError."""
    some = random_rows(rnd, engine.field_ids, rows)
    masks = [
        (id, action) for id in engine.field_ids for action in Action if applies(action, COLUMNS[id][1], required=False)
    ]
    texts = [engine.mask(action, *COLUMNS[id]) for id, action in masks]
    found = engine.select(arrow_of(some, engine.field_ids), texts)
    for number, (id, action) in enumerate(masks):
        kind = COLUMNS[id][1]
        expected = [masked(action, kind, row[id], SALT) for row in some]
        got = values_of(found.column(number))
        if action is not Action.REPLACE_WITH_NULL and got != expected:
            wrong = [each for each in zip(some, got, expected, strict=True) if each[1] != each[2]]
            raise AssertionError(f"{engine.name}: {action} of {kind}: wrong for {wrong[0][0][id]!r}: {wrong[0][1:]}")
        assert got == expected
    return len(masks)
