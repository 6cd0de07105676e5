# SPDX-License-Identifier: Apache-2.0
"""Collect the metrics of all worker processes. The live gauges of processes that have ended are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead


class LivingWorkers:
    """A collector over the files that worker processes write to `directory`.

    The library would add the last value of an ended process's live gauge to the sum forever. Granian replaces a worker
    process that dies, and sends no notification of it. Each scrape therefore checks which processes run. The counters
    of ended processes are kept.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        # In the Prometheus library, only the module `multiprocess` has no type annotations.
        self._everyone = MultiProcessCollector(None, path=directory)  # type: ignore[no-untyped-call]  # the library has no types

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of all worker processes."""
        for pid in {file.stem.rpartition("_")[2] for file in Path(self._directory).glob("gauge_live*_*.db")}:
            if pid.isdecimal() and not _runs(int(pid)):
                mark_process_dead(int(pid), path=self._directory)  # type: ignore[no-untyped-call]  # the library has no types
        yield from self._everyone.collect()  # type: ignore[no-untyped-call]  # the library has no types


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
