# SPDX-License-Identifier: Apache-2.0
"""The masks and row filters of `read-restrictions` in a real Spark, without a gateway: the protocol's vectors, nulls,
NaN, and independence from the time zone of the session and from ANSI mode.
"""

from __future__ import annotations

import hashlib
import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import Type
from lakegate.restrictions.predicates import And, Compare, Comparison, Constant, In, IsNan, IsNull, Not, Or, Predicate
from lakegate.spark.masks import fixed_value, masked, spark_type
from lakegate.spark.row_filters import row_filter

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SALT = bytes(range(16))
EMAIL = "prashant010696@gmail.com"
ALICE = "alice@example.com"


@pytest.fixture(params=[("UTC", "true"), ("America/Sao_Paulo", "false")], ids=["UTC ANSI", "Sao Paulo"])
def spark(root: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    session = root.newSession()
    zone, ansi = request.param
    session.conf.set("spark.sql.session.timeZone", zone)
    session.conf.set("spark.sql.ansi.enabled", ansi)
    return session


def through(spark: SparkSession, action: Action, kind: Type, values: list[Any], source: str | None = None) -> list[Any]:
    """Return the masked values. `source`: the SQL type of the values, which are then cast to that of `kind`."""
    frame = spark.createDataFrame([(value,) for value in values], f"v {source or spark_type(kind)}")
    column = f.col("v").cast(spark_type(kind))
    out = frame.select(masked(action, column, kind, salt=SALT).alias("m"))
    assert out.schema["m"].dataType.simpleString().replace("`", "") == spark_type(kind).replace("`", "")
    return [row["m"] for row in out.collect()]


@pytest.mark.parametrize(
    ("action", "kind", "value", "result"),
    [
        (Action.MASK_ALPHANUM, "string", EMAIL, "xxxxxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_FIRST_4, "string", EMAIL, "prasxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_LAST_4, "string", EMAIL, "xxxxxxxxnnnnnn@xxxxx.com"),
        (Action.MASK_ALPHANUM, "string", "+1 (555) 010-9999", "xnx(nnn)xnnn-nnnn"),
        (Action.SHOW_LAST_4, "string", "Łódź_7", "xxdź_7"),
        (Action.MASK_ALPHANUM, "string", "😀٣\n$1", "xxxxn"),
        (Action.SHOW_FIRST_4, "string", "😀abc", "😀abc"),
        (Action.SHOW_FIRST_4, "string", "😀abcd1", "😀abcxn"),
        (Action.SHOW_LAST_4, "string", "ab", "ab"),
        (Action.SHOW_LAST_4, "string", "", ""),
        (Action.SHOW_LAST_4, "string", "1abcd", "nabcd"),
        (
            Action.SHA_256_GLOBAL,
            "string",
            ALICE,
            "ff8d9819fc0e12bf0d24892e45987e249a28dce836a85cad60e28eaaa8c6d976",
        ),
        (Action.SHA_256_GLOBAL, "int", 42, -290282264),
        (Action.SHA_256_GLOBAL, "int", -1, 454268333),
        (Action.SHA_256_GLOBAL, "long", 42, -4111196313959201555),
        (
            Action.SHA_256_GLOBAL,
            "binary",
            bytearray(b"\x00\xff"),
            bytearray.fromhex("06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"),
        ),
        (
            Action.SHA_256_QUERY_LOCAL,
            "string",
            ALICE,
            "a665c52829b935765f945e38e973753a5c696f59f488d8ca90a67ed7da798d80",
        ),
    ],
)
def test_masks_give_the_values_of_the_protocol(
    spark: SparkSession, action: Action, kind: str, value: Any, result: Any
) -> None:
    assert through(spark, action, kind, [value, None]) == [result, None]


@pytest.mark.parametrize(("kind", "size"), [("int", 4), ("long", 8)])
def test_hashes_of_integers_are_those_of_their_little_endian_bytes(spark: SparkSession, kind: str, size: int) -> None:
    chosen = random.Random(7)
    limit = 2 ** (8 * size - 1)
    values = [0, -1, 1, limit - 1, -limit, *(chosen.randrange(-limit, limit) for _ in range(200))]

    def expected(data: bytes) -> int:
        return int.from_bytes(hashlib.sha256(data).digest()[:size], "little", signed=True)

    encoded = [value.to_bytes(size, "little", signed=True) for value in values]
    assert through(spark, Action.SHA_256_GLOBAL, kind, values) == [expected(each) for each in encoded]
    assert through(spark, Action.SHA_256_QUERY_LOCAL, kind, values) == [expected(SALT + each) for each in encoded]


@pytest.mark.parametrize(
    ("kind", "value", "year", "month"),
    [
        ("date", "2018-02-17", "2018-01-01", "2018-02-01"),
        ("date", "0001-12-31", "0001-01-01", "0001-12-01"),
        # There was no midnight on 4 November 2018 in São Paulo.
        ("timestamp", "2018-11-04 00:30:00.000001", "2018-01-01 00:00:00", "2018-11-01 00:00:00"),
        ("timestamp", "1969-12-31 23:59:59.999999", "1969-01-01 00:00:00", "1969-12-01 00:00:00"),
        ("timestamptz", "2019-01-01 00:30:00+00:00", "2019-01-01 00:00:00+00:00", "2019-01-01 00:00:00+00:00"),
        ("timestamptz", "2019-01-01 01:30:00+02:00", "2018-01-01 00:00:00+00:00", "2018-12-01 00:00:00+00:00"),
        ("timestamptz", "1969-12-31 23:59:59.999999+00:00", "1969-01-01 00:00:00+00:00", "1969-12-01 00:00:00+00:00"),
    ],
)
def test_dates_are_truncated_in_utc(spark: SparkSession, kind: str, value: str, year: str, month: str) -> None:
    for action, result in ((Action.TRUNCATE_TO_YEAR, year), (Action.TRUNCATE_TO_MONTH, month)):
        frame = spark.createDataFrame([(value,), (None,)], "v string")
        column = f.col("v").cast(spark_type(kind))
        out = frame.select(
            masked(action, column, kind, salt=SALT).eqNullSafe(f.lit(result).cast(spark_type(kind))).alias("equal"),
            masked(action, column, kind, salt=SALT).isNull().alias("null"),
        )
        assert [tuple(row) for row in out.collect()] == [(True, False), (False, True)]


NESTED: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 2, "name": "a.b", "type": "int", "required": True},
        {"id": 3, "name": "t", "type": "timestamp", "required": False},
        {
            **{"id": 4, "name": "l", "required": False},
            "type": {"type": "list", "element-id": 5, "element": "decimal(9,2)", "element-required": False},
        },
    ],
}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", False),
        ("int", 0),
        ("long", 0),
        ("float", 0.0),
        ("double", 0.0),
        ("decimal(20,3)", Decimal("0.000")),
        ("string", "XXXXXXXX"),
        ("date", date(1970, 1, 1)),
        ("timestamp", datetime(1970, 1, 1)),
        ("uuid", "00000000-0000-0000-0000-000000000000"),
        ("fixed[3]", bytearray(3)),
        ("binary", bytearray()),
        ({"type": "list", "element-id": 2, "element": "int", "element-required": False}, []),
        ({"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "long", "value-required": True}, {}),
        (NESTED, (0, datetime(1970, 1, 1), [])),
    ],
)
def test_fixed_values_have_the_type_of_the_column(spark: SparkSession, kind: Any, value: Any) -> None:
    parsed = msgspec.convert(kind, Type)
    out = spark.range(1).select(fixed_value(parsed).alias("m"))
    assert out.schema["m"].dataType.simpleString().replace("`", "") == spark_type(parsed).replace("`", "")
    assert out.collect()[0]["m"] == value


