# SPDX-License-Identifier: Apache-2.0
"""What is told of a database whose schema cannot be read."""

from __future__ import annotations

import asyncio
import struct

import pytest

from gateway.access.outage import DatabaseUnavailable
from gateway.db.migrate import require_current_schema


async def test_a_database_that_is_starting_up_is_one_that_does_not_answer() -> None:
    fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(DatabaseUnavailable):
            await require_current_schema(f"postgresql+asyncpg://u:p@127.0.0.1:{port}/d", tls="disable")
