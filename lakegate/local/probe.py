# SPDX-License-Identifier: Apache-2.0
"""Wait until a child serves or has failed.

An answer counts only if the child itself holds the port. Otherwise a program that took the port first would receive
the tokens of the stack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx2

from lakegate.local.children import Child, failure_of, log_tail
from lakegate.local.errors import ChildFailed
from lakegate.local.pg_ready import accepts_connections
from lakegate.local.ports import LOOPBACK, without_tls

_PAUSE_SECONDS = 0.03
_ONE_TRY_SECONDS = 2.0


async def until(child: Child, port: int, serves: Callable[[], Awaitable[bool]], *, timeout: float) -> None:
    """Return when ``serves()`` is true and the child or a descendant listens on the loopback ``port``.

    Raises:
        ChildFailed: the child ended, or ``timeout`` seconds passed.
    """
    try:
        async with asyncio.timeout(timeout):
            while not child.exited.done():
                if await serves() and _holds(child.pid, port):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise ChildFailed(
            child.name,
            f"did not respond within {timeout:.0f} seconds",
            child.log,
            output=log_tail(child.log, child.log_start),
        ) from None
    raise failure_of(child, child.exited.result())


def _holds(pid: int, port: int) -> bool:
    # Commands that start no child, such as `lakegate policy check`, work without the extra `embedded`.
    import psutil

    try:
        process = psutil.Process(pid)
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for member in (process, *process.children(recursive=True))
            for connection in member.net_connections("tcp")
        )
    except psutil.Error:  # the process has ended
        return False


async def until_postgres(child: Child, port: int, *, timeout: float) -> None:
    """Wait until a PostgreSQL server accepts connections on the loopback ``port``. Raise as :func:`until`."""
    await until(child, port, lambda: accepts_connections(LOOPBACK, port, timeout=_ONE_TRY_SECONDS), timeout=timeout)


async def until_answering(child: Child, port: int, path: str, *, timeout: float, token: str | None = None) -> None:
    """Wait until a GET of ``path`` on the loopback ``port`` answers 200. Raise as :func:`until`.

    ``token``: the bearer token to send. It is sent only after the child is known to hold the port.
    """
    address = f"http://{LOOPBACK}:{port}{path}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(
        timeout=_ONE_TRY_SECONDS, trust_env=False, verify=without_tls(), headers=headers
    ) as client:

        async def serves() -> bool:
            if token is not None and not _holds(child.pid, port):
                return False
            try:
                return (await client.get(address)).status_code == httpx2.codes.OK
            except httpx2.TransportError:
                return False

        await until(child, port, serves, timeout=timeout)
