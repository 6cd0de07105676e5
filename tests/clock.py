# SPDX-License-Identifier: Apache-2.0
"""How long something takes on a machine that is also busy with other things, and stands still for seconds at times."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable


async def quickest(work: Callable[[], Awaitable[object]], *, of: int = 3) -> float:
    """Seconds that the quickest of some runs took: what is slow by itself is slow each time."""
    took = []
    for _ in range(of):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return min(took)
