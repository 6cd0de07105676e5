# SPDX-License-Identifier: Apache-2.0
"""Settings of change events and their sinks (``LAKEGATE__EVENTS__…``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX, SECONDS, Secret, SettingsError


class EventSinkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One sink. `kind` decides which of the other fields it needs."""

    kind: Annotated[
        str,
        Meta(
            description="Kind of the sink: `nats`, `kafka`, `webhook`, or the name of an extension of the group "
            "`lakegate.events`."
        ),
    ]
    url: Annotated[
        str,
        Meta(
            description="Address of the sink: `nats://host:4222`, the brokers of Kafka `host:9092,host:9092`, or the "
            "URL of the webhook (`https`, or `http` on loopback)."
        ),
    ] = ""
    subject: Annotated[str, Meta(description="Subject of NATS, or topic of Kafka.")] = "lakegate"
    user: Annotated[str | None, Meta(description="User name for NATS.")] = None
    password: Annotated[Secret | None, Meta(description="Password for NATS.")] = None
    token: Annotated[Secret | None, Meta(description="Token for NATS.")] = None
    credentials_file: Annotated[str | None, Meta(description="Credentials file (`.creds`) for NATS.")] = None
    options_file: Annotated[
        str | None,
        Meta(
            description="File with further options of librdkafka for Kafka, one `name=value` on each line. Use it for "
            "SASL and TLS."
        ),
    ] = None
    signing_secret: Annotated[
        Secret | None, Meta(description="Key with which the requests of a webhook are signed, at least 24 characters.")
    ] = None
    timeout: Annotated[
        float,
        Meta(gt=0, le=100, description="Timeout in seconds of one request to the sink.", extra=SECONDS),
    ] = 5.0


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Change events. Without a sink no events are written."""

    sinks: Mapping[str, EventSinkSettings] = MappingProxyType({})
    """By name: letters, digits and `-`. In variables `_` stands for `-`."""
    credentials_vended: Annotated[
        bool, Meta(description="Write an event for each storage credential that a principal receives.")
    ] = False
    retention: Annotated[
        float,
        Meta(
            ge=0,
            description="Time in seconds for which delivered events are kept for `lakegate events replay`.",
            extra=SECONDS,
        ),
    ] = 604_800.0
    poll_interval: Annotated[
        float,
        Meta(gt=0, description="Time in seconds between two looks for events to deliver.", extra=SECONDS),
    ] = 0.5
    longest_pause: Annotated[
        float,
        Meta(gt=0, description="Longest time in seconds between two attempts at a sink that is down.", extra=SECONDS),
    ] = 60.0

    def check(self) -> None:
        """Raise SettingsError for a sink without an address, or a webhook without a signing secret."""
        problems: list[str] = []
        for name, sink in self.sinks.items():
            variable = f"{PREFIX}EVENTS__SINKS__{name.upper().replace('-', '_')}"
            if sink.kind in ("nats", "kafka", "webhook") and not sink.url:
                problems.append(f"{variable}__URL must be set for the kind {sink.kind}")
            if sink.kind == "webhook" and len(sink.signing_secret.reveal() if sink.signing_secret else "") < 24:
                problems.append(f"{variable}__SIGNING_SECRET must have at least 24 characters")
        if problems:
            raise SettingsError("\n".join(problems))
