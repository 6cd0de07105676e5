# SPDX-License-Identifier: Apache-2.0
"""The same users do the same operations with Trino, PyIceberg and Spark; each engine gets the gateway's own decision.

Trino acts for the users with exchanged tokens; the other two engines use the users' own tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError, RESTError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.support.engines.lake import catalog_of
from tests.support.engines.spark import Session, Spark, SparkRefused
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_cells import WRITES, Names, allowed
from tests.support.engines.trino_lake import Lake
from tests.support.stack.world import Person, World, unique

__all__ = ["pytestmark"]

_ONE_ID = Schema(NestedField(1, "id", LongType()))
#: Errors of Spark's Java client for a refusal. A table that the user may not see is "not found". A user with read
#: access only has keys that cannot write, so the store refuses before the catalog does.
_SPARK_ERRORS = {
    "AccessDeniedException",
    "AnalysisException",
    "ExtendedAnalysisException",
    "ForbiddenException",
    "NoSuchNamespaceException",
    "NoSuchTableException",
    "NoSuchWarehouseException",
}


class Deed:
    """One operation in three engines: the required rights, Trino's SQL, Spark's SQL, and PyIceberg's call."""

    def __init__(
        self, needs: tuple[str, ...], trino: str, spark: str, pyiceberg: Callable[[Any, str, str], Any]
    ) -> None:
        self.needs = needs
        self.trino = trino
        self.spark = spark
        self.pyiceberg = pyiceberg


#: `{t}` is a table that is created anew for each engine and each attempt.
DEEDS = {
    "read": Deed(
        ("table orders read_data",),
        "select * from {s}.orders",
        "select * from lake.{s}.orders",
        lambda catalog, s, t: catalog.load_table((s, "orders")).scan().to_arrow(),
    ),
    "append": Deed(
        WRITES,
        "insert into {s}.orders values (7, 'EU', '7')",
        "insert into lake.{s}.orders values (7, 'EU', '7')",
        lambda catalog, s, t: catalog.load_table((s, "orders")).append(
            pa.table({"id": [7], "region": ["EU"], "ssn": ["7"]})
        ),
    ),
    "create": Deed(
        ("namespace . create_table",),
        "create table {s}.{n} (id bigint)",
        "create table lake.{s}.{n} (id bigint) using iceberg",
        lambda catalog, s, t: catalog.create_table((s, unique("new")), _ONE_ID),
    ),
    "set a property": Deed(
        ("table {t} commit",),
        "comment on table {s}.{t} is 'said'",
        "alter table lake.{s}.{t} set tblproperties ('comment' = 'said')",
        lambda catalog, s, t: (
            catalog.load_table((s, t)).transaction().set_properties(comment="said").commit_transaction()
        ),
    ),
    "rename": Deed(
        ("table {t} rename",),
        "alter table {s}.{t} rename to {s}.{n}",
        "alter table lake.{s}.{t} rename to {s}.{n}",
        lambda catalog, s, t: catalog.rename_table((s, t), (s, unique("new"))),
    ),
    "drop": Deed(
        ("table {t} drop",),
        "drop table {s}.{t}",
        "drop table lake.{s}.{t}",
        lambda catalog, s, t: catalog.drop_table((s, t)),
    ),
    "make a namespace": Deed(
        ("warehouse create_namespace",),
        "create schema {n}",
        "create namespace lake.{n}",
        lambda catalog, s, t: catalog.create_namespace(unique("new")),
    ),
}


def _by_spark(spark: Spark, person: Person, statement: str) -> bool:
    try:
        Session(spark, person).sql(statement)
    except SparkRefused as refused:
        assert refused.kind in _SPARK_ERRORS, refused
        return False
    return True


def _by_pyiceberg(world: World, person: Person, deed: Deed, schema: str, table: str) -> bool:
    try:
        deed.pyiceberg(catalog_of(world, person), schema, table)
    except (NoSuchTableError, NoSuchNamespaceError):
        return False
    except OSError as refused:
        assert "ACCESS_DENIED" in str(refused) or "AccessDenied" in str(refused), refused
        return False
    except RESTError as refused:
        # PyIceberg raises the base class for a 404 of the configuration endpoint.
        assert type(refused) in (ForbiddenError, RESTError), refused
        return False
    return True


@pytest.mark.parametrize("what", DEEDS)
def test_three_engines_make_the_same_decisions_for_the_same_users(
    world: World, lake: Lake, spark: Spark, what: str
) -> None:
    deed = DEEDS[what]
    found, expected = {}, {}
    for name, person in lake.people.items():
        # A table for each engine, since one engine may drop its table.
        tables = [world.table(lake.schema).name if "{t}" in deed.trino else "" for _ in range(3)]
        expected[name] = [
            allowed(world, world.etl, person, deed.needs, Names(lake.schema, table=table)) for table in tables
        ]
        found[name] = [
            lake.may(person, deed.trino.format(s=lake.schema, t=tables[0], n=unique("new"))),
            _by_spark(spark, person, deed.spark.format(s=lake.schema, t=tables[1], n=unique("new"))),
            _by_pyiceberg(world, person, deed, lake.schema, tables[2]),
        ]
    assert found == expected
    assert found["stranger"] == [False, False, False]
