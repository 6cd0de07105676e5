# SPDX-License-Identifier: Apache-2.0
"""A sink that hangs does not use up the time that a worker process has for its shutdown."""

from __future__ import annotations

import asyncio
import time

from gateway.assembly import events
from gateway.serving import _DRAIN_SECONDS


async def test_a_sink_that_hangs_leaves_time_for_the_rest_of_the_shutdown() -> None:
    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(60)

    task = asyncio.create_task(hangs())
    await asyncio.sleep(0)
    began = time.monotonic()
    await events._end([task])
    assert time.monotonic() - began < _DRAIN_SECONDS - 2
    task.cancel()
