# SPDX-License-Identifier: Apache-2.0
"""Metrics of the probes of engines. No label names an engine or a warehouse: their number has no limit."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.access.engine_probes import Standing


class ProbeMetrics:
    """The results of probes, and the trust of engines. All processes read the same rows, so the latest value counts."""

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
        """Set the number of engines by standing, and the next end of trust in seconds since 1970, 0 without one.

        A standing that is absent from `by_standing` is set to 0: an alert must end when its last engine was probed.
        """
        for standing in Standing:
            self._engines.labels(standing.value).set(by_standing.get(standing, 0))
        self._trust_end.set(next_end)
