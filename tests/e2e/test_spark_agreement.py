# SPDX-License-Identifier: Apache-2.0
"""Random `read-restrictions` of the gateway, decoded and applied in a real Spark, against the reference interpreter."""

from __future__ import annotations

import random

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from gateway.obligations.compilers.read_restrictions import read_restrictions
from gateway.obligations.kinds import TableRestrictions
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import Predicate
from lakegate.spark.masks import masked as spark_mask
from lakegate.spark.restrictions import Restrictions, columns_of, decode
from lakegate.spark.row_filters import row_filter
from tests.support.policies.policy_agreement import COLUMNS, SALT, arrow_of, random_predicate, random_rows, values_of
from tests.support.policies.reference_policies import keeps, masked

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

#: Spark has no times and no nanoseconds, and cannot order UUIDs.
IDS = tuple(id for id, (_, kind) in COLUMNS.items() if kind not in ("time", "timestamp_ns", "uuid"))
FIELDS = msgspec.convert(
    [{"id": id, "name": COLUMNS[id][0], "type": COLUMNS[id][1], "required": False} for id in IDS],
    tuple[NestedField, ...],
)
KINDS = {id: COLUMNS[id][1] for id in IDS}
COLUMN = {id: f"c{id}" for id in IDS}


@pytest.fixture(scope="module")
def spark(root: SparkSession) -> SparkSession:
    session = root.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    return session


def through_the_wire(predicate: Predicate, masks: tuple[Projection, ...] = ()) -> Restrictions:
    """Encode restrictions as the gateway does, and decode them as a governed read does."""
    wire = read_restrictions(TableRestrictions("t", predicate, masks, False, "m"))
    return decode(wire or b"{}", columns_of([FIELDS], FIELDS))


def test_row_filters_of_the_gateway_keep_the_rows_of_the_reference(spark: SparkSession) -> None:
    rnd = random.Random(190)
    rows = random_rows(rnd, IDS, 60)
    predicates = [random_predicate(rnd, IDS) for _ in range(300)]
    frame = spark.createDataFrame(arrow_of(rows, IDS)).toDF(*COLUMN.values())
    columns = {id: f.col(name) for id, name in COLUMN.items()}
    for first in range(0, len(predicates), 50):
        some = predicates[first : first + 50]
        conditions = [
            f.coalesce(row_filter(through_the_wire(each).row_filter, columns), f.lit(False)).alias(f"p{at}")
            for at, each in enumerate(some)
        ]
        found = frame.select(*conditions).toArrow()
        for at, predicate in enumerate(some):
            assert found.column(at).to_pylist() == [keeps(predicate, row) for row in rows], predicate


def test_masks_give_the_values_of_the_reference(spark: SparkSession) -> None:
    rnd = random.Random(191)
    rows = random_rows(rnd, IDS, 100)
    pairs = [(id, action) for id in IDS for action in Action if applies(action, KINDS[id], required=False)]
    frame = spark.createDataFrame(arrow_of(rows, IDS)).toDF(*COLUMN.values())
    found = frame.select(
        *(
            spark_mask(action, f.col(COLUMN[id]), KINDS[id], salt=SALT).alias(f"m{at}")
            for at, (id, action) in enumerate(pairs)
        )
    ).toArrow()
    for at, (id, action) in enumerate(pairs):
        expected = [masked(action, KINDS[id], row[id], SALT) for row in rows]
        assert values_of(found.column(at)) == expected, (KINDS[id], action)
