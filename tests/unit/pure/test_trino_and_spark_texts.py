# SPDX-License-Identifier: Apache-2.0
"""The compiled texts of Trino and Spark: quotes, types, and what each engine cannot express."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.obligations.compilers import spark, trino
from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type
from lakegate.restrictions.predicates import And, Compare, Comparison, In, IsNan, IsNull, Not, Or, Predicate

NAMES = {1: 'A"b`.c', 2: "n"}


def equal(kind: str, value: Any) -> Compare:
    """Return a test of column 2 for equality."""
    return Compare(Comparison.EQ, 2, kind, value)


@pytest.mark.parametrize(
    ("predicate", "of_trino", "of_spark"),
    [
        (IsNull(1), '("a""b`.c" IS NULL)', '(`A"b``.c` IS NULL)'),
        (Not(IsNan(2)), '(NOT ("n" IS NOT NULL AND is_nan("n")))', "(NOT (`n` IS NOT NULL AND isnan(`n`)))"),
        (
            equal("string", "it's\\n"),
            """("n" IS NOT NULL AND "n" = 'it''s\\n')""",
            "(`n` IS NOT NULL AND `n` = CAST(X'697427735C6E' AS STRING))",
        ),
        (
            equal("string", "${x}"),
            """("n" IS NOT NULL AND "n" = '${x}')""",
            "(`n` IS NOT NULL AND `n` = CAST(X'247B787D' AS STRING))",
        ),
        (
            Compare(Comparison.NOT_STARTS_WITH, 2, "string", "a_"),
            """("n" IS NOT NULL AND NOT starts_with("n", 'a_'))""",
            "(`n` IS NOT NULL AND NOT startswith(`n`, 'a_'))",
        ),
        (
            Compare(Comparison.LT, 2, "float", 0.5),
            """("n" IS NOT NULL AND NOT is_nan("n") AND "n" < CAST('0.5' AS REAL))""",
            "(`n` IS NOT NULL AND NOT isnan(`n`) AND `n` < CAST('0.5' AS FLOAT))",
        ),
        (
            In(2, "long", (-(2**63), 1), negated=True),
            """("n" IS NOT NULL AND "n" NOT IN (CAST('-9223372036854775808' AS BIGINT), CAST('1' AS BIGINT)))""",
            "(`n` IS NOT NULL AND `n` NOT IN (CAST('-9223372036854775808' AS BIGINT), CAST('1' AS BIGINT)))",
        ),
        (
            equal("timestamptz", "2020-01-01T00:00:00.000000+00:00"),
            """("n" IS NOT NULL AND "n" = CAST('2020-01-01 00:00:00.000000 UTC' AS TIMESTAMP(6) WITH TIME ZONE))""",
            "(`n` IS NOT NULL AND `n` = CAST('2020-01-01 00:00:00.000000+00:00' AS TIMESTAMP_LTZ))",
        ),
        (
            equal("timestamp", "2020-01-01T00:00:00.000000"),
            """("n" IS NOT NULL AND "n" = CAST('2020-01-01 00:00:00.000000' AS TIMESTAMP(6)))""",
            "(`n` IS NOT NULL AND `n` = CAST('2020-01-01 00:00:00.000000' AS TIMESTAMP_NTZ))",
        ),
        (
            equal("uuid", "00000000-0000-0000-0000-00000000000a"),
            """("n" IS NOT NULL AND "n" = CAST('00000000-0000-0000-0000-00000000000a' AS UUID))""",
            "(`n` IS NOT NULL AND `n` = CAST('00000000-0000-0000-0000-00000000000a' AS STRING))",
        ),
        (
            equal("decimal(9,2)", "1.50"),
            """("n" IS NOT NULL AND "n" = CAST('1.50' AS DECIMAL(9, 2)))""",
            "(`n` IS NOT NULL AND `n` = CAST('1.50' AS DECIMAL(9, 2)))",
        ),
        (equal("binary", "00FF"), """("n" IS NOT NULL AND "n" = X'00FF')""", "(`n` IS NOT NULL AND `n` = X'00FF')"),
        (
            Or((And((IsNull(2), equal("boolean", True))), IsNull(2), IsNull(2))),
            """((("n" IS NULL) AND ("n" IS NOT NULL AND "n" = TRUE)) OR (("n" IS NULL) OR ("n" IS NULL)))""",
            "(((`n` IS NULL) AND (`n` IS NOT NULL AND `n` = TRUE)) OR ((`n` IS NULL) OR (`n` IS NULL)))",
        ),
    ],
)
def test_filters_state_that_values_are_present_and_quote_names_and_literals(
    predicate: Predicate, of_trino: str, of_spark: str
) -> None:
    assert trino.row_filter_sql(predicate, NAMES) == of_trino
    assert spark.row_filter_sql(predicate, NAMES) == of_spark


STRUCT = StructType(
    fields=(
        NestedField(id=2, name="a'B", type="long", required=True),
        NestedField(id=3, name="l", type=ListType(element_id=4, element="date", element_required=True), required=False),
    )
)


@pytest.mark.parametrize(
    ("action", "kind", "of_trino", "of_spark"),
    [
        (Action.REPLACE_WITH_NULL, "fixed[3]", "CAST(NULL AS VARBINARY)", "CAST(NULL AS BINARY)"),
        (Action.MASK_TO_FIXED_VALUE, "string", "CAST('XXXXXXXX' AS VARCHAR)", "'XXXXXXXX'"),
        (Action.MASK_TO_FIXED_VALUE, "fixed[2]", "X'0000'", "X'0000'"),
        (Action.MASK_TO_FIXED_VALUE, "boolean", "FALSE", "FALSE"),
        (
            Action.MASK_TO_FIXED_VALUE,
            STRUCT,
            """CAST(ROW(CAST('0' AS BIGINT), CAST(ARRAY[] AS ARRAY(DATE))) AS ROW("a'b" BIGINT, "l" ARRAY(DATE)))""",
            "named_struct(CAST(X'612742' AS STRING), CAST('0' AS BIGINT), 'l', CAST(array() AS ARRAY<DATE>))",
        ),
        (
            Action.MASK_TO_FIXED_VALUE,
            MapType(key_id=7, key="string", value_id=8, value="double", value_required=False),
            "CAST(MAP() AS MAP(VARCHAR, DOUBLE))",
            "CAST(map() AS MAP<STRING, DOUBLE>)",
        ),
        (
            Action.TRUNCATE_TO_MONTH,
            "date",
            """date_trunc('month', "e.Mail")""",
            "trunc(`e.Mail`, 'MONTH')",
        ),
        (
            Action.TRUNCATE_TO_YEAR,
            "timestamp",
            """date_trunc('year', "e.Mail")""",
            "CAST(trunc(CAST(`e.Mail` AS DATE), 'YEAR') AS TIMESTAMP_NTZ)",
        ),
        (
            Action.SHA_256_GLOBAL,
            "string",
            """lower(to_hex(sha256(to_utf8("e.Mail"))))""",
            "sha2(CAST(`e.Mail` AS BINARY), 256)",
        ),
        (
            Action.SHA_256_GLOBAL,
            "int",
            """from_big_endian_32(reverse(substr(sha256(reverse(to_big_endian_32("e.Mail"))), 1, 4)))""",
            None,
        ),
    ],
)
def test_masks_have_the_type_of_the_column(action: Action, kind: Type, of_trino: str, of_spark: str | None) -> None:
    wanted = of_trino.replace('"e.Mail"', '"e.mail"')
    assert trino.mask_sql(action, "e.Mail", kind, required=False) == wanted
    if of_spark is not None:
        assert spark.mask_sql(action, "e.Mail", kind, required=False) == of_spark


def test_text_masks_of_trino_need_no_condition() -> None:
    hidden = """regexp_replace(regexp_replace({}, '[^0-9(),.@-]', 'x'), '[0-9]', 'n')"""
    assert trino.mask_sql(Action.MASK_ALPHANUM, "a", "string", required=True) == hidden.format('"a"')
    first = trino.mask_sql(Action.SHOW_FIRST_4, "a", "string", required=True)
    assert first == f"""concat(substr("a", 1, 4), {hidden.format('substr("a", 5)')})"""


@pytest.mark.parametrize(
    ("required", "least"), [(False, "CAST(NULL AS VARCHAR)"), (True, "CAST('XXXXXXXX' AS VARCHAR)")]
)
def test_salted_hash_of_trino_reveals_nothing_because_plans_would_show_the_salt(required: bool, least: str) -> None:
    assert trino.mask_sql(Action.SHA_256_QUERY_LOCAL, "a", "string", required=required) == least


def test_salted_hash_of_spark_needs_a_salt_of_16_bytes() -> None:
    for salt in (None, b"", b"short"):
        with pytest.raises(RestrictionNotExpressible):
            spark.mask_sql(Action.SHA_256_QUERY_LOCAL, "a", "string", required=False, salt=salt)


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns", "unknown", "geometry", "geography(a)", "later"])
def test_type_that_an_engine_does_not_have_is_refused(kind: str) -> None:
    for compiler in (trino, spark):
        with pytest.raises(RestrictionNotExpressible):
            compiler.mask_sql(Action.REPLACE_WITH_NULL, "a", kind, required=False)
        with pytest.raises(RestrictionNotExpressible):
            compiler.row_filter_sql(Compare(Comparison.EQ, 2, kind, "x"), NAMES)


@pytest.mark.parametrize("name", ["a\0", "${x}"])
def test_name_that_spark_would_change_is_refused(name: str) -> None:
    with pytest.raises(RestrictionNotExpressible):
        spark.row_filter_sql(IsNull(1), {1: name})


def test_literal_with_nul_is_refused() -> None:
    with pytest.raises(RestrictionNotExpressible):
        trino.row_filter_sql(equal("string", "a\0b"), NAMES)
