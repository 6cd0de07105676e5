# SPDX-License-Identifier: Apache-2.0
"""Send requests over a number of connections for a number of seconds, in a separate process."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Iterator
from itertools import count

import aiohttp
import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One of several requests that are sent in turn."""

    method: str
    url: str
    headers: dict[str, str]
    body: str | None = None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load to send. `{n}` in url and body is a number that is unique within a run; `mix` replaces the single
    request. `{k}` in the url is a number below `vary`, with three digits. `requests`: end after so many, 0: at the end
    of the time.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: str | None
    connections: int
    seconds: float
    first: int
    mix: list[Request] = []
    vary: int = 1
    requests: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a load. Times in milliseconds; `refused` counts responses other than 2xx."""

    answered: int
    refused: int
    seconds: float
    p50: float
    p99: float
    last: int

    @property
    def per_second(self) -> float:
        """Return responses per second."""
        return self.answered / self.seconds


async def send(load: Load) -> Result:
    """Send for `load.seconds`; each connection has one request in progress."""
    numbers = count(load.first)
    times: list[float] = []
    refused = 0
    started = time.perf_counter()
    until = started + (load.seconds if not load.requests else math.inf)

    async def one(session: aiohttp.ClientSession) -> None:
        nonlocal refused
        while time.perf_counter() < until:
            number = next(numbers)
            if load.requests and number >= load.first + load.requests:
                break
            n, k = str(number), f"{number // max(1, len(load.mix)) % load.vary:03}"
            requested = load.mix[number % len(load.mix)] if load.mix else load
            body = None if requested.body is None else requested.body.replace("{n}", n)
            url = requested.url.replace("{n}", n).replace("{k}", k)
            begun = time.perf_counter()
            # A redirect could lead the load to another machine.
            async with session.request(
                requested.method, url, data=body, headers=requested.headers, allow_redirects=False
            ) as answer:
                await answer.read()
                refused += not 200 <= answer.status < 300
            times.append(time.perf_counter() - begun)

    connector = aiohttp.TCPConnector(limit=load.connections)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        await asyncio.gather(*(one(session) for _ in range(load.connections)))
    took = time.perf_counter() - started
    ordered = sorted(times)
    return Result(
        answered=len(times) - refused,
        refused=refused,
        seconds=took,
        p50=1000 * ordered[len(ordered) // 2],
        p99=1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        last=next(numbers),
    )


def main() -> None:
    """Read loads from standard input, one JSON object a line, and write results to standard output likewise."""
    for line in _lines():
        result = asyncio.run(send(msgspec.json.decode(line, type=Load)))
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
        sys.stdout.flush()


def _lines() -> Iterator[str]:
    while line := sys.stdin.readline():
        yield line


if __name__ == "__main__":
    main()
