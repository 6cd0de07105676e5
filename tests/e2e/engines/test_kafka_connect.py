# SPDX-License-Identifier: Apache-2.0
"""Iceberg's sink of Kafka Connect. Opt-in: `make test-engine ENGINE=kafka_connect`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.e2e.engines.connect_server import Connect, running
from tests.support.engines.engine_results import opt_in, row
from tests.support.engines.lake import catalog_of
from tests.support.servers import kafka_server
from tests.support.servers.kafka_server import KafkaServer
from tests.support.stack.world import Person, World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200), opt_in("kafka_connect")]

#: What the sink logs when the catalog refuses it.
_REFUSAL = re.compile(r"ForbiddenException|not found, skipping commit|NoSuch(?:Table|Warehouse|Namespace)Exception")
_SINK = "org.apache.iceberg.connect.IcebergSinkConnector"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Start a broker."""
    with kafka_server.running(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def connect(kafka: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Start a worker of Kafka Connect."""
    with running(kafka.bootstrap, tmp_path_factory.mktemp("connect")) as worker:
        yield worker


def _topics(kafka: KafkaServer, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    made = admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1) for name in names])
    for each in made.values():
        each.result(60)


def _send(kafka: KafkaServer, topic: str, ids: Iterable[int]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for id in ids:
        producer.produce(topic, json.dumps({"id": id, "name": f"n{id}"}).encode())
    assert producer.flush(60) == 0


def _config(world: World, person: Person, topic: str, control: str, table: str) -> dict[str, str]:
    """Return the configuration of the connector that docs/engines.md#kafka-connect shows."""
    return {
        "connector.class": _SINK,
        "tasks.max": "1",
        "topics": topic,
        "iceberg.tables": table,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": world.ready.catalog_uri,
        "iceberg.catalog.warehouse": str(world.ready.warehouse),
        "iceberg.catalog.rest.auth.type": "oauth2",
        "iceberg.catalog.token": person.token,
        "iceberg.catalog.token-refresh-enabled": "false",
        "iceberg.catalog.header.X-Iceberg-Access-Delegation": "vended-credentials",
        "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": "1000",
    }


def _snapshots(world: World, path: str) -> list[Any]:
    """Return the snapshots of a table; none if it does not exist."""
    found = world.admin.get(path)
    snapshots: list[Any] = found.json()["metadata"].get("snapshots", []) if found.status_code == 200 else []
    return snapshots


def _ids(world: World, ns: str, name: str) -> list[int]:
    ids: list[int] = catalog_of(world, world.admin).load_table((ns, name)).scan().to_arrow()["id"].to_pylist()
    return sorted(ids)


def test_six_cells(kafka: KafkaServer, connect: Connect, world: World, ns: str) -> None:
    versions = {"Kafka": kafka_server.VERSION, "Iceberg": "1.11.0"}
    topic, control, refused_control, revoked_control = (unique(name) for name in ("t", "c1", "c2", "c3"))
    _topics(kafka, topic, control, refused_control, revoked_control)
    path = f"{world.root}/namespaces/{ns}/tables/people"
    with row("kafka_connect", "Kafka Connect sink", versions, page="engines.md#kafka-connect") as made:
        with made.cell("connect"):
            assert _SINK in connect.plugins()
            connect.create("owner", _config(world, world.admin, topic, control, f"{ns}.people"))
            connect.wait("the task does not run", lambda: connect.task("owner")["state"] == "RUNNING")
        _send(kafka, topic, range(5))
        with made.cell("create"):
            connect.wait("no table", lambda: world.admin.head(path).status_code == 204, running="owner")
        with made.cell("write"):
            connect.wait("no snapshot", lambda: bool(_snapshots(world, path)), running="owner")
            assert _ids(world, ns, "people") == [0, 1, 2, 3, 4]
            connect.delete("owner")
        made.not_possible("read", "a sink only writes; the test reads the rows with PyIceberg")
        before = _snapshots(world, path)
        with made.cell("refused"):
            config = _config(world, world.stranger("sink"), topic, refused_control, f"{ns}.people")
            connect.create("stranger", config)
            connect.wait("the task has not failed", lambda: connect.task("stranger")["state"] == "FAILED")
            assert "NoSuchWarehouseException" in connect.task("stranger")["trace"]
            assert _snapshots(world, path) == before
            connect.delete("stranger")
        with made.cell("revoked"):
            writer = world.stranger("writer")
            id = str(world.admin.get(path).json()["metadata"]["table-uuid"])
            world.grant("modify", writer, "table", id)
            connect.create("writer", _config(world, writer, topic, revoked_control, f"{ns}.people"))
            connect.wait(
                "no snapshot of the writer", lambda: len(_snapshots(world, path)) > len(before), running="writer"
            )
            begin = len(connect.log.read_text(errors="replace"))
            world.revoke("modify", writer, "table", id)
            after = _snapshots(world, path)
            _send(kafka, topic, range(5, 10))
            connect.wait("no refusal", lambda: bool(_REFUSAL.search(connect.log.read_text(errors="replace")[begin:])))
            assert _snapshots(world, path) == after
            connect.delete("writer")
