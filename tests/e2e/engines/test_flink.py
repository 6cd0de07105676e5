# SPDX-License-Identifier: Apache-2.0
"""Flink with Iceberg's REST catalog: SQL in batch and streaming mode. Opt-in: `make test-engine ENGINE=flink`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.engines import environment
from tests.e2e.engines.cells import ROWS, Dialect, Run, six_cells
from tests.e2e.engines.worker import Refused, Worker, java_environment, running
from tests.support.engines.engine_results import opt_in, row
from tests.support.stack.world import Person, World

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900), opt_in("flink")]

_DIALECT = Dialect(
    error=Refused,
    namespaces="SHOW DATABASES",
    create="CREATE TABLE {table} (id BIGINT, name STRING)",
    insert="INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob')",
    select="SELECT id, name FROM {table}",
    refusal="Object .* not found|does not exist",
)


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Start Flink's local cluster in one process."""
    parts = environment.of("flink")
    home = tmp_path_factory.mktemp("flink")
    # The classpath of the whole process, as the directory lib/ of a cluster. With `pipeline.jars` Flink does not find
    # Hadoop's classes.
    variables = java_environment(home) | {"HADOOP_CLASSPATH": ":".join(str(jar) for jar in parts.jars)}
    with running(parts.python, "tests.e2e.engines.flink_worker", home, variables) as worker:
        yield worker


def _catalog(world: World, person: Person, **more: str) -> dict[str, str]:
    """Return the properties of the catalog that docs/engines.md#flink names."""
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
    with row("flink", "Apache Flink", versions, page="engines.md#flink") as made:
        six_cells(made, world, ns, _DIALECT, lambda person: _session(flink, world, person))


def test_streaming_insert_commits_at_checkpoints_and_leaves_earlier_snapshots(
    flink: Worker, world: World, ns: str
) -> None:
    """A streaming job with a bounded source commits its rows. A read of the first snapshot excludes them."""
    table = f"lake.{ns}.flights"
    batch, stream = _session(flink, world, world.admin), _session(flink, world, world.admin, streaming=True)
    batch(_DIALECT.create.format(table=table))
    batch(_DIALECT.insert.format(table=table))
    path = f"{world.root}/namespaces/{ns}/tables/flights"
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


def test_running_job_of_a_revoked_writer_commits_no_more(flink: Worker, world: World, ns: str) -> None:
    """A streaming job loses its right between two checkpoints. Its next commit is refused and the job fails."""
    table = f"lake.{ns}.flights"
    owner, writer = _session(flink, world, world.admin), world.stranger("writer")
    owner(_DIALECT.create.format(table=table))
    path = f"{world.root}/namespaces/{ns}/tables/flights"
    id = str(world.admin.get(path).json()["metadata"]["table-uuid"])
    world.grant("modify", writer, "table", id)
    stream = _session(flink, world, writer, streaming=True)
    stream(
        "CREATE TEMPORARY TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
        "'fields.id.start' = '1', 'fields.id.end' = '3000', 'rows-per-second' = '10')"
    )
    with ThreadPoolExecutor(1) as aside:
        job = aside.submit(stream, f"INSERT INTO {table} SELECT id, 'new' FROM numbers")
        deadline = time.monotonic() + 120
        while len(_snapshots(world, path)) < 2:
            assert not job.done(), job.exception()
            assert time.monotonic() < deadline, "the job committed nothing"
            time.sleep(0.2)
        world.revoke("modify", writer, "table", id)
        committed = _snapshots(world, path)
        with pytest.raises(Refused, match="Forbidden|NoSuchTable"):
            job.result(120)
    assert _snapshots(world, path) == committed


def _snapshots(world: World, path: str) -> list[Any]:
    """Return the ids of a table's snapshots."""
    metadata = world.admin.get(path).json()["metadata"]
    return [each["snapshot-id"] for each in metadata.get("snapshots", [])]
