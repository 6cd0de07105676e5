# SPDX-License-Identifier: Apache-2.0
"""Settings of the sinks that receive the catalog's change events."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from gateway.scope.endpoint import ANY_NETWORK, check_endpoint
from gateway.scope.errors import InvalidStorageProfile
from gateway.settings.env import PREFIX, SECONDS, Secret, SettingsError

BUILT_IN: Final = ("kafka", "log", "nats", "webhook")
_SECRET_BYTES: Final = 16
_FIXED_OPTIONS: Final = ("acks", "bootstrap.servers", "enable.idempotence", "request.required.acks")
_SECRET_OPTIONS: Final = ("sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password")


class EventSinkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One sink. Which fields it needs depends on its kind."""

    kind: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9_-]*$",
            description="Kind of the sink: `nats` (JetStream), `kafka`, `webhook`, `log`, or the name of a sink that "
            "an installed package provides.",
        ),
    ]
    url: Annotated[
        str | None,
        Meta(
            description="Address of NATS or of the webhook. A webhook needs `https://`, except on a loopback address."
        ),
    ] = None
    subject: Annotated[str | None, Meta(description="Subject of NATS. A stream of the server must store it.")] = None
    bootstrap: Annotated[str | None, Meta(description="Brokers of Kafka: `host:port`, separated by commas.")] = None
    topic: Annotated[str | None, Meta(description="Topic of Kafka. It must exist.")] = None
    user: Annotated[str | None, Meta(description="User name for NATS, or `sasl.username` of Kafka.")] = None
    password: Annotated[Secret | None, Meta(description="Password for NATS, or `sasl.password` of Kafka.")] = None
    token: Annotated[Secret | None, Meta(description="Token for NATS.")] = None
    credentials_file: Annotated[str | None, Meta(description="File of credentials (`.creds`) for NATS.")] = None
    secret: Annotated[
        Secret | None,
        Meta(description="Key of the webhook's signatures, at least 16 bytes. The receiver needs the same key."),
    ] = None
    batched: Annotated[
        bool,
        Meta(
            description="Send several events in one request to the webhook, as `application/cloudevents-batch+json`. "
            "It saves most of the cost of a webhook. The receiver must accept this form."
        ),
    ] = False
    options: Annotated[
        tuple[str, ...],
        Meta(description="Options of librdkafka for Kafka, each `name=value`, such as `security.protocol=SASL_SSL`."),
    ] = ()
    tls: Annotated[bool, Meta(description="Require TLS for NATS.")] = False
    timeout: Annotated[
        float,
        Meta(
            gt=0, le=300, description="Timeout in seconds of one message or run of messages to the sink.", extra=SECONDS
        ),
    ] = 10.0
    batch_size: Annotated[
        int, Meta(ge=1, le=1000, description="Maximum number of events that are sent to the sink at once.")
    ] = 200

    def kafka_options(self) -> dict[str, str]:
        """Return the options of librdkafka with the user name and the password. Raises ValueError for a wrong form."""
        found: dict[str, str] = {}
        for option in self.options:
            name, equals, value = (part.strip() for part in option.partition("="))
            if not (name and equals):
                raise ValueError("each option must be name=value")
            if name in _FIXED_OPTIONS:
                raise ValueError(f"the option {name} cannot be set, because it keeps events from being lost")
            if name in _SECRET_OPTIONS:
                raise ValueError(f"the option {name} is a secret; set PASSWORD, or name a file")
            found[name] = value
        if self.user is not None:
            found["sasl.username"] = self.user
        if self.password is not None:
            found["sasl.password"] = self.password.reveal()
        return found

    def problems(self) -> list[str]:
        """Return one text for each setting that is missing or unusable."""
        needed: dict[str, object] = {}
        wrong: list[str] = []
        match self.kind:
            case "nats":
                needed = {"URL": self.url, "SUBJECT": self.subject}
                if self.url and not self.url.startswith(("nats://", "tls://")):
                    wrong.append("URL must begin with nats:// or tls://")
            case "kafka":
                needed = {"BOOTSTRAP": self.bootstrap, "TOPIC": self.topic}
                try:
                    self.kafka_options()
                except ValueError as error:
                    wrong.append(f"OPTIONS: {error}")
            case "webhook":
                needed = {"URL": self.url, "SECRET": self.secret}
                if self.secret and len(self.secret.reveal().encode()) < _SECRET_BYTES:
                    wrong.append(f"SECRET must have at least {_SECRET_BYTES} bytes")
                if self.url and (problem := _webhook_problem(self.url)):
                    wrong.append(f"URL {problem}")
        return [*(f"{name} must be set" for name, value in needed.items() if not value), *wrong]


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Change events. Without sinks, no event is stored or sent."""

    sinks: Mapping[str, EventSinkSettings] = MappingProxyType({})
    credentials_vended: Annotated[
        bool, Meta(description="Write an event for each storage credential that a principal receives.")
    ] = False
    retention: Annotated[
        float,
        Meta(
            ge=0,
            description="Time in seconds for which delivered events and dead letters are kept for `lakegate events "
            "replay`.",
            extra=SECONDS,
        ),
    ] = 604_800.0
    poll_interval: Annotated[
        float,
        Meta(gt=0, le=60, description="Interval in seconds between two queries for events to send.", extra=SECONDS),
    ] = 0.5
    min_backoff: Annotated[
        float,
        Meta(gt=0, description="Wait in seconds after the first failure of a sink. Each failure doubles it.",
             extra=SECONDS),
    ] = 0.5  # fmt: skip
    max_backoff: Annotated[
        float, Meta(gt=0, description="Maximum wait in seconds after a failure of a sink.", extra=SECONDS)
    ] = 60.0

    def sink_names(self) -> tuple[str, ...]:
        """Return the names of all sinks, sorted."""
        return tuple(sorted(self.sinks))

    def require_usable(self) -> None:
        """Raise SettingsError with a line for each problem of a sink."""
        lines = [
            f"{PREFIX}EVENTS__SINKS__{name.upper().replace('-', '_')}__{problem}"
            for name, sink in self.sinks.items()
            for problem in sink.problems()
        ]
        if self.min_backoff > self.max_backoff:
            lines.append(f"{PREFIX}EVENTS__MIN_BACKOFF must not exceed {PREFIX}EVENTS__MAX_BACKOFF")
        if lines:
            raise SettingsError("\n".join(lines))


def _webhook_problem(url: str) -> str | None:
    """Return the fault of a webhook's URL, None for a usable one.

    The operator sets it, so private addresses are allowed. Metadata services are not: no webhook can be there.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        check_endpoint(f"{parts.scheme}://{parts.netloc}", "url", ANY_NETWORK)
    except (ValueError, InvalidStorageProfile):
        return "must be https://host[:port]/path without a user, and not the address of a metadata service"
    if parts.scheme == "https" or _is_loopback(host):
        return None
    return "must begin with https://; http:// is allowed on a loopback address only"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
