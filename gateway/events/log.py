# SPDX-License-Identifier: Apache-2.0
"""Event sink that writes each event to the log, for development and for collectors of logs.

Log lines are not acknowledged. So this is the only sink that can lose events when the machine fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from gateway.events.cloud_events import structured
from gateway.events.port import Event

_log = structlog.get_logger("events.log")


class LogSink:
    """Writes each event as a structured CloudEvent in the log event `event.published`."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Return the unique name of the sink."""
        return self._name

    async def send(self, events: Sequence[Event]) -> None:
        """Write the events in this order. Raises EventRefused for an event that is not valid."""
        for event in events:
            _log.info("event.published", sink=self._name, cloud_event=structured(event).decode())

    async def check(self) -> None:
        """Return immediately: the log is always available."""

    async def close(self) -> None:
        """Return immediately: there is no connection."""
