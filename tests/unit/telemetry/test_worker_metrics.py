# SPDX-License-Identifier: Apache-2.0
"""Sums over worker processes: an ended worker keeps its counters and loses its gauges."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.worker_metrics import LivingWorkers

_WORKER = """
import sys
from pathlib import Path
from gateway.telemetry.metrics import Metrics

metrics = Metrics(multiprocess_dir=Path(sys.argv[1]))
metrics.share_used("requests", "people", 3)
metrics.share_refused("requests", "people")
print("written", flush=True)
sys.stdin.read()
"""


def _worker(directory: Path) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(directory)],
        env=os.environ
        | {"PROMETHEUS_MULTIPROC_DIR": str(directory), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None and worker.stdout.readline() == "written\n"
    return worker


def test_an_ended_worker_keeps_its_counters_and_loses_its_gauges(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    registry.register(LivingWorkers(str(tmp_path)))
    workers = [_worker(tmp_path), _worker(tmp_path)]
    labels = '{lane="people",share="requests"}'
    try:
        assert f"lakegate_share_in_use{labels} 6.0" in generate_latest(registry).decode()
        workers[0].kill()
        workers[0].wait(10)
        exposition = generate_latest(registry).decode()
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate(timeout=10)
    assert f"lakegate_share_in_use{labels} 3.0" in exposition
    assert f"lakegate_share_refusals_total{labels} 2.0" in exposition
