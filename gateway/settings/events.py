# SPDX-License-Identifier: Apache-2.0
"""Settings of the sinks that receive the catalog's change events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from gateway.scope.endpoint import ANY_NETWORK, check_endpoint
from gateway.scope.errors import InvalidStorageProfile
from gateway.settings.env import PREFIX, SECONDS, PositiveSeconds, SecondsOrZero, Secret, SettingsError

BUILT_IN: Final = ("kafka", "log", "nats", "webhook")
_SECRET_BYTES: Final = 16
_FIXED_OPTIONS: Final = ("acks", "bootstrap.servers", "enable.idempotence", "request.required.acks")
_SECRET_WORDS: Final = ("jaas", "password", "passphrase", "secret")
_SECRET_VALUE: Final = re.compile(r"PRIVATE KEY-|://[^/\s]*:[^/\s]*@")
_PUBLIC_PEM: Final = ("ssl.ca.pem", "ssl.certificate.pem")


class EventSinkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One sink. Which fields it needs depends on its kind."""

    kind: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]*$")]
    """Kind of the sink: `nats` (JetStream), `kafka`, `webhook`, `log`, or the name of a sink that an installed package
    provides.
    """
    url: str | None = None
    """Address of NATS or of the webhook. A webhook needs `https://`, except on a loopback address."""
    subject: str | None = None
    """Subject of NATS. A stream of the server must store it."""
    bootstrap: str | None = None
    """Brokers of Kafka: `host:port`, separated by commas."""
    topic: str | None = None
    """Topic of Kafka. It must exist."""
    user: str | None = None
    """User name for NATS, or `sasl.username` of Kafka."""
    password: Secret | None = None
    """Password for NATS, or `sasl.password` of Kafka."""
    token: Secret | None = None
    """Token for NATS."""
    credentials_file: str | None = None
    """File of credentials (`.creds`) for NATS."""
    secret: Secret | None = None
    """Key of the webhook's signatures, at least 16 bytes. The receiver needs the same key."""
    batched: bool = False
    """Send several events in one request to the webhook, as `application/cloudevents-batch+json`. It saves most of the
    cost of a webhook. The receiver must accept this form.
    """
    options: tuple[str, ...] = ()
    """Options of librdkafka for Kafka, each `name=value`, such as `security.protocol=SASL_SSL`."""
    secret_options: Secret | None = None
    """Secret options of librdkafka for Kafka, as a JSON object of texts, such as `{"sasl.oauthbearer.client.secret":
    "..."}`.
    """
    tls: bool = False
    """Require TLS for NATS."""
    timeout: Annotated[float, Meta(gt=0, le=300, extra=SECONDS)] = 10.0
    """Timeout in seconds of one message or run of messages to the sink."""
    batch_size: Annotated[int, Meta(ge=1, le=1000)] = 200
    """Maximum number of events that are sent to the sink at once."""

    def kafka_options(self) -> dict[str, str]:
        """Return the options of librdkafka, including the secret ones. Raises ValueError, whose message contains no
        value.
        """
        found: dict[str, str] = {}
        for option in self.options:
            name, equals, value = (part.strip() for part in option.partition("="))
            if not (name and equals):
                raise ValueError("OPTIONS: each option must be name=value")
            _require_free(name, "OPTIONS")
            if _is_secret_option(name) or _SECRET_VALUE.search(value):
                raise ValueError(f"OPTIONS: the option {name} is a secret; set SECRET_OPTIONS, or name a file")
            found[name] = value
        for name, value in self._secret_options().items():
            _require_free(name, "SECRET_OPTIONS")
            found[name] = value
        if self.user is not None:
            found["sasl.username"] = self.user
        if self.password is not None:
            found["sasl.password"] = self.password.reveal()
        return found

    def _secret_options(self) -> dict[str, str]:
        if self.secret_options is None:
            return {}
        try:
            return msgspec.json.decode(self.secret_options.reveal(), type=dict[str, str])
        except (msgspec.DecodeError, UnicodeError):
            # The error of the decoder could contain a part of the secret.
            raise ValueError("SECRET_OPTIONS must be a JSON object whose values are texts") from None

    def problems(self) -> list[str]:
        """Return the problems of this sink, one text each: settings that are missing or unusable."""
        needed: dict[str, object] = {}
        wrong: list[str] = []
        match self.kind:
            case "nats":
                needed = {"URL": self.url, "SUBJECT": self.subject}
                if self.url and not self.url.startswith(("nats://", "tls://")):
                    wrong.append("URL must begin with nats:// or tls://")
                if self.url and "@" in self.url:
                    wrong.append("URL must not contain a user, a password or a token; set USER and PASSWORD, or TOKEN")
            case "kafka":
                needed = {"BOOTSTRAP": self.bootstrap, "TOPIC": self.topic}
                try:
                    self.kafka_options()
                except ValueError as error:
                    wrong.append(str(error))
            case "webhook":
                needed = {"URL": self.url, "SECRET": self.secret}
                if self.secret and len(self.secret.reveal().encode()) < _SECRET_BYTES:
                    wrong.append(f"SECRET must have at least {_SECRET_BYTES} bytes")
                if self.url and (problem := webhook_problem(self.url)):
                    wrong.append(f"URL {problem}")
        return [*(f"{name} must be set" for name, value in needed.items() if not value), *wrong]


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Change events. Without sinks, no event is stored or sent."""

    sinks: Mapping[str, EventSinkSettings] = MappingProxyType({})
    credentials_vended: bool = False
    """Write an event for each storage credential that a principal receives."""
    retention: SecondsOrZero = 604_800.0
    """Time in seconds for which delivered events and dead letters are kept for `lakegate events replay`."""
    min_backoff: PositiveSeconds = 0.5
    """Wait in seconds after the first failure of a sink. Each failure doubles it."""
    max_backoff: PositiveSeconds = 60.0
    """Maximum wait in seconds after a failure of a sink."""

    def sink_names(self) -> tuple[str, ...]:
        """Return the names of all sinks, sorted."""
        return tuple(sorted(self.sinks))

    def require_usable(self) -> None:
        """Raise SettingsError if a sink has problems. The message has a line for each."""
        lines = [
            f"{PREFIX}EVENTS__SINKS__{name.upper().replace('-', '_')}__{problem}"
            for name, sink in self.sinks.items()
            for problem in sink.problems()
        ]
        if self.min_backoff > self.max_backoff:
            lines.append(f"{PREFIX}EVENTS__MIN_BACKOFF must not exceed {PREFIX}EVENTS__MAX_BACKOFF")
        if lines:
            raise SettingsError("\n".join(lines))


def _require_free(name: str, setting: str) -> None:
    """Raise ValueError for an option of librdkafka that the gateway sets itself, or for which a setting exists."""
    if name.lower() in _FIXED_OPTIONS:
        raise ValueError(f"{setting}: the option {name} cannot be set, because it keeps events from being lost")
    if name.lower() == "sasl.password":
        raise ValueError(f"{setting}: the option {name} is a secret with a setting of its own; set PASSWORD")


def _is_secret_option(name: str) -> bool:
    """Return True if the option of librdkafka contains a secret. The rule also covers unknown options of later
    versions.

    Source: https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md. Options that end in `pem` contain
    private keys, except for two with certificates.
    """
    lowered = name.lower()
    if any(word in lowered for word in _SECRET_WORDS):
        return True
    return lowered == "ssl_key" or (lowered.endswith(".pem") and lowered not in _PUBLIC_PEM)


def webhook_problem(url: str) -> str | None:
    """Return the fault in the URL of a webhook, which is a sink or a verifier. Return None if the URL is usable.

    The operator sets the URL, so private addresses are allowed. Addresses of metadata services are not, because no
    webhook can have one.
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
