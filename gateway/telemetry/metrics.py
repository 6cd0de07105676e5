# SPDX-License-Identifier: Apache-2.0
"""Define every Prometheus metric of a gateway, as one object for each process.

Label values come from closed sets or are operation names, so clients cannot increase the number of time series.

With several worker processes, the values are in memory-mapped files. The process that answers a scrape reads the files
of all workers. The library selects this mode at its first import, if the variable PROMETHEUS_MULTIPROC_DIR is set. The
process that starts the workers sets it to an empty directory at each start.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from gateway.telemetry.task_metrics import AuditExportMetrics, EventMetrics, ProbeMetrics

DeterminedBy = Literal["openfga", "opa", "both", "none"]
Engine = Literal["openfga", "opa", "total"]
Durability = Literal["transaction", "group", "buffered", "refused"]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# Buckets, in seconds, for requests and object stores: a cached load takes about a millisecond, a commit may take
# seconds.
_REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Buckets for decisions: half a millisecond is fast for an engine on the same machine. More than a second indicates a
# fault.
_DECISION_BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0)

# Buckets for tasks: deleting a row takes milliseconds, deleting the files of a large table takes hours.
_TASK_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)


class Metrics:
    """All metrics of a process. Create one object per process: the library refuses a second one for a registry."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, *, registry: CollectorRegistry | None = None, multiprocess_dir: Path | None = None) -> None:
        """Define all metrics.

        `multiprocess_dir` is the directory with the values of all workers; None for a single process. Raises
        `ValueError` if it is given and the library was imported in the mode for a single process. Each worker would
        then report only its own values, and counters would jump between scrapes.
        """
        if multiprocess_dir is not None and values.ValueClass is values.MutexValue:
            raise ValueError(
                "PROMETHEUS_MULTIPROC_DIR must be in the environment before the first import of prometheus_client"
            )
        self._multiprocess_dir = multiprocess_dir
        self._registry = registry if registry is not None else CollectorRegistry()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._define_requests()
        self._define_decisions()
        self._define_audit_and_tuples()
        self._define_drift()
        self._define_tasks()
        self._define_scope()
        self._define_shares()
        self.events = EventMetrics(self._registry)
        self.audit_export = AuditExportMetrics(self._registry)
        self.probes = ProbeMetrics(self._registry)
        self._define_spans()
        self._define_verifiers()

    def _define_requests(self) -> None:
        self._requests = Counter(
            "lakegate_http_requests",
            "Number of responses, by method, operation and status; operation 'unmatched': no route matches.",
            ("method", "operation", "status"),
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "lakegate_http_request_duration_seconds",
            "Seconds from the first byte of a request to the last byte of its response.",
            ("operation",),
            buckets=_REQUEST_BUCKETS,
            registry=self._registry,
        )
        self._sts_seconds = Histogram(
            "lakegate_sts_duration_seconds",
            "Seconds of one call to the token service (STS) that mints storage credentials.",
            ("outcome",),
            buckets=_REQUEST_BUCKETS,
            registry=self._registry,
        )

    def _define_decisions(self) -> None:
        self._decisions = Counter(
            "lakegate_decisions",
            "Number of decisions of the door, by operation, outcome, and the engine that determined it.",
            ("operation", "outcome", "determined_by"),
            registry=self._registry,
        )
        self._policy_problems = Counter(
            "lakegate_data_policy_problems",
            "Number of problems of data policies that could not be applied to a table as written.",
            registry=self._registry,
        )
        self._answers_disagreed = Counter(
            "lakegate_answers_disagreed",
            "Number of answers about access that were not sent, because OpenFGA does not confirm them.",
            registry=self._registry,
        )
        self._decision_seconds = Histogram(
            "lakegate_decision_duration_seconds",
            "Seconds of one decision, by engine; 'total' is the whole decision with both engines.",
            ("engine",),
            buckets=_DECISION_BUCKETS,
            registry=self._registry,
        )

        self._cache_lookups = Counter(
            "lakegate_memory_lookups",
            "Number of look-ups in the caches of the worker processes, by cache and outcome (hit, miss).",
            ("memory", "outcome"),
            registry=self._registry,
        )

        self._document_bytes = Gauge(
            "lakegate_document_cache_bytes",
            "Bytes of cached metadata documents in all worker processes.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )

    def _define_audit_and_tuples(self) -> None:
        self._audit_records = Counter(
            "lakegate_audit_records",
            "Number of audit records, by the way in which they were written.",
            ("durability",),
            registry=self._registry,
        )
        self._outbox_pending = Gauge(
            "lakegate_outbox_pending",
            "Number of tuple keys in the outbox that are not yet delivered to OpenFGA.",
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )
        self._tuple_seconds = Histogram(
            "lakegate_tuple_delivery_duration_seconds",
            "Seconds from the commit of an outbox row to OpenFGA's confirmation.",
            buckets=_REQUEST_BUCKETS,
            registry=self._registry,
        )

    def _define_drift(self) -> None:
        self._drift_found = Counter(
            "lakegate_drift_found",
            "Number of differences found between OpenFGA's tuples and the rows of PostgreSQL, by kind.",
            ("kind",),
            registry=self._registry,
        )
        self._drift_repaired = Counter(
            "lakegate_drift_repaired",
            "Number of handled differences between OpenFGA's tuples and PostgreSQL, by action.",
            ("action",),
            registry=self._registry,
        )
        self._drift_checked = Gauge(
            "lakegate_drift_last_checked_timestamp_seconds",
            "Unix time at which this gateway last read OpenFGA's change feed to its end; one gateway at a time reads.",
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )

    def _define_shares(self) -> None:
        self._shares_used = Gauge(
            "lakegate_share_in_use",
            "Request slots in use in all worker processes, by share and lane (users, engines).",
            ("share", "lane"),
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._shares_waited = Counter(
            "lakegate_share_waits",
            "Number of requests that waited because the principal or all principals together used the share.",
            ("share", "lane"),
            registry=self._registry,
        )
        self._shares_refused = Counter(
            "lakegate_share_refusals",
            "Number of requests that got 429 because their principal used its share, or the process was overloaded.",
            ("share", "lane"),
            registry=self._registry,
        )

    def _define_tasks(self) -> None:
        self._tasks = Gauge(
            "lakegate_tasks",
            "Number of background tasks that have not ended, as last counted; 'scheduled' includes future tasks.",
            ("queue", "status"),
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )
        self._task_attempts = Counter(
            "lakegate_task_attempts",
            "Number of runs of background tasks, by queue and outcome.",
            ("queue", "outcome"),
            registry=self._registry,
        )
        self._task_seconds = Histogram(
            "lakegate_task_duration_seconds",
            "Seconds of one run of a background task.",
            ("queue",),
            buckets=_TASK_BUCKETS,
            registry=self._registry,
        )
        self._counted: set[tuple[str, str]] = set()
        self._live_credentials = Gauge(
            "lakegate_live_credentials",
            "Number of credentials that left the gateways and have not expired, as last counted.",
            ("provider", "level"),
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )
        self._credentials_counted: set[tuple[str, str]] = set()

    def _define_spans(self) -> None:
        self._spans = Counter(
            "lakegate_trace_spans",
            "Number of spans of traces, by outcome: sent, dropped (the queue was full) or failed (the collector).",
            ("outcome",),
            registry=self._registry,
        )

    def _define_scope(self) -> None:
        self._scope_warehouses = Gauge(
            "lakegate_scope_warehouses",
            "Number of active warehouses by the canary's verdict on their store; 'none': no verdict for the profile.",
            ("verdict",),
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )
        self._scope_oldest = Gauge(
            "lakegate_scope_oldest_verdict_timestamp_seconds",
            "Unix time of the oldest verdict of the canary on the store of an active warehouse; 0 without one.",
            multiprocess_mode="mostrecent",
            registry=self._registry,
        )
        self._scope_attempts = Counter(
            "lakegate_scope_attempts",
            "Number of the canary's attempts to leave a credential's scope, by result: refused, reached or unclear.",
            ("result",),
            registry=self._registry,
        )

    def _define_verifiers(self) -> None:
        self._verifier_seconds = Histogram(
            "lakegate_verifier_duration_seconds",
            "Seconds of one question to a verifier, by verifier and outcome (approved, rejected, pending, failed).",
            ("verifier", "outcome"),
            buckets=_REQUEST_BUCKETS,
            registry=self._registry,
        )

    def _child(self, metric: Any, *labels: str) -> Any:
        """Return the series of `metric` with these labels, from a cache.

        The library takes a lock and copies the labels at each look-up, and each request needs ten look-ups.
        """
        key = (metric, *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        """Count one response and record its duration. `operation` is None if no route matches. Unknown methods are
        counted as OTHER.
        """
        name = operation or "unmatched"
        self._child(self._requests, method if method in _METHODS else "OTHER", name, str(status)).inc()
        self._child(self._request_seconds, name).observe(seconds)

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        """Count one decision of the door."""
        self._child(self._decisions, operation, outcome, determined_by).inc()

    def decision_took(self, engine: str, seconds: float) -> None:
        """Record the duration of a decision by one engine, or of the whole decision (engine `total`)."""
        self._child(self._decision_seconds, engine).observe(seconds)

    def policies_not_applied(self, count: int) -> None:
        """Count data policies that could not be applied as written."""
        self._policy_problems.inc(count)

    def answer_disagreed(self) -> None:
        """Count an answer about access that OpenFGA does not confirm."""
        self._answers_disagreed.inc()

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Count look-ups in a cache.

        `cache` is relationships, policies, silent_callers, tokens, credentials or documents.
        """
        if hits:
            self._child(self._cache_lookups, cache, "hit").inc(hits)
        if misses:
            self._child(self._cache_lookups, cache, "miss").inc(misses)

    def documents_kept(self, count: int) -> None:
        """Set the size in bytes of the metadata documents that this process caches."""
        self._document_bytes.set(count)

    def session_took(self, outcome: str, seconds: float) -> None:
        """Record the outcome and duration of one call to the token service (STS)."""
        self._child(self._sts_seconds, outcome).observe(seconds)

    def audited(self, durability: str, records: int = 1) -> None:
        """Count audit records by durability.

        Durability tells how records were written: in the transaction of the change, by group commit, from the buffer,
        or not at all (refused).
        """
        self._child(self._audit_records, durability).inc(records)

    def outbox_counted(self, pending: int) -> None:
        """Set the number of tuple keys that wait for delivery to OpenFGA."""
        self._outbox_pending.set(pending)

    def tuple_delivered(self, seconds: float) -> None:
        """Record the seconds from the commit of an outbox row to the confirmation by OpenFGA."""
        self._tuple_seconds.observe(seconds)

    def drift_found(self, kind: str) -> None:
        """Count one tuple in OpenFGA that differs from the rows in PostgreSQL."""
        self._child(self._drift_found, kind).inc()

    def drift_repaired(self, action: str) -> None:
        """Count one tuple that differs from the rows, by the action that was taken on it."""
        self._child(self._drift_repaired, action).inc()

    def drift_checked(self, at: float) -> None:
        """Set the time at which the change feed was last read to its end, in seconds since 1970."""
        self._drift_checked.set(at)

    def task_attempted(self, queue: str, outcome: str, seconds: float) -> None:
        """Count one attempt at a task by its outcome, such as ended, failed, given_up, interrupted, stopped or lost."""
        self._child(self._task_attempts, queue, outcome).inc()
        self._child(self._task_seconds, queue).observe(seconds)

    def tasks_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Set the number of tasks that have not ended, by (queue, status).

        Keys of earlier calls that `counts` does not contain are set to 0.
        """
        self._counted.update(counts)
        for key in self._counted:
            self._child(self._tasks, *key).set(counts.get(key, 0))

    def live_credentials_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Set the number of live credentials, by (provider, level). Keys of earlier calls that are missing become 0."""
        self._credentials_counted.update(counts)
        for key in self._credentials_counted:
            self._child(self._live_credentials, *key).set(counts.get(key, 0))

    def scope_counted(self, by_verdict: Mapping[str, int], oldest: float) -> None:
        """Set the number of active warehouses by verdict, and the time of the oldest verdict in seconds since 1970."""
        for verdict in ("proven", "escaped", "inconclusive", "not-vended", "none"):
            self._child(self._scope_warehouses, verdict).set(by_verdict.get(verdict, 0))
        self._scope_oldest.set(oldest)

    def scope_tried(self, *, refused: int, reached: int, unclear: int) -> None:
        """Count the attempts of one run of the canary."""
        for result, number in (("refused", refused), ("reached", reached), ("unclear", unclear)):
            self._child(self._scope_attempts, result).inc(number)

    def spans_ended(self, outcome: str, number: int) -> None:
        """Count spans by outcome: sent, dropped or failed. Also called by the thread that sends them."""
        self._child(self._spans, outcome).inc(number)

    def share_used(self, share: str, lane: str, amount: int) -> None:
        """Set the amount of a share that is in use in this process."""
        self._child(self._shares_used, share, lane).set(amount)

    def share_waited(self, share: str, lane: str) -> None:
        """Count a request that waited for its share."""
        self._child(self._shares_waited, share, lane).inc()

    def share_refused(self, share: str, lane: str) -> None:
        """Count a request that was refused because of its share."""
        self._child(self._shares_refused, share, lane).inc()

    def verifier_asked(self, verifier: str, outcome: str, seconds: float) -> None:
        """Record the outcome and duration of one query to a verifier in the settings."""
        self._child(self._verifier_seconds, verifier, outcome).observe(seconds)

    def render(self) -> bytes:
        """Return the metrics of all workers in the text format of Prometheus, to be sent as `content_type`."""
        if self._multiprocess_dir is None:
            return generate_latest(self._registry)
        everyone = CollectorRegistry()
        # In the Prometheus library, only the module `multiprocess` has no type annotations.
        MultiProcessCollector(everyone, path=str(self._multiprocess_dir))  # type: ignore[no-untyped-call]  # untyped
        return generate_latest(everyone)
