# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of each kind of event sink: `python -m tests.bench.event_sinks` compares gateways with and without.

A webhook in this process receives and drops the events. NATS and Kafka are real servers. The receivers' own time is
part of no process that is compared.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.traces import compare, dropped

_SINK: Final = "EVENTS__SINKS__DROPPED__"
_STREAM: Final = "lakegate.events"


@contextmanager
def _brokers() -> Iterator[dict[str, Mapping[str, str]]]:
    """Yield the settings of a sink of each broker, by its name in the tables."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    from tests.support.servers import kafka_server, nats_server

    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        nats_server.running(Path(first)) as nats,
        kafka_server.running(Path(second)) as kafka,
    ):
        asyncio.run(_make_stream(nats.url))
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("events", 4, 1)])["events"].result(60)
        yield {
            "a Kafka sink": _sink(KIND="kafka", BOOTSTRAP=kafka.bootstrap, TOPIC="events"),
            "a NATS sink": _sink(KIND="nats", URL=nats.url, SUBJECT=_STREAM),
        }


async def _make_stream(url: str) -> None:
    import nats
    from nats.js.api import StreamConfig

    client = await nats.connect(url)
    await client.jetstream().add_stream(StreamConfig(name="events", subjects=[_STREAM]))
    await client.close()


def _sink(**settings: str) -> dict[str, str]:
    return {_SINK + name: value for name, value in settings.items()}


def main() -> None:
    """Run the servers, measure, and print the tables."""
    with dropped() as address, _brokers() as brokers:
        webhook = _sink(KIND="webhook", URL=address, SECRET="a key of the measurement")
        batched = webhook | _sink(BATCHED="true")
        compare({"a webhook sink": webhook, "a batched webhook": batched, **brokers}, "no sink")


if __name__ == "__main__":
    main()
