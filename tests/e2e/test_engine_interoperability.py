# SPDX-License-Identifier: Apache-2.0
"""Three independent engines change one table in turn through the gateway and read the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines.duck import Duck
from tests.support.engines.lake import catalog_of
from tests.support.engines.spark import Session
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def duck(world: World) -> Iterator[Duck]:
    """Return DuckDB as the administrator."""
    duck = Duck(world, world.admin)
    yield duck
    duck.close()


def seen_by_pyiceberg(world: World, ns: str) -> list[tuple[Any, ...]]:
    """Return the rows of the table `t` as PyIceberg reads them."""
    rows = catalog_of(world, world.admin).load_table((ns, "t")).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["word"]) for row in rows)


@pytest.mark.parametrize("version", [2, 3])
def test_each_engine_reads_the_other_engines_writes_and_deletes(
    world: World, ns: str, admin: Session, duck: Duck, version: int
) -> None:
    table, ordered = f"lake.{ns}.t", f"SELECT id, word FROM lake.{ns}.t ORDER BY id"
    admin.sql(
        f"CREATE TABLE {table} (id BIGINT, word STRING) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    admin.sql(f"INSERT INTO {table} VALUES (1, 'spark'), (2, 'spark'), (3, 'spark')")
    admin.sql(f"DELETE FROM {table} WHERE id = 2")  # a delete file: readers must apply it
    expected: list[tuple[Any, ...]] = [(1, "spark"), (3, "spark")]
    assert seen_by_pyiceberg(world, ns) == expected
    assert duck.run(ordered) == expected
    duck.run(f"INSERT INTO {table} VALUES (4, 'duckdb')")
    duck.run(f"DELETE FROM {table} WHERE id = 1")
    expected = [(3, "spark"), (4, "duckdb")]
    assert seen_by_pyiceberg(world, ns) == expected
    admin.sql(f"REFRESH TABLE {table}")
    assert admin.sql(ordered) == expected
    if version == 2:
        brought = pa.table({"id": pa.array([5], pa.int64()), "word": ["pyiceberg"]})
        catalog_of(world, world.admin).load_table((ns, "t")).append(brought)
        expected.append((5, "pyiceberg"))
        admin.sql(f"REFRESH TABLE {table}")
        assert admin.sql(ordered) == expected
        assert duck.run(ordered) == expected
