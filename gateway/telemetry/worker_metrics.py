# SPDX-License-Identifier: Apache-2.0
"""Collects the metrics of all worker processes, without the gauges of those that have ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead


class LivingWorkers:
    """A collector over the files that worker processes write to `directory`.

    The library adds the last value of a live gauge of a dead process to the sum for ever. Granian replaces a worker
    that dies and reports it to nobody, so each scrape looks which processes still run. Counters go on counting.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        # The library's multiprocess module has no annotations, unlike the rest of it.
        self._everyone = MultiProcessCollector(None, path=directory)  # type: ignore[no-untyped-call]

    def collect(self) -> Iterator[Any]:
        """Yield the metrics."""
        for pid in {file.stem.rpartition("_")[2] for file in Path(self._directory).glob("gauge_live*_*.db")}:
            if pid.isdecimal() and not _runs(int(pid)):
                mark_process_dead(int(pid), path=self._directory)  # type: ignore[no-untyped-call]  # as above
        yield from self._everyone.collect()  # type: ignore[no-untyped-call]  # as above


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
