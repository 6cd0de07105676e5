# SPDX-License-Identifier: Apache-2.0
"""A TCP load balancer in a thread: each connection goes to the next gateway in turn, or to one that accepts it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count


class Balancer:
    """Forwards the connections to its port to `ports` in turn. `served` counts the connections of each."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = tuple(ports)
        self._numbers = count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.served: Counter[int] = Counter()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(self._numbers)
        for number in range(len(self._ports)):
            port = self._ports[(first + number) % len(self._ports)]
            with contextlib.suppress(OSError):
                upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
                self.served[port] += 1
                await asyncio.gather(_forward(reader, to_upstream), _forward(upstream, writer))
                return
        writer.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Close all connections and the port."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def balanced(*ports: int) -> Iterator[Balancer]:
    """Run a balancer in front of these ports of gateways."""
    balancer = Balancer(ports)
    try:
        yield balancer
    finally:
        balancer.close()