def test_fixed_values_of_instants_and_variants(spark: SparkSession) -> None:
    out = spark.range(1).select(f.unix_micros(fixed_value("timestamptz")), f.to_json(fixed_value("variant")))
    assert tuple(out.collect()[0]) == (0, "{}")


def test_null_replaces_values_of_nested_types(spark: SparkSession) -> None:
    parsed = msgspec.convert(NESTED, Type)
    out = spark.range(1).select(masked(Action.REPLACE_WITH_NULL, f.col("id"), parsed, salt=SALT).alias("m"))
    assert out.schema["m"].dataType.simpleString().replace("`", "") == spark_type(parsed).replace("`", "")
    assert out.collect()[0]["m"] is None


NAN = float("nan")
ROWS: list[tuple[Any, ...]] = [
    (number, text, double)
    for number in (None, -5, 0, 34)
    for text in (None, "", "a", "ab", "é", "😀")
    for double in (None, NAN, -0.0, 1.5, float("inf"))
]
TYPES = {1: "int", 2: "string", 3: "double"}


def holds(predicate: Predicate, row: tuple[Any, ...]) -> bool:
    """Evaluate a predicate by its definition: every test except `is-null` and `is-nan` is false for null and NaN."""
    match predicate:
        case Constant(value=value):
            return value
        case And(operands=operands):
            return all(holds(each, row) for each in operands)
        case Or(operands=operands):
            return any(holds(each, row) for each in operands)
        case Not(operand=operand):
            return not holds(operand, row)
        case IsNull(field_id=field_id):
            return row[field_id - 1] is None
        case IsNan(field_id=field_id):
            return row[field_id - 1] is not None and row[field_id - 1] != row[field_id - 1]
        case In(field_id=field_id, values=values, negated=negated):
            value = row[field_id - 1]
            return value is not None and value == value and (value in values) is not negated
        case Compare(operator=operator, field_id=field_id, value=other):
            value = row[field_id - 1]
            return value is not None and value == value and compared(operator, value, other)


