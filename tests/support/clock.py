# SPDX-License-Identifier: Apache-2.0
"""Durations on a machine that is busy with other work, and may pause for seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self


async def quickest(work: Callable[[], Awaitable[object]], *, of: int = 3) -> float:
    """Return the seconds of the quickest of several runs: code that is slow by itself is slow each time."""
    took = []
    for _ in range(of):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return min(took)


class Delay:
    """Context manager. Measure the delay of a waiting thread by other load on this machine.

    Test a time limit as `bound + delay.seconds`: on an idle machine that is the bound.
    """

    _TICK = 0.005

    def __init__(self) -> None:
        self.seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        began = time.monotonic()
        while not self._stop.is_set():
            time.sleep(self._TICK)
            ended = time.monotonic()
            # A sleep ends slightly late on any machine; only a longer pause is a delay.
            late = ended - began - self._TICK
            self.seconds += late if late > self._TICK else 0.0
            began = ended
