# SPDX-License-Identifier: Apache-2.0
"""Waiting until a child serves, or has failed: whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from gateway.embedded.children import Child, failure_of
from gateway.embedded.errors import ChildFailed
from gateway.embedded.pg_ready import accepts_connections
from gateway.embedded.ports import LOOPBACK

_PAUSE_SECONDS = 0.03
_ONE_TRY_SECONDS = 2.0


async def until(child: Child, serves: Callable[[], Awaitable[bool]], *, timeout: float) -> None:
    """Return when ``serves()`` is true.

    Raises:
        ChildFailed: the child ended, or ``timeout`` seconds passed.
    """
    try:
        async with asyncio.timeout(timeout):
            while not child.exited.done():
                if await serves():
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise ChildFailed(child.name, f"did not serve within {timeout:.0f} seconds", child.log) from None
    raise failure_of(child, child.exited.result())


async def until_postgres(child: Child, port: int, *, timeout: float) -> None:
    """Wait until a PostgreSQL server takes connections on the loopback ``port``; raises as :func:`until`."""
    await until(child, lambda: accepts_connections(LOOPBACK, port, timeout=_ONE_TRY_SECONDS), timeout=timeout)


async def until_listening(child: Child, port: int, *, timeout: float) -> None:
    """Wait until something accepts connections on the loopback ``port``; raises as :func:`until`."""

    async def serves() -> bool:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, port)
        except OSError:
            return False
        writer.close()
        return True

    await until(child, serves, timeout=timeout)


async def until_answering(child: Child, address: str, *, timeout: float) -> None:
    """Wait until a GET of ``address`` answers 200; raises as :func:`until`."""
    async with httpx.AsyncClient(timeout=_ONE_TRY_SECONDS, trust_env=False) as client:

        async def serves() -> bool:
            try:
                return (await client.get(address)).status_code == httpx.codes.OK
            except httpx.TransportError:
                return False

        await until(child, serves, timeout=timeout)
