# SPDX-License-Identifier: Apache-2.0
"""Flink with Iceberg's REST catalog: SQL in batch and streaming mode. Opt-in: `make test-engine ENGINE=flink`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.world import Person, World
from tests.e2e.engine_results import opt_in, row
from tests.e2e.engines import environment
from tests.e2e.engines.sql_cells import ROWS, Dialect, Run, six_cells
from tests.e2e.engines.statement_process import Refused, Worker, java_environment, running

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900), opt_in("flink")]

_DIALECT = Dialect(
    error=Refused,
    namespaces="SHOW DATABASES",
    create="CREATE TABLE {table} (id BIGINT, name STRING)",
    insert="INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob')",
    select="SELECT id, name FROM {table}",
    refusal="Forbidden|does not exist|not found",
)


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start Flink's local cluster in one process."""
    parts = environment.of("flink")
    home = tmp_path_factory.mktemp("flink")
    with running(parts.python, "tests.e2e.engines.flink_worker", home, java_environment(home)) as worker:
        worker.send({"jars": [str(jar) for jar in parts.jars]})
        yield worker


def _catalog(world: World, person: Person, **more: str) -> dict[str, str]:
    """Return the properties of the catalog that docs/engines-flink.md names."""
    return {
        "type": "iceberg",
        "catalog-type": "rest",
        "uri": world.ready.catalog_uri,
        "warehouse": str(world.ready.warehouse),
        "rest.auth.type": "oauth2",
        "token": person.token,
        "token-refresh-enabled": "false",
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "cache-enabled": "false",
        **more,
    }


def _session(flink: Worker, world: World, person: Person, *, streaming: bool = False) -> Run:
    """Return a function that runs statements as this user, in a table environment of its own."""
    label = f"{person.name} {streaming}"
    flink.send({"session": label, "catalog": _catalog(world, person), "streaming": streaming})
    return lambda statement: flink.send({"session": label, "statement": statement})


def test_six_cells(flink: Worker, world: World, ns: str) -> None:
    versions = {"Flink": "2.1.1", "Iceberg": "1.11.0"}
    with row("flink", "Apache Flink", versions, page="engines-flink.md") as made:
        six_cells(made, world, ns, _DIALECT, lambda person: _session(flink, world, person))


def test_streaming_insert_commits_at_checkpoints_and_a_branch_keeps_the_old_rows(
    flink: Worker, world: World, ns: str
) -> None:
    """A streaming job with a bounded source commits its rows, and a read of the first snapshot excludes later rows."""
    table = f"lake.{ns}.stream"
    batch, stream = _session(flink, world, world.admin), _session(flink, world, world.admin, streaming=True)
    batch(_DIALECT.create.format(table=table))
    batch(_DIALECT.insert.format(table=table))
    path = f"{world.root}/namespaces/{ns}/tables/stream"
    first = world.admin.get(path).json()["metadata"]["current-snapshot-id"]
    stream(
        "CREATE TEMPORARY TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '10', 'fields.id.end' = '39', 'rows-per-second' = '10')"
    )
    stream(f"INSERT INTO {table} SELECT id, 'new' FROM numbers")
    everything = batch(f"SELECT id FROM {table}")
    assert sorted(id for (id,) in everything) == [1, 2, *range(10, 40)]
    assert len(world.admin.get(path).json()["metadata"]["snapshots"]) >= 3
    then = batch(f"SELECT id, name FROM {table} /*+ OPTIONS('snapshot-id'='{first}') */")
    assert sorted(tuple(each) for each in then) == ROWS
