# SPDX-License-Identifier: Apache-2.0
"""How long something takes on a machine that is also busy with other things, and stands still for seconds at times."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self


async def quickest(work: Callable[[], Awaitable[object]], *, of: int = 3) -> float:
    """Seconds that the quickest of some runs took: what is slow by itself is slow each time."""
    took = []
    for _ in range(of):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return min(took)


class Delay:
    """Context manager. Measure for how long this machine did not let a waiting thread go on.

    A bound that is kept by a clock is tested as `bound + delay.seconds`: on a quiet machine that is the bound.
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
            # A sleep ends a little late on any machine; only what is longer is a delay.
            late = ended - began - self._TICK
            self.seconds += late if late > self._TICK else 0.0
            began = ended
