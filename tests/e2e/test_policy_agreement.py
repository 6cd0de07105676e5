# SPDX-License-Identifier: Apache-2.0
"""Compiled filters and masks of Spark, run on a real Spark against the reference interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.obligations.compilers.spark import mask_sql
from lakegate.restrictions.actions import Action
from tests.support.policies import policy_agreement
from tests.support.policies.policy_agreement import SALT, compare_masks, compare_predicates
from tests.support.policies.policy_engines import governed_spark_engine, spark_engine

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark(root: SparkSession) -> SparkSession:
    """Return a session with settings that a user could have: another time zone, and escapes read as text."""
    session = root.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    return session


@pytest.mark.parametrize("open_engine", [spark_engine, governed_spark_engine])
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("escaped", ["true", "false"])
def test_random_predicates_and_masks_agree_with_the_reference_interpreter(
    spark: SparkSession, ansi: str, escaped: str, open_engine: Callable[[SparkSession], policy_agreement.Engine]
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    engine = open_engine(spark)
    for seed in range(2):
        rnd = random.Random(f"{seed} {ansi} {escaped}")
        assert compare_predicates(engine, rnd, rows=25, predicates=40) == 40
        assert compare_masks(engine, rnd, rows=25) > 40


def test_masks_give_the_test_vectors_of_the_protocol(spark: SparkSession) -> None:
    table = pa.table(
        {
            "mail": ["prashant010696@gmail.com"],
            "phone": ["+1 (555) 010-9999"],
            "city": ["Łódź_7"],
            "alice": ["alice@example.com"],
            "i": pa.array([42], pa.int32()),
            "j": pa.array([-1], pa.int32()),
            "k": pa.array([42], pa.int64()),
            "b": pa.array([b"\x00\xff"], pa.binary()),
        }
    )
    vectors = [
        (Action.MASK_ALPHANUM, "mail", "string", "xxxxxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_FIRST_4, "mail", "string", "prasxxxxnnnnnn@xxxxx.xxx"),
        (Action.SHOW_LAST_4, "mail", "string", "xxxxxxxxnnnnnn@xxxxx.com"),
        (Action.MASK_ALPHANUM, "phone", "string", "xnx(nnn)xnnn-nnnn"),
        (Action.SHOW_LAST_4, "city", "string", "xxdź_7"),
        (
            Action.SHA_256_GLOBAL, "alice", "string",
            "ff8d9819fc0e12bf0d24892e45987e249a28dce836a85cad60e28eaaa8c6d976",
        ),
        (
            Action.SHA_256_QUERY_LOCAL, "alice", "string",
            "a665c52829b935765f945e38e973753a5c696f59f488d8ca90a67ed7da798d80",
        ),
        (Action.SHA_256_GLOBAL, "i", "int", -290282264),
        (Action.SHA_256_GLOBAL, "j", "int", 454268333),
        (Action.SHA_256_GLOBAL, "k", "long", -4111196313959201555),
        (
            Action.SHA_256_GLOBAL, "b", "binary",
            bytes.fromhex("06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"),
        ),
    ]  # fmt: skip
    texts = [mask_sql(action, name, kind, required=False, salt=SALT) for action, name, kind, _ in vectors]
    found = spark_engine(spark).select(table, texts)
    assert [column.to_pylist()[0] for column in found.columns] == [result for *_, result in vectors]
