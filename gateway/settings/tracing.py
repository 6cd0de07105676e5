# SPDX-License-Identifier: Apache-2.0
"""Settings of traces (``LAKEGATE__TRACING__…``), which the gateway sends to an OpenTelemetry collector."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import Secret


class Tracing(msgspec.Struct, frozen=True, kw_only=True):
    """Traces of requests. Without an endpoint, no trace is recorded and no library for traces is imported."""

    endpoint: Annotated[
        Annotated[str, Meta(pattern=r"^https?://[^\s@]+$")] | None,
        Meta(
            description="Address of an OpenTelemetry collector that receives traces by OTLP over HTTP, for example "
            "`http://localhost:4318/v1/traces`. If it is not set, there are no traces.",
        ),
    ] = None
    headers: Annotated[
        Secret | None,
        Meta(description="Headers for the collector, written `name=value`, separated by commas."),
    ] = None
    sample_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Part of the traces that is recorded. For a request with a `traceparent`, the flag of its "
            "client decides instead.",
        ),
    ] = 1.0
    service_name: Annotated[str, Meta(min_length=1, description="Name of this service in traces.")] = "lakegate"