def compared(operator: Comparison, value: Any, other: Any) -> bool:
    if isinstance(value, str):
        value, other = value.encode(), other.encode()
    results: dict[Comparison, bool] = {
        Comparison.EQ: value == other,
        Comparison.NOT_EQ: value != other,
        Comparison.LT: value < other,
        Comparison.LT_EQ: value <= other,
        Comparison.GT: value > other,
        Comparison.GT_EQ: value >= other,
    }
    if isinstance(value, bytes):
        results[Comparison.STARTS_WITH] = value.startswith(other)
        results[Comparison.NOT_STARTS_WITH] = not value.startswith(other)
    return results[operator]


def drawn(chosen: random.Random, depth: int) -> Predicate:
    """Return a random predicate over the columns of `ROWS`."""
    if depth == 0 or chosen.random() < 0.2:
        field = chosen.choice((1, 2, 3))
        values: dict[int, tuple[Any, ...]] = {1: (-5, 0, 33, 34), 2: ("", "a", "ab", "é", "z"), 3: (0.0, 1.5, -2.0)}
        some = tuple(chosen.sample(values[field], chosen.randrange(len(values[field]))))
        prefixes = (Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH)
        operators = [each for each in Comparison if field == 2 or each not in prefixes]
        compare = Compare(chosen.choice(operators), field, TYPES[field], chosen.choice(values[field]))
        leaves: list[Predicate] = [compare, compare, IsNull(field), Constant(chosen.random() < 0.5), IsNan(3)]
        leaves += [In(field, TYPES[field], some, negated=chosen.random() < 0.5)] * 2
        return chosen.choice(leaves)
    operands = tuple(drawn(chosen, depth - 1) for _ in range(chosen.randrange(4)))
    return chosen.choice((And(operands), Or(operands), Not(drawn(chosen, depth - 1))))


def test_random_row_filters_keep_the_rows_of_the_definition(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(at, *row) for at, row in enumerate(ROWS)], "at int, c1 int, c2 string, c3 double")
    columns = {number: f.col(f"c{number}") for number in TYPES}
    chosen = random.Random(19)
    predicates = [drawn(chosen, 3) for _ in range(150)]
    conditions = [
        f.coalesce(row_filter(each, columns), f.lit(False)).alias(f"p{at}") for at, each in enumerate(predicates)
    ]
    rows = frame.cache().select("at", *conditions).orderBy("at").collect()
    for at, predicate in enumerate(predicates):
        assert [row[f"p{at}"] for row in rows] == [holds(predicate, row) for row in ROWS], predicate


@pytest.mark.parametrize(
    ("kind", "literal", "kept"),
    [
        ("timestamptz", "2018-11-04T03:30:00.000000+00:00", ["2018-11-04 03:30:00+00:00"]),
        ("timestamp", "2018-11-04T00:30:00.000000", ["2018-11-04 00:30:00"]),
        ("date", "0001-01-01", ["0001-01-01"]),
        ("decimal(9,2)", "14.20", ["14.20"]),
        ("float", 0.1, ["0.1"]),
        ("long", 2**40, [str(2**40)]),
    ],
)
def test_literals_have_the_type_of_their_column(spark: SparkSession, kind: str, literal: Any, kept: list[str]) -> None:
    frame = spark.createDataFrame([(each,) for each in kept], "v string")
    column = f.col("v").cast(spark_type(kind))
    assert frame.where(row_filter(Compare(Comparison.EQ, 1, kind, literal), {1: column})).count() == 1
    assert frame.where(row_filter(In(1, kind, (literal,)), {1: column})).count() == 1
    assert frame.where(row_filter(Compare(Comparison.GT, 1, kind, literal), {1: column})).count() == 0


def test_binary_literals_are_hexadecimal(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(bytearray(b"\x00\xff"),), (bytearray(b"\x7f"),)], "v binary")
    kept = frame.where(row_filter(Compare(Comparison.GT, 1, "binary", "00FF"), {1: f.col("v")})).collect()
    assert [bytes(row["v"]) for row in kept] == [b"\x7f"]


def test_the_salt_changes_the_local_hash_only(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(ALICE,)], "v string")

    def hashes(action: Action, salt: bytes) -> Any:
        return frame.select(masked(action, f.col("v"), "string", salt=salt)).collect()[0][0]

    assert hashes(Action.SHA_256_QUERY_LOCAL, b"a" * 16) != hashes(Action.SHA_256_QUERY_LOCAL, b"b" * 16)
    assert hashes(Action.SHA_256_GLOBAL, b"a" * 16) == hashes(Action.SHA_256_GLOBAL, b"b" * 16)
