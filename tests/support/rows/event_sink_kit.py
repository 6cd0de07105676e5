# SPDX-License-Identifier: Apache-2.0
"""The conformance kit for event sinks (`lakegate.conformance.events`), under the names that tests use."""

from __future__ import annotations

from gateway.events.port import EventSink
from lakegate.conformance.events import Read, SinkSubject, Stored, check_event_sink, event

__all__ = ["Stored", "conforms", "event"]


async def conforms(sink: EventSink, read: Read, *, too_large: int = 2_000_000) -> None:
    """Check all rules. The storage of the sink must be empty. Raises ConformanceError with the broken rule."""
    await check_event_sink(SinkSubject(sink, read, too_large))
