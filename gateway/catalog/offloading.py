# SPDX-License-Identifier: Apache-2.0
"""Computing that may take longer than other requests should wait for the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from gateway.iceberg import codec
from gateway.iceberg.updates import TableUpdate, ViewUpdate

Result = TypeVar("Result")

LARGE_BYTES: Final = 256 * 1024
"""What is larger is computed in a thread. That costs 0.1 ms; the steps of a commit hold the interpreter for a few
milliseconds each even on the largest documents, so a thread lets others go on."""


async def offload(compute: Callable[[], Result], *, size: int) -> Result:
    """The result, computed in a thread when about `size` bytes have to be looked at for it."""
    return compute() if size <= LARGE_BYTES else await asyncio.to_thread(compute)


def extent(updates: Sequence[TableUpdate | ViewUpdate]) -> int:
    """About the bytes of the updates in a commit."""
    return len(codec.encode(updates))
