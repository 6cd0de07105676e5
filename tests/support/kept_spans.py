# SPDX-License-Identifier: Apache-2.0
"""A tracer that keeps its spans."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gateway.telemetry.span_sender import Client
from gateway.telemetry.tracing import Tracer


class Kept:
    """Client that keeps all spans, decoded by OpenTelemetry's own types."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        return None

    async def __call__(self, body: bytes) -> bytes:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return b""


def new_tracer(
    client: Client, counts: Counter[str] | None = None, ratio: float = 1.0, *, trust_clients: bool = False
) -> Tracer:
    counted: Counter[str] = Counter() if counts is None else counts
    return Tracer(
        client,
        sample_ratio=ratio,
        service_name="lakegate",
        count=lambda outcome, number: counted.update({outcome: number}),
        trust_clients=trust_clients,
    )
