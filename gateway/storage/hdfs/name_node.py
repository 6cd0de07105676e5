# SPDX-License-Identifier: Apache-2.0
"""Run blocking calls of the HDFS library for one name node in separate threads, after a Kerberos ticket was acquired.

The library's client with coroutines is not used: a cancelled call can stop the whole process, because its threads wait
for Python's lock (GIL) while the closing client holds it. The blocking client releases the lock, but its calls cannot
be cancelled.

The library would get the first ticket while it holds Python's lock. Then a key distribution centre that does not
respond would stop the whole process. `require_ticket` releases the lock, and puts its ticket where the library finds
it: into the ticket cache.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

__all__ = [
    "CALLS",
    "GENERATIONS",
    "Deadline",
    "NameNode",
    "require_ticket",
]

_LIBRARY: Final = "libgssapi_krb5.so.2"  # the name under which the HDFS library loads this library
_INITIATE: Final = 1  # RFC 2744, section 5.2, GSS_C_INITIATE
_INDEFINITE: Final = 0xFFFFFFFF
_AT_ONCE_SECONDS: Final = 2.0


def require_ticket() -> None:
    """Get a ticket of the default principal unless one is cached. Raises TimeoutError if the key distribution centre
    does not respond in time.

    If it fails immediately, no principal is configured. No error is raised then: either the library needs no ticket, or
    it reports the missing one itself.
    """
    try:
        gssapi = ctypes.CDLL(_LIBRARY)  # Calls of a CDLL release Python's lock.
    except OSError:
        return
    began = time.monotonic()
    if not _acquired(gssapi) and time.monotonic() - began > _AT_ONCE_SECONDS:
        raise TimeoutError


def _acquired(gssapi: Any) -> bool:
    """Return True if there is a credential. The query of its lifetime gets the ticket; acquiring the credential does
    not (MIT krb5).
    """
    minor, credential, seconds = ctypes.c_uint32(), ctypes.c_void_p(), ctypes.c_uint32()
    answer = gssapi.gss_acquire_cred(
        ctypes.byref(minor), None, ctypes.c_uint32(_INDEFINITE), None, _INITIATE, ctypes.byref(credential), None, None
    )
    if answer:
        return False
    answer = gssapi.gss_inquire_cred(ctypes.byref(minor), credential, None, ctypes.byref(seconds), None, None)
    gssapi.gss_release_cred(ctypes.byref(minor), ctypes.byref(credential))
    return not answer


CALLS: Final = 16
"""The maximum number of concurrent calls of one client."""
GENERATIONS: Final = 4
"""The maximum number of replaced clients with calls that have not ended."""

_SOCKET_SECONDS: Final = 15
_FAILOVERS: Final = 4

Result = TypeVar("Result")


class Deadline:
    """The time until which the caller waits. A call with several steps checks it before each step."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def check(self) -> None:
        """Raise TimeoutError if the caller does not wait for the call any more."""
        if time.monotonic() > self._at:
            raise TimeoutError


class NameNode:
    """Runs calls on a name node, or on the name nodes of a name service. All methods belong to one event loop.

    A call that exceeds its time keeps its thread until the library returns, for example because the connection breaks.
    Later calls use a new client with a new connection. The threads are daemons: they do not delay the process's end.
    """

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self._current = _Client(authority)
        self._replaced: list[_Client] = []

    async def run(self, call: Callable[[Any, Deadline], Result], *, seconds: float) -> Result:
        """Return the result of `call`, which receives the library's client. Raises TimeoutError after `seconds`."""
        client, deadline = self._current, Deadline(seconds)
        try:
            async with asyncio.timeout(seconds):
                return await client.run(call, deadline)
        except TimeoutError:
            self._replace(client)
            raise

    def _replace(self, client: _Client) -> None:
        self._replaced = [each for each in self._replaced if each.running]
        if client is self._current and len(self._replaced) < GENERATIONS:
            self._replaced.append(client)
            self._current = _Client(self._authority)


class _Client:
    """A client of the library, which its first call creates, and the number of its running calls."""

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self._lock = threading.Lock()
        self._slots = asyncio.Semaphore(CALLS)
        self._library: Any = None
        self.running = 0

    async def run(self, call: Callable[[Any, Deadline], Result], deadline: Deadline) -> Result:
        loop = asyncio.get_running_loop()
        await self._slots.acquire()
        self.running += 1
        answer: asyncio.Future[Result] = loop.create_future()

        def end(result: Result | None, error: BaseException | None) -> None:
            self.running -= 1
            self._slots.release()
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]  # the result of `call` if there is no error

        def work() -> None:
            result, error = None, None
            try:
                deadline.check()
                result = call(self._opened(), deadline)
            except BaseException as failed:
                error = failed
            with suppress(RuntimeError):  # the event loop was closed
                loop.call_soon_threadsafe(end, result, error)

        threading.Thread(target=work, name="storage-hdfs", daemon=True).start()
        return await answer

    def _opened(self) -> Any:
        """Return the library's client. Raises OSError or RuntimeError if the configuration defines no name node, or if
        no ticket can be acquired.
        """
        from hdfs_native import Client

        with self._lock:
            if self._library is None:
                # An authority with a port is a single name node, so there is no other one to try. The library pauses
                # longer before each further attempt.
                attempts = 0 if ":" in self._authority else _FAILOVERS
                config = {
                    "dfs.client.socket-timeout": str(_SOCKET_SECONDS * 1000),
                    "dfs.client.failover.max.attempts": str(attempts),
                }
                require_ticket()
                self._library = Client(f"hdfs://{self._authority}", config)
            return self._library
