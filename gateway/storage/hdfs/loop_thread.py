# SPDX-License-Identifier: Apache-2.0
"""A thread with an event loop of its own, for a client library whose coroutines may block the thread.

The Kerberos library requests tickets without releasing the thread. Such a wait must not stop the gateway's requests.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["LoopThread"]

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines in one daemon thread, which starts with the first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, call: Callable[[], Coroutine[Any, Any, Result]], *, seconds: float) -> Result:
        """Return the result of the coroutine that `call` returns.

        Raises TimeoutError after `seconds`. Then, and if the caller is cancelled, the coroutine is cancelled as soon as
        the thread is free.
        """
        running = asyncio.run_coroutine_threadsafe(call(), self._started())
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(running)

    def close(self) -> None:
        """Cancel the running calls and stop the thread when it is free. Does not wait for it."""
        with self._lock:
            if self._loop is not None:
                asyncio.run_coroutine_threadsafe(_end(self._loop), self._loop)
                self._loop = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A daemon thread does not delay the end of the process while it waits for a store.
                threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True).start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    loop.stop()
