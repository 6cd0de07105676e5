# SPDX-License-Identifier: Apache-2.0
"""Metrics of the delivery of change events and audit records. They have series only in gateways that deliver them."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

_SINK: Final = ("sink",)


class EventMetrics:
    """The metrics of all sinks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Define the metrics in the registry."""
        self._waiting = Gauge(
            "lakegate_events_waiting",
            "Number of events that wait for a sink.",
            _SINK,
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self._oldest = Gauge(
            "lakegate_events_oldest_seconds",
            "Age in seconds of the oldest event that waits for a sink, 0 without one.",
            _SINK,
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self._dead_letters = Gauge(
            "lakegate_events_dead_letters",
            "Number of events that a sink refused.",
            _SINK,
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self._delivered = Counter(
            "lakegate_events_delivered", "Number of events that a sink has stored.", _SINK, registry=registry
        )
        self._failures = Counter(
            "lakegate_events_failures",
            "Number of failed calls of a sink (unavailable) and refused events (refused).",
            ("sink", "reason"),
            registry=registry,
        )

    def events_delivered(self, sink: str, count: int) -> None:
        """Count delivered events."""
        self._delivered.labels(sink).inc(count)

    def event_failed(self, sink: str, reason: str) -> None:
        """Count a failed batch (`unavailable`) or a refused event (`refused`)."""
        self._failures.labels(sink, reason).inc()

    def events_counted(self, sink: str, waiting: int, dead_letters: int, oldest_seconds: float) -> None:
        """Set the numbers of waiting events and dead letters, and the age of the oldest waiting event."""
        self._waiting.labels(sink).set(waiting)
        self._dead_letters.labels(sink).set(dead_letters)
        self._oldest.labels(sink).set(oldest_seconds)


class AuditExportMetrics:
    """The backlog of the export. All processes read the same rows, so the latest value of any process counts.

    The series appear with the first value: a gateway without an export must not show an empty backlog.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Define the metrics in `registry`."""
        # A constant label: a gauge without a label would have a series from the beginning.
        self._waiting = Gauge(
            "lakegate_audit_export_waiting",
            "Number of sealed audit records that were not exported.",
            ("export",),
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self._oldest = Gauge(
            "lakegate_audit_export_oldest_seconds",
            "Age in seconds of the oldest sealed block of audit records that was not exported, 0 without one.",
            ("export",),
            multiprocess_mode="mostrecent",
            registry=registry,
        )

    def export_counted(self, export: str, records: int, oldest_seconds: float) -> None:
        """Set the number of records that wait for an export, and the age of the oldest block in seconds.

        `export` is the name of the export. The age counts from the sealing of the block.
        """
        self._waiting.labels(export).set(records)
        self._oldest.labels(export).set(oldest_seconds)
