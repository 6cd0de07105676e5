# SPDX-License-Identifier: Apache-2.0
"""DuckDB, an independent C++ client, through the gateway. It commits with `transactions/commit` even for one table."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.support.engines.duck import Duck
from tests.support.stack.world import World, error_of, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def owner(world: World) -> Iterator[Duck]:
    """Return DuckDB as the administrator."""
    duck = Duck(world, world.admin)
    yield duck
    duck.close()


def test_duckdb_creates_fills_changes_reads_and_drops_a_table(world: World, ns: str, owner: Duck) -> None:
    table, path = f"lake.{ns}.people", f"{world.root}/namespaces/{ns}/tables/people"
    owner.run(f"CREATE TABLE {table} (id BIGINT, name VARCHAR)")
    assert world.admin.head(path).status_code == 204
    owner.run(f"INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob'), (3, 'cyd')")
    assert owner.run(f"SELECT * FROM {table} ORDER BY id") == [(1, "ada"), (2, "bob"), (3, "cyd")]
    owner.run(f"UPDATE {table} SET name = 'eve' WHERE id = 2")
    owner.run(f"DELETE FROM {table} WHERE id = 3")
    assert owner.run(f"SELECT * FROM {table} ORDER BY id") == [(1, "ada"), (2, "eve")]
    snapshots = world.admin.get(path).json()["metadata"]["snapshots"]
    assert len(snapshots) >= 3
    owner.run(f"DROP TABLE {table}")
    assert world.admin.head(path).status_code == 404


def test_create_table_as_select_is_atomic(world: World, ns: str, owner: Duck) -> None:
    owner.run(f"CREATE TABLE lake.{ns}.numbers AS SELECT range AS n FROM range(1000)")
    assert owner.run(f"SELECT count(*), sum(n) FROM lake.{ns}.numbers") == [(1000, 499500)]


def test_transaction_over_two_tables_is_atomic(world: World, ns: str, owner: Duck) -> None:
    for name in ("debit", "credit"):
        owner.run(f"CREATE TABLE lake.{ns}.{name} (amount BIGINT)")
    owner.run("BEGIN")
    owner.run(f"INSERT INTO lake.{ns}.debit VALUES (5)")
    owner.run(f"INSERT INTO lake.{ns}.credit VALUES (5)")
    owner.run("COMMIT")
    owner.run("BEGIN")
    owner.run(f"INSERT INTO lake.{ns}.debit VALUES (7)")
    owner.run("ROLLBACK")
    both = f"SELECT (SELECT sum(amount) FROM lake.{ns}.debit), (SELECT sum(amount) FROM lake.{ns}.credit)"
    assert owner.run(both) == [(5, 5)]


def test_writes_of_a_reader_are_refused(world: World, ns: str, owner: Duck) -> None:
    name = unique("t")
    owner.run(f"CREATE TABLE lake.{ns}.{name} (id BIGINT)")
    owner.run(f"INSERT INTO lake.{ns}.{name} VALUES (1)")
    path = f"{world.root}/namespaces/{ns}/tables/{name}"
    id = str(world.sql("select id from tables where name = $1", name)[0]["id"])
    world.grant("select", world.analyst, "table", id)
    before = world.admin.get(path).json()["metadata-location"]
    reader = Duck(world, world.analyst)
    try:
        assert reader.run(f"SELECT id FROM lake.{ns}.{name}") == [(1,)]
        with pytest.raises(duckdb.Error):
            reader.run(f"INSERT INTO lake.{ns}.{name} VALUES (2)")
    finally:
        reader.close()
    assert world.admin.get(path).json()["metadata-location"] == before


def test_user_without_rights_reads_nothing(world: World, ns: str, owner: Duck) -> None:
    name = unique("t")
    owner.run(f"CREATE TABLE lake.{ns}.{name} (id BIGINT)")
    error_of(world.carol.get(f"{world.root}/namespaces/{ns}/tables/{name}"))
    with pytest.raises(duckdb.Error):
        stranger = Duck(world, world.carol)
        try:
            stranger.run(f"SELECT id FROM lake.{ns}.{name}")
        finally:
            stranger.close()
