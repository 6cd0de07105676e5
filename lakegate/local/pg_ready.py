# SPDX-License-Identifier: Apache-2.0
"""Check if PostgreSQL is ready, as ``pg_isready`` does: without a password and without a library."""

from __future__ import annotations

import asyncio
import contextlib
import struct

_PROTOCOL = 196_608  # version 3.0
_AUTHENTICATION = b"R"


async def accepts_connections(host: str, port: int, *, timeout: float) -> bool:
    """Return True if the server answers a start-up packet with an authentication request, within ``timeout`` seconds.

    A server that is starting, recovering or shutting down accepts the TCP connection, but answers with an error
    (SQLSTATE 57P03).
    """
    parameters = b"user\0lakegate\0database\0lakegate\0\0"
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(struct.pack("!ii", len(parameters) + 8, _PROTOCOL) + parameters)
                await writer.drain()
                return await reader.readexactly(1) == _AUTHENTICATION
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
