# SPDX-License-Identifier: Apache-2.0
"""Render every Prometheus metric: name, type, labels, buckets, and how the values of several workers become one."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from gateway.telemetry.metrics import Metrics
from tests.support.runs.golden_files import table

_HEAD = """\
# Metrics

What a scrape gives. A golden file: see "Golden files" in ARCHITECTURE.md. A counter has `_total` after its name, a
histogram `_bucket`, `_sum` and `_count`. `workers`: how the values of several worker processes become one.

"""


def render() -> str:
    """Return the tables: the contract of each metric, and its help text."""
    registry = CollectorRegistry()
    Metrics(registry=registry)
    metrics = sorted(_metrics(registry), key=lambda metric: str(metric._name))
    contract = [
        (
            metric._name,
            metric._type,
            ", ".join(metric._labelnames),
            ", ".join(str(bound) for bound in metric._kwargs.get("buckets", ())),
            metric._kwargs.get("multiprocess_mode", "sum"),
        )
        for metric in metrics
    ]
    texts = [(metric._name, metric._documentation) for metric in metrics]
    heads = ("name", "type", "labels", "buckets", "workers")
    return f"{_HEAD}{table(heads, contract)}\n## Help\n\n{table(('name', 'help'), texts)}"


def _metrics(registry: CollectorRegistry) -> list[Any]:
    """Return the metrics of a registry. The library has no public access to label names of metrics without values."""
    return list(registry._collector_to_names)
