# SPDX-License-Identifier: Apache-2.0
"""Spark of other versions than the pinned one: the row of an engine, and statements that differ between versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.engines import environment
from tests.e2e.engines.cells import Dialect, Run, six_cells
from tests.support.engines.engine_results import row
from tests.support.engines.spark import Session, Spark, SparkRefused, started
from tests.support.stack.world import Person, World

SPARK = Dialect(
    error=SparkRefused,
    namespaces="SHOW NAMESPACES IN lake",
    create="CREATE TABLE {table} (id BIGINT, name STRING)",
    insert="INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob')",
    select="SELECT id, name FROM {table}",
    refusal="ForbiddenException|TABLE_OR_VIEW_NOT_FOUND",
)


@contextmanager
def spark_of(engine: str, world: World, home: Path) -> Iterator[Spark]:
    """Context manager. Start Spark in the environment of an engine."""
    parts = environment.of(engine)
    with started(world.ready, home, python=str(parts.python), jars=parts.jars) as spark:
        yield spark


def session_of(spark: Spark, person: Person) -> Run:
    """Return a function that runs statements of this user, in a session that does not cache tables."""
    # With the cache a table that was loaded before the revocation stays readable for half a minute. Spark 3.5 reads
    # the option before the first statement, so that a statement SET is too late.
    return Session(spark, person, options={"spark.sql.catalog.lake.cache-enabled": "false"}).sql


def make_row(engine: str, versions: dict[str, str], spark: Spark, world: World, ns: str) -> None:
    """Make the row of one version of Spark."""
    with row(engine, f"Spark {versions['Spark'][:3]}", versions, page="engines.md#spark") as made:
        six_cells(made, world, ns, SPARK, lambda person: session_of(spark, person))


def change_rows_and_schema(spark: Spark, world: World, ns: str) -> None:
    """Run the statements of row changes, history and views, and compare the results."""
    run = session_of(spark, world.admin)
    table = f"lake.{ns}.t"
    run(f"CREATE TABLE {table} (id BIGINT, v STRING) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    run(f"UPDATE {table} SET v = 'B' WHERE id = 2")
    run(f"DELETE FROM {table} WHERE id = 3")
    run(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'one'), (4, 'four') AS s(id, v)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    assert run(f"SELECT id, v FROM {table} ORDER BY id") == [(1, "one"), (2, "B"), (4, "four")]
    [first, *_] = [id for (id,) in run(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]
    assert len(run(f"SELECT id FROM {table} VERSION AS OF {first}")) == 3
    run(f"ALTER TABLE {table} ADD COLUMN more INT")
    run(f"CREATE VIEW lake.{ns}.v AS SELECT id FROM {table} WHERE v <> 'B'")
    assert run(f"SELECT id FROM lake.{ns}.v ORDER BY id") == [(1,), (4,)]
    run(f"CALL lake.system.rewrite_data_files(table => '{ns}.t', options => map('rewrite-all', 'true'))")
    assert run(f"SELECT id, v, more FROM {table} ORDER BY id") == [(1, "one", None), (2, "B", None), (4, "four", None)]
    run(f"DROP TABLE {table}")
    assert world.admin.head(f"{world.root}/namespaces/{ns}/tables/t").status_code == 404
