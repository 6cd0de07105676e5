# SPDX-License-Identifier: Apache-2.0
"""Open the sinks of change events that are in the settings, and start the delivery to each.

A package provides a sink as an entry point of the group `lakegate.events`. The entry point refers to a function of the
sink's name and settings, which returns a `gateway.events.port.EventSink` with this name.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TypeVar

from gateway.assembly.adapters import open_database
from gateway.assembly.extensions import ExtensionGroup, find_extension
from gateway.assembly.traced_tasks import traced_sink
from gateway.db.engine.database import Database
from gateway.events.port import EventSink
from gateway.features.events.event_delivery import EventDelivery, EventKeeping, Pace
from gateway.settings import Secret, Settings, certificate_sources
from gateway.settings.events import BUILT_IN, EventSinkSettings
from gateway.settings.postgres import asyncpg_url
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.tracing import Tracer
from gateway.tls import Trust, for_postgres, trusted

_END_SECONDS = 2.0
"""Limit of the wait at the shutdown. A worker process that needs more than five seconds in total is killed."""
_Result = TypeVar("_Result")


def open_sink(name: str, sink: EventSinkSettings, trust: Trust) -> EventSink:
    """Return the sink `name` without connecting. Raises NoSuchExtension, and the errors of a sink from an installed
    package.
    """
    match sink.kind:
        case "nats":
            from gateway.events.nats import NatsSink, NatsTarget

            tls = trust.context if sink.tls or (sink.url or "").startswith("tls://") else None
            return NatsSink(
                name,
                NatsTarget(
                    url=sink.url or "",
                    subject=sink.subject or "",
                    timeout=sink.timeout,
                    user=sink.user,
                    password=_revealed(sink.password),
                    token=_revealed(sink.token),
                    credentials_file=sink.credentials_file,
                    tls=tls,
                ),
            )
        case "kafka":
            from gateway.events.kafka import KafkaSink, KafkaTarget

            options = {**({"ssl.ca.location": trust.bundle} if trust.bundle else {}), **sink.kafka_options()}
            return KafkaSink(
                name,
                KafkaTarget(
                    bootstrap=sink.bootstrap or "", topic=sink.topic or "", timeout=sink.timeout, options=options
                ),
            )
        case "webhook":
            from gateway.events.webhook import WebhookSink

            secret = (_revealed(sink.secret) or "").encode()
            return WebhookSink(
                name, sink.url or "", secret=secret, timeout=sink.timeout, batched=sink.batched, tls=trust.context
            )
        case "log":
            from gateway.events.log import LogSink

            return LogSink(name)
    found: EventSink = find_extension(ExtensionGroup.EVENTS, sink.kind, built_in=BUILT_IN)(name, sink)
    return found


def start_events(
    settings: Settings,
    trust: Trust,
    metrics: Metrics,
    database: Database,
    health: HealthMonitor,
    stack: AsyncExitStack,
    tracer: Tracer | None = None,
) -> None:
    """Start the delivery to each sink in this process, if there are sinks. Closing `stack` ends it.

    It also runs in read-only maintenance, because the changes that the events report are already committed. Raises the
    errors of `open_sink`.
    """
    events = settings.events
    if not events.sinks:
        return
    sessions = _open_sessions(settings, trust, stack)
    observer = metrics.events
    tasks: list[asyncio.Task[None]] = []
    stack.push_async_callback(_end, tasks)
    for name, sink in events.sinks.items():
        pace = Pace(
            batch=sink.batch_size,
            # A sink may send the events of a batch one after another, each with the whole timeout.
            call=sink.timeout * (sink.batch_size + 1),
            min_backoff=events.min_backoff,
            max_backoff=events.max_backoff,
        )
        opened = traced_sink(open_sink(name, sink, trust), tracer)
        delivery = EventDelivery(database, opened, observer=observer, pace=pace, sessions=sessions)
        health.register("events", name, delivery.check, required=False, shown="sinks")
        tasks.append(asyncio.create_task(delivery.run(), name=f"events {name}"))
    keeping = EventKeeping(
        database,
        events.sink_names(),
        observer=observer,
        retention=timedelta(seconds=events.retention),
        # All worker processes of a gateway have the same parent, so its process id identifies the gateway.
        gateway=f"{socket.gethostname()} {os.getppid()}",
        sessions=sessions,
    )
    tasks.append(asyncio.create_task(keeping.run(), name="events kept"))


async def on_database(settings: Settings, work: Callable[[Database], Awaitable[_Result]]) -> _Result:
    """Return the result of `work` on the database, for `lakegate events`. Raises the errors of `open_database`."""
    async with AsyncExitStack() as stack:
        return await work(await open_database(settings, trusted(*certificate_sources()), stack))


def _open_sessions(settings: Settings, trust: Trust, stack: AsyncExitStack) -> Database:
    """Return the primary database with one connection for each sink, and one for the worker that counts events. It
    connects at its first use.

    A sink occupies its connection while it is called. If sinks shared the connections of requests, sinks that hang
    could occupy all of them.
    """
    sessions = Database(
        asyncpg_url(settings.write_url()),
        # `Database` opens up to twice as many connections as `pool_size`.
        pool_size=(len(settings.events.sinks) + 2) // 2,
        acquire_timeout=settings.pg_acquire_timeout,
        tls=for_postgres(settings.postgres_tls_mode(), trust, settings.pg_ssl_root_cert),
        direct_reads=False,
    )
    stack.push_async_callback(sessions.close)
    return sessions


def _revealed(secret: Secret | None) -> str | None:
    return secret.reveal() if secret else None


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel all tasks. Wait a limited time until they have closed their sinks."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_END_SECONDS)
