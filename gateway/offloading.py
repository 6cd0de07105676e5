# SPDX-License-Identifier: Apache-2.0
"""Run long computations in a thread, so that they do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from gateway.iceberg import codec
from gateway.iceberg.updates import TableUpdate, ViewUpdate

Result = TypeVar("Result")

LARGE_BYTES: Final = 256 * 1024
"""The size above which a computation runs in a thread. A thread costs 0.1 ms. The steps of a commit hold the GIL for a
few milliseconds each even on the largest documents, so other requests can proceed in between.
"""


async def offload(compute: Callable[[], Result], *, size: int) -> Result:
    """Return the result of `compute`. Run it in a thread if it processes more than `LARGE_BYTES`; `size` is an estimate
    in bytes.
    """
    return compute() if size <= LARGE_BYTES else await asyncio.to_thread(compute)


def extent(updates: Sequence[TableUpdate | ViewUpdate]) -> int:
    """Return the approximate size of a commit's updates in bytes."""
    return len(codec.encode(updates))
