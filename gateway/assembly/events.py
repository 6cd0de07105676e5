# SPDX-License-Identifier: Apache-2.0
"""Open the sinks of change events, and start their delivery. `stack` ends both.

A package provides a further kind of sink as an entry point of the group `lakegate.events`. It refers to a function with
the parameters `name` and `settings` (`EventSinkSettings`) that returns a `gateway.events.port.EventSink`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from gateway.assembly.extensions import ExtensionGroup, NoSuchExtension, find_extension
from gateway.db.engine import Database
from gateway.db.event_outbox import EventOutbox
from gateway.events.kafka import FIXED_OPTIONS, KafkaSink, KafkaTarget
from gateway.events.nats import NatsSink, NatsTarget
from gateway.events.port import EventSink
from gateway.events.webhook import WebhookSink
from gateway.settings import Settings
from gateway.settings.env import Secret, SettingsError
from gateway.settings.events import EventSinkSettings
from gateway.tasks.event_delivery import DeliveryObserver, EventCleaner, EventDelivery, Pace
from gateway.telemetry.health import HealthMonitor
from gateway.tls import Trust

BUILT_IN = ("kafka", "nats", "webhook")


def event_outbox(settings: Settings) -> EventOutbox | None:
    """Return the outbox that changes write into; None without a sink. Raises SettingsError."""
    settings.events.check()
    if not settings.events.sinks:
        return None
    host = urlsplit(settings.base_uri or "").hostname or "lakegate"
    return EventOutbox(
        source=f"uri:iceberg-catalog-service:{host}",
        sinks=tuple(settings.events.sinks),
        credentials_vended=settings.events.credentials_vended,
    )


def open_event_sinks(settings: Settings, trust: Trust, stack: AsyncExitStack) -> list[EventSink]:
    """Open all configured sinks, without connecting. Raises SettingsError and NoSuchExtension."""
    sinks = [_open(name, at, trust) for name, at in settings.events.sinks.items()]
    for sink in sinks:
        stack.push_async_callback(sink.close)
    return sinks


def watch_event_sinks(health: HealthMonitor, sinks: list[EventSink]) -> None:
    """Report the status of the sinks in `/health`. A sink that is down does not make the gateway unhealthy."""
    for sink in sinks:
        health.register("events", sink.name, sink.check, required=False)


def start_event_delivery(
    settings: Settings, database: Database, sinks: list[EventSink], observer: DeliveryObserver, stack: AsyncExitStack
) -> None:
    """Start the delivery to each sink, and the removal of old events."""
    if not sinks:
        return
    pace = Pace(every=settings.events.poll_interval, longest_pause=settings.events.longest_pause)
    for sink in sinks:
        delivery = EventDelivery(database, sink, observer=observer, pace=pace)
        # A batch that is being sent is sent again by the next process: cancelling loses nothing.
        stack.push_async_callback(_ended, asyncio.create_task(delivery.run(), name=f"events {sink.name}"))
    cleaner = EventCleaner(database, keep_seconds=settings.events.retention)
    stack.callback(asyncio.create_task(cleaner.run(), name="event cleaner").cancel)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _open(name: str, at: EventSinkSettings, trust: Trust) -> EventSink:
    match at.kind:
        case "nats":
            tls = trust.context if at.url.startswith(("tls://", "wss://")) else None
            return NatsSink(
                name,
                NatsTarget(
                    url=at.url,
                    subject=at.subject,
                    timeout=at.timeout,
                    user=at.user,
                    password=_revealed(at.password),
                    token=_revealed(at.token),
                    credentials_file=at.credentials_file,
                    tls=tls,
                ),
            )
        case "kafka":
            options = _options(name, at.options_file)
            return KafkaSink(name, KafkaTarget(bootstrap=at.url, topic=at.subject, timeout=at.timeout, options=options))
        case "webhook":
            return WebhookSink(
                name,
                _webhook_url(name, at.url),
                secret=(_revealed(at.signing_secret) or "").encode(),
                timeout=at.timeout,
                tls=trust.context,
            )
        case _:
            return _provided(name, at)


def _provided(name: str, at: EventSinkSettings) -> EventSink:
    sink: EventSink = find_extension(ExtensionGroup.EVENTS, at.kind, built_in=BUILT_IN)(name=name, settings=at)
    if getattr(sink, "name", None) != name:
        raise NoSuchExtension(f"The extension {at.kind!r} returned no event sink with the name {name!r}.")
    return sink


def _webhook_url(name: str, url: str) -> str:
    """Return the URL. Raises SettingsError unless its requests are encrypted or stay on this machine."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise SettingsError(f"the event sink {name}: the URL of a webhook must begin with https://, not {url!r}")
    return url


def _options(name: str, path: str | None) -> dict[str, str]:
    """Return the options of librdkafka in a file. Raises SettingsError for one that would lose events."""
    if path is None:
        return {}
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise SettingsError(f"the event sink {name}: its options file cannot be read: {error}") from None
    options: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        option, equals, value = line.partition("=")
        if not equals or option.strip() in FIXED_OPTIONS:
            raise SettingsError(
                f"the event sink {name}: line {number} of {path} must be `name=value`, and none of "
                f"{', '.join(sorted(FIXED_OPTIONS))}, which the gateway sets"
            )
        options[option.strip()] = value.strip()
    return options


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()
