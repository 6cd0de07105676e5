# SPDX-License-Identifier: Apache-2.0
"""Run the documented examples for PyIceberg and DuckDB as written: only address and token differ."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from tests.support.docs_commands import block, run_python
from tests.support.engines.duck import extension
from tests.support.engines.lake import catalog_of
from tests.support.stack.world import World, send_until_decided

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

_ADDRESS = "http://127.0.0.1:8181/catalog"
_DOWNLOAD = "INSTALL {name}; LOAD {name}"


@pytest.fixture(scope="module")
def rows(world: World) -> Iterator[pa.Table]:
    """Return the rows of the table of the examples."""
    send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces", {"namespace": ["gold"]}))
    found = pa.table({"origin": ["EWR", "JFK"], "destination": ["ORD", "LAX"], "on_time_share": [0.5, 0.75]})
    catalog = catalog_of(world, world.admin)
    catalog.create_table("gold.route_punctuality", schema=found.schema).append(found)
    yield found
    catalog.drop_table("gold.route_punctuality")


@pytest.fixture(autouse=True)
def environment(world: World, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that the examples read from the environment."""
    monkeypatch.setenv("CATALOG_URI", world.ready.catalog_uri)
    monkeypatch.setenv("TOKEN", world.admin.token)


def test_the_examples_of_the_readme_write_and_read_a_table_on_a_new_stack(world: World) -> None:
    text = block("README.md", "load_table(").text.replace(_ADDRESS, world.ready.catalog_uri)
    for _ in range(2):  # a second run gives the same rows
        read = run_python(text, TOKEN=world.admin.token)
        assert isinstance(read, pa.Table)
        rows = [tuple(row.values()) for row in read.to_pylist()]
        assert rows == [("Bern", "CH"), ("Oslo", "NO")]
    statements = block("README.md", "CREATE SECRET").text
    assert _ADDRESS in statements
    statements = statements.replace(_ADDRESS, world.ready.catalog_uri).replace("<bearer token>", world.admin.token)
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "aws", "iceberg"):
        connection.execute(f"LOAD '{extension(name)}'")
    connection.execute(statements)
    assert connection.fetchall() == rows
    connection.close()
    catalog_of(world, world.admin).drop_table("samples.cities")


def test_the_example_for_pyiceberg_reads_the_table(world: World, rows: pa.Table) -> None:
    text = block("docs/data-engineer.md", "load_table(").text.replace(_ADDRESS, world.ready.catalog_uri)
    read = run_python(text, TOKEN=world.admin.token)
    assert isinstance(read, pa.Table)
    assert read.to_pylist() == rows.to_pylist()


def test_the_example_for_duckdb_reads_the_table(rows: pa.Table) -> None:
    text = block("docs/data-engineer.md", "duckdb.connect").text
    assert _DOWNLOAD in text
    # The documented example mentions this alternative itself; a test must not download anything.
    text = text.replace(f'f"{_DOWNLOAD}"', "f\"LOAD '{extension(name)}'\"")
    read = run_python(text, extension=extension)
    assert isinstance(read, duckdb.DuckDBPyRelation)
    assert read.fetchall() == [tuple(row.values()) for row in rows.to_pylist()]
