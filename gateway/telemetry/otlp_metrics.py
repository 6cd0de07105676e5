# SPDX-License-Identifier: Apache-2.0
"""Export the Prometheus metrics periodically by OTLP over HTTP, for operators without a Prometheus server.

The values are those of `/metrics`: sums over all worker processes, converted to metrics of OpenTelemetry. The libraries
are imported only if an address is set. The export runs in a thread, so a collector that is slow or down delays only the
next export.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

_END_SECONDS: Final = 3.0


class MetricsExport:
    """Exports the metrics of `collect` every `seconds`, and once more at the end.

    `collect` returns families of the Prometheus client. `client` opens a function that sends a request, as `OtlpClient`
    does.
    """

    def __init__(
        self,
        collect: Callable[[], Iterable[Any]],
        client: AbstractAsyncContextManager[Callable[[bytes], Awaitable[bytes]]],
        *,
        seconds: float,
        service_name: str,
    ) -> None:
        # Imported here and not by the thread: a worker process could be forked in the middle of an import.
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
        from opentelemetry.sdk.metrics import export
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._collect = collect
        self._seconds = seconds
        self._kinds = export
        self._resource = Resource.create({"service.name": service_name})
        self._scope = InstrumentationScope("lakegate")
        self._started = time.time_ns()
        self._client = client
        self._encode: Callable[[Any], Any] = encode_metrics
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-export", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Export once more. Return after at most 3 seconds."""
        self._ending.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._ending.wait(self._seconds)
            try:
                asyncio.run(self._export())
            except Exception:  # noqa: S112 - the next export has the same counters, so nothing is lost
                continue

    async def _export(self) -> None:
        async with self._client as send:
            await send(self._encode(self._converted()).SerializeToString())

    def _converted(self) -> Any:
        """Return all metric families as one message of the SDK."""
        now = time.time_ns()
        metrics = [
            self._kinds.Metric(name=family.name, description=family.documentation, unit="", data=data)
            for family in self._collect()
            if (data := self._data(family, now)) is not None
        ]
        scope = self._kinds.ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        resource = self._kinds.ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")
        return self._kinds.MetricsData(resource_metrics=[resource])

    def _data(self, family: Any, now: int) -> Any:
        """Return the data points of one metric family; None for a type that the gateway does not use."""
        cumulative = self._kinds.AggregationTemporality.CUMULATIVE
        if family.type == "histogram":
            points = [self._histogram(labels, some, now) for labels, some in _by_labels(family.samples)]
            return self._kinds.Histogram(data_points=points, aggregation_temporality=cumulative)
        numbers = [
            self._kinds.NumberDataPoint(
                attributes=dict(sample.labels),
                start_time_unix_nano=self._started,
                time_unix_nano=now,
                value=sample.value,
            )
            for sample in family.samples
            if not sample.name.endswith("_created")
        ]
        if family.type == "counter":
            return self._kinds.Sum(data_points=numbers, aggregation_temporality=cumulative, is_monotonic=True)
        return self._kinds.Gauge(data_points=numbers) if family.type == "gauge" else None

    def _histogram(self, labels: Mapping[str, str], samples: Sequence[Any], now: int) -> Any:
        bounds, counts, total = buckets_of(samples)
        return self._kinds.HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=self._started,
            time_unix_nano=now,
            count=sum(counts),
            sum=total,
            bucket_counts=counts,
            explicit_bounds=bounds,
            min=None,  # type: ignore[arg-type]  # optional in the protocol; Prometheus does not record it
            max=None,  # type: ignore[arg-type]  # as above
        )


def buckets_of(samples: Sequence[Any]) -> tuple[list[float], list[int], float]:
    """Return (upper bounds without infinity, number of values in each bucket, sum of the values) of one series.

    Prometheus counts the values up to each bound, OpenTelemetry the values between two bounds.
    """
    upto = sorted((float(each.labels["le"]), int(each.value)) for each in samples if each.name.endswith("_bucket"))
    counts = [count - before for (_, count), before in zip(upto, [0, *(count for _, count in upto)], strict=False)]
    total = sum(each.value for each in samples if each.name.endswith("_sum"))
    return [bound for bound, _ in upto[:-1]], counts, total


def _by_labels(samples: Iterable[Any]) -> list[tuple[dict[str, str], list[Any]]]:
    """Group the samples of a histogram by their labels other than `le`."""
    found: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for sample in samples:
        key = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        found.setdefault(key, []).append(sample)
    return [(dict(key), some) for key, some in found.items()]
