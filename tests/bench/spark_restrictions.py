# SPDX-License-Identifier: Apache-2.0
"""Measure governed reads in Spark: `python -m tests.bench.spark_restrictions`.

Each figure is the time of a restricted DataFrame, divided by that of the same query written by hand in SQL. Both read
the same files and compute every column of every row that is left. The runs alternate, and the smallest of each counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from gateway.settings import java_home, load, search_path
from lakegate.local import jdk, spark_jars, toolchain
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import ALWAYS, And, Compare, Comparison, In, Not, Predicate
from lakegate.spark.config import Engine
from lakegate.spark.governed import new_salt, restricted
from lakegate.spark.restrictions import Restrictions
from lakegate.spark.session import start_engine

_TYPES = {"id": "long", "email": "string", "card": "string", "booked": "timestamptz", "region": "string"}
FIELDS = msgspec.convert(
    [{"id": at, "name": name, "type": kind, "required": False} for at, (name, kind) in enumerate(_TYPES.items(), 1)],
    tuple[NestedField, ...],
)
_HIDDEN = r"regexp_replace(regexp_replace({}, '[^0-9(),.\\-@]', 'x'), '[0-9]', 'n')"
_EMAIL, _CARD = _HIDDEN.format("email"), _HIDDEN.format("left(card, length(card) - 4)")
_REGIONS = And((In(5, "string", ("DE", "US")), Not(Compare(Comparison.LT, 1, "long", 100))))


def _case(row_filter: Predicate = ALWAYS, **masks: Action) -> Restrictions:
    names = list(_TYPES)
    found = tuple(Projection(names.index(name) + 1, action) for name, action in masks.items())
    return Restrictions(row_filter=row_filter, masks=found)


#: Each query as (restrictions, the same by hand over the view `rows`).
CASES: Mapping[str, tuple[Restrictions, str]] = {
    "row filter": (
        _case(_REGIONS),
        "SELECT * FROM rows WHERE region IN ('DE', 'US') AND id >= 100",
    ),
    "letters and digits hidden, last four shown": (
        _case(email=Action.MASK_ALPHANUM, card=Action.SHOW_LAST_4),
        f"SELECT id, {_EMAIL} AS email, concat({_CARD}, right(card, 4)) AS card, booked, region FROM rows",
    ),
    "hash of a text": (
        _case(email=Action.SHA_256_GLOBAL),
        "SELECT id, sha2(email, 256) AS email, card, booked, region FROM rows",
    ),
    "month of an instant, null, fixed value": (
        _case(booked=Action.TRUNCATE_TO_MONTH, card=Action.REPLACE_WITH_NULL, region=Action.MASK_TO_FIXED_VALUE),
        "SELECT id, email, CAST(NULL AS string) AS card, date_trunc('MONTH', booked) AS booked, 'XXXXXXXX' AS region "
        "FROM rows",
    ),
    "filter and four masks": (
        _case(
            _REGIONS,
            email=Action.MASK_ALPHANUM,
            card=Action.SHOW_LAST_4,
            booked=Action.TRUNCATE_TO_MONTH,
            region=Action.SHA_256_GLOBAL,
        ),
        f"SELECT id, {_EMAIL} AS email, concat({_CARD}, right(card, 4)) AS card, "
        "date_trunc('MONTH', booked) AS booked, sha2(region, 256) AS region "
        "FROM rows WHERE region IN ('DE', 'US') AND id >= 100",
    ),
}


def generated(spark: SparkSession, rows: int, directory: Path) -> DataFrame:
    """Write rows to Parquet files, and return their DataFrame."""
    number = f.col("id")
    frame = spark.range(0, rows, numPartitions=4).select(
        number,
        f.concat(f.lit("person"), number.cast("string"), f.lit("@example.com")).alias("email"),
        f.lpad((number * 7919).cast("string"), 16, "4").alias("card"),
        f.timestamp_seconds(number * 37 + 1_000_000_000).alias("booked"),
        f.element_at(f.array(*map(f.lit, ("DE", "US", "FR", "JP"))), (number % 4 + 1).cast("int")).alias("region"),
    )
    path = str(directory / "rows")
    frame.write.parquet(path)
    return spark.read.parquet(path)


def seconds(frame: Callable[[], DataFrame]) -> float:
    """Return the seconds in which Spark plans a query and computes all of its rows."""
    started = time.perf_counter()
    frame().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    os.environ["JAVA_HOME"] = str(jdk.find(java_home(), search_path()))
    jars = [str(jar) for jar in spark_jars.locate(toolchain.cache(load({})).jars())]
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-") as home:
        spark = start_engine(Engine(jars=jars, work_dir=home, driver_memory="2g"))
        try:
            rows = generated(spark, options.rows, Path(home))
            rows.createOrReplaceTempView("rows")
            print(f"{options.rows} rows, seconds\n\n| query | by hand | governed | ratio |\n|---|--:|--:|--:|")
            for name, (restrictions, statement) in CASES.items():
                pairs = [
                    (
                        seconds(partial(spark.sql, statement)),
                        seconds(partial(restricted, rows, FIELDS, restrictions, new_salt())),
                    )
                    for _ in range(options.runs)
                ]
                hand, governed = (min(side) for side in zip(*pairs, strict=True))
                print(f"| {name} | {hand:.1f} | {governed:.1f} | {governed / hand:.2f} |", flush=True)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
