# SPDX-License-Identifier: Apache-2.0
"""`lakegate data-policy view` prints a SELECT with the restrictions of a user, which engines can run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from gateway.cli.exit_codes import ExitCode
from tests.support.stack.columns import give, wide
from tests.support.stack.world import Table, World

pytestmark = pytest.mark.servers

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "name": ["Ada", None],
        "card": ["4111-1111", "4222-2222"],
        "address": pa.array([{"street": "First"}, None]),
    }
)


@pytest.fixture
def table(world: World, ns: str) -> Iterator[Table]:
    """Return a table of which carol may read one column. A steward may describe it and read its assignments."""
    for person in (world.carol, world.etl):
        world.strip(person)
    table = wide(world, ns)
    for privilege in ("describe", "manage_grants"):
        world.grant(privilege, world.etl, "table", table.uuid)
    assert give(world, table, "name", world.carol).status_code == 204
    yield table
    for person in (world.carol, world.etl):
        world.strip(person)


def view(world: World, table: Table, dialect: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the command as the steward, for carol."""
    where = ["--gateway", world.base, "--token", world.etl.token, "--warehouse", str(world.ready.warehouse)]
    named = ["--table", f"{table.namespace}.{table.name}", "--as", world.carol.id, "--dialect", dialect]
    return world.lakegate("data-policy", "view", *where, *named, *more)


def test_text_for_duckdb_gives_the_rows_of_the_user(world: World, table: Table) -> None:
    done = view(world, table, "duckdb", "--source", "raw")
    assert done.returncode == 0, done.stderr
    connection = duckdb.connect()
    connection.register("raw", ROWS)
    connection.execute(f"CREATE VIEW shown AS {done.stdout}")
    found = connection.execute("SELECT * FROM shown").to_arrow_table().to_pylist()
    hidden = {"id": 0, "card": "XXXXXXXX", "address": None}
    assert found == [{"name": name, **hidden} for name in ("Ada", None)]


@pytest.mark.parametrize(("dialect", "quote"), [("duckdb", '"'), ("trino", '"'), ("spark", "`")])
def test_source_is_the_quoted_name_of_the_table(world: World, table: Table, dialect: str, quote: str) -> None:
    text = view(world, table, dialect).stdout
    assert f" FROM {quote}{table.namespace}{quote}.{quote}{table.name}{quote} AS {quote}unrestricted{quote}" in text
    assert f"{quote}unrestricted{quote}.{quote}name{quote} AS {quote}name{quote}" in text


def test_without_the_right_to_read_assignments_there_is_no_text(world: World, table: Table) -> None:
    world.revoke("manage_grants", world.etl, "table", table.uuid)
    done = view(world, table, "duckdb")
    assert done.returncode == ExitCode.REFUSED and "not allowed" in done.stderr
    assert "SELECT" not in done.stdout and world.etl.token not in done.stderr
