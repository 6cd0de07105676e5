# SPDX-License-Identifier: Apache-2.0
"""Settings of traces (``LAKEGATE__TRACING__…``) and of the OTLP export of metrics (``LAKEGATE__METRICS_EXPORT__…``)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX, SECONDS, Secret, SettingsError


def headers_of(text: Secret | None, setting: str) -> dict[str, str]:
    """Return the headers in the text of a setting. Raises SettingsError, whose message lacks the text because it is a
    secret.
    """
    pairs = [each.partition("=") for each in ("" if text is None else text.reveal()).split(",") if each.strip()]
    if any(not name.strip() or not equals for name, equals, _ in pairs):
        raise SettingsError(f"{PREFIX}{setting} must be written `name=value`, separated by commas")
    return {name.strip(): value.strip() for name, _, value in pairs}


class Tracing(msgspec.Struct, frozen=True, kw_only=True):
    """Traces of requests. Without an endpoint, no trace is recorded and no library for traces is imported."""

    endpoint: Annotated[str, Meta(pattern="^https?://[^\\s@]+$")] | None = None
    """Address of an OpenTelemetry collector that receives traces by OTLP over HTTP, for example
    `http://localhost:4318/v1/traces`. If it is not set, there are no traces.
    """
    headers: Secret | None = None
    """Headers for the collector, written `name=value`, separated by commas."""
    sample_ratio: Annotated[float, Meta(ge=0, le=1)] = 0.05
    """Part of the traces that is recorded."""
    trust_clients: bool = False
    """Let the flag in the `traceparent` of a request decide whether it is recorded, in place of `SAMPLE_RATIO`. Every
    client that reaches the gateway can send it, also one without a token.
    """
    service_name: Annotated[str, Meta(min_length=1)] = "lakegate"
    """Name of this service in traces."""


class MetricsExport(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the OTLP export of metrics, which runs in addition to `/metrics`. Without an endpoint, nothing is
    exported.
    """

    endpoint: Annotated[str, Meta(pattern="^https?://[^\\s@]+$")] | None = None
    """Address of an OpenTelemetry collector that receives metrics by OTLP over HTTP, for example
    `http://localhost:4318/v1/metrics`. If it is not set, metrics are only served at `/metrics`.
    """
    headers: Secret | None = None
    """Headers for the collector, written `name=value`, separated by commas."""
    interval: Annotated[float, Meta(ge=0.1, extra=SECONDS)] = 60.0
    """Seconds between two exports of the metrics."""
    service_name: Annotated[str, Meta(min_length=1)] = "lakegate"
    """Name of this service in exported metrics."""
