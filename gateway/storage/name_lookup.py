# SPDX-License-Identifier: Apache-2.0
"""DNS lookups in a thread pool of their own: a slow name server delays connections to its own names only."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

__all__ = ["NameLookup"]

THREADS: Final = 64

_Found = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Running:
    lookup: Future[_Found]
    answer: asyncio.Future[_Found]
    deadline: float


class NameLookup:
    """Resolves host names. All methods belong to one event loop; the threads start with the first lookup.

    Concurrent connections to one name share a lookup and its time limit. A lookup that exceeds the limit keeps its
    thread, and further connections to the name fail at once until it has ended.
    """

    def __init__(self, *, seconds: float, threads: int = THREADS) -> None:
        """Configure the limits: `seconds` for one lookup, and `threads` concurrent lookups."""
        self._seconds = seconds
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[str, _Running] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return the distinct addresses of `host`. Raises TimeoutError, and OSError for an unknown name."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        running = self._running.get(host) or self._start(host)
        remaining = running.deadline - asyncio.get_running_loop().time()
        if remaining > 0:
            await asyncio.wait((running.answer,), timeout=remaining)
        if not running.answer.done() or running.answer.cancelled():
            running.lookup.cancel()  # Works for a lookup that waits for a thread; a running one cannot be cancelled.
            raise TimeoutError
        return list(dict.fromkeys(str(address[0]) for *_, address in running.answer.result()))

    def close(self) -> None:
        """Cancel the lookups and stop the threads."""
        for running in list(self._running.values()):
            running.answer.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, host: str) -> _Running:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="storage-dns")
        loop = asyncio.get_running_loop()
        lookup: Future[_Found] = self._pool.submit(_resolve, host)
        answer = asyncio.wrap_future(lookup, loop=loop)
        self._running[host] = running = _Running(lookup, answer, loop.time() + self._seconds)

        def ended(answer: asyncio.Future[_Found]) -> None:
            del self._running[host]
            if not answer.cancelled():
                answer.exception()  # Marks the exception as retrieved, for lookups without a waiter.

        answer.add_done_callback(ended)
        return running


def _resolve(host: str) -> _Found:
    try:
        return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except UnicodeError:
        raise OSError("no valid host name") from None
