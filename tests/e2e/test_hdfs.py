# SPDX-License-Identifier: Apache-2.0
"""A real Spark with a table in a real HDFS, through a gateway that vends nothing for it.

The gateway and Spark are two users of HDFS. An access control list of the allowed directory, which new directories
inherit, lets both write: `docs/storage-hdfs.md`. `make test-long` runs this: it starts a stack, a Spark and an HDFS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hdfs_native import AclEntry, Client
from msgspec import structs

from tests.integration.conftest import _up
from tests.support.engines.spark import Session, SparkRefused, started
from tests.support.servers.hdfs_servers import Hdfs, running
from tests.support.stack.warehouses import WAREHOUSE, until
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.long]

LISTED = "/lakegate"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


def _allowed(client: Client) -> None:
    """Make the directory of the gateway, in which the user `etl` may write too."""
    client.mkdirs(LISTED, 0o770, True)
    client.set_owner(LISTED, "lakegate", "lakegate")
    client.modify_acl_entries(
        LISTED,
        [
            AclEntry("user", "access", "rwx", "etl"),
            *(AclEntry("user", "default", "rwx", name) for name in ("etl", "lakegate")),
        ],
    )


@pytest.fixture(scope="module")
def world(server: Hdfs) -> Iterator[World]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HADOOP_USER_NAME", "lakegate")
            world = World(stack.enter_context(_up(STORAGE_HDFS_ROOTS=server.url(LISTED))))
        yield world
        world.close()


def test_spark_writes_reads_and_drops_a_table(
    server: Hdfs, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    superuser, home, name = Client(server.url()), tmp_path / "spark", unique("hdfs")
    _allowed(superuser)
    home.mkdir()
    profile = {"type": "hdfs", "location": server.url(f"{LISTED}/wh")}
    made = world.admin.post(WAREHOUSE, {"warehouse-name": name, "storage-profile": profile})
    assert made.status_code == 201, made.text
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    with started(structs.replace(world.ready, warehouse=name), home) as spark:
        _use(Session(spark, world.admin), superuser)


def _use(session: Session, superuser: Client) -> None:
    session.sql("CREATE NAMESPACE lake.ns")
    session.sql("CREATE TABLE lake.ns.t (id BIGINT, name STRING) USING iceberg")
    session.sql("INSERT INTO lake.ns.t VALUES (1, 'a'), (2, 'b')")
    session.sql("INSERT INTO lake.ns.t VALUES (3, 'c')")
    session.sql("DELETE FROM lake.ns.t WHERE id = 1")
    assert sorted(session.sql("SELECT id, name FROM lake.ns.t")) == [(2, "b"), (3, "c")]
    files = [each for each in superuser.list_status(f"{LISTED}/wh", True) if not each.isdir]
    owners = {Path(each.path).suffix: each.owner for each in files}
    assert (owners[".json"], owners[".parquet"], owners[".avro"]) == ("lakegate", "etl", "etl")
    session.sql("DROP TABLE lake.ns.t PURGE")
    with pytest.raises(SparkRefused):
        session.sql("SELECT * FROM lake.ns.t")
    until(lambda: not [each for each in superuser.list_status(LISTED, True) if not each.isdir])
