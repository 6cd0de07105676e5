# SPDX-License-Identifier: Apache-2.0
"""Metrics of the delivery of events and audit records, and of engine probes, which test that engines enforce
restrictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.access.engine_probes import Standing

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
    """Metrics of records that wait for an export. All processes read the same rows, so the latest value of any process
    is right.

    The series appear with the first value: a gateway without an export must not show that 0 records wait.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Define the metrics in `registry`."""
        # The gauge has a constant label, because a gauge without labels would export 0 before its first value.
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


class ProbeMetrics:
    """Metrics of the results of probes and the trust in engines. All processes read the same rows, so the latest value
    is right.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Define the metrics in `registry`."""
        self._results = Counter(
            "lakegate_engine_probes",
            "Number of results of probes, in which engines show that they enforce restrictions: passed or failed.",
            ("verdict",),
            registry=registry,
        )
        for verdict in ("passed", "failed"):
            self._results.labels(verdict)
        self._engines = Gauge(
            "lakegate_engine_probe_engines",
            "Number of engines that hold enforcer, by the state of their trust in a warehouse, as last counted: "
            "trusted, warned (an old grant without a probe), expiring, expired or failed.",
            ("state",),
            multiprocess_mode="mostrecent",
            registry=registry,
        )
        self._trust_end = Gauge(
            "lakegate_engine_probe_trust_end_timestamp_seconds",
            "Unix time at which the trust of an engine ends next without another probe; 0 if none ends.",
            multiprocess_mode="mostrecent",
            registry=registry,
        )

    def engine_probed(self, verdict: str) -> None:
        """Count one result of a probe of an engine: `passed` or `failed`."""
        self._results.labels(verdict).inc()

    def trust_counted(self, by_standing: Mapping[Standing, int], next_end: float) -> None:
        """Set the number of engines by standing, and the time at which the next trust ends (seconds since 1970; 0:
        none).

        A standing that is absent from `by_standing` is set to 0, so that an alert ends when the last engine with it was
        probed.
        """
        for standing in Standing:
            self._engines.labels(standing.value).set(by_standing.get(standing, 0))
        self._trust_end.set(next_end)
