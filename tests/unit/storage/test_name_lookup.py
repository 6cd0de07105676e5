# SPDX-License-Identifier: Apache-2.0
"""Name lookups with slow servers: shared between connections, limited in time, independent of other names."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.storage.connector import NameLookup


class NameServer:
    """A name server that returns 127.0.0.1; lookups of `slow.example` wait for `end`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.end = threading.Event()

    def getaddrinfo(self, host: Any, port: Any, *_: Any, **__: Any) -> Any:
        self.calls.append(host)
        if host == "slow.example":
            self.end.wait(20)
        if host == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))] * 2


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    yield made
    made.end.set()


async def test_concurrent_connections_to_a_name_share_one_lookup(server: NameServer) -> None:
    names = NameLookup(seconds=5)
    waiting = [asyncio.create_task(names.addresses("slow.example")) for _ in range(5)]
    await asyncio.sleep(0.1)
    server.end.set()
    assert await asyncio.gather(*waiting) == [["127.0.0.1"]] * 5
    assert server.calls == ["slow.example"]
    assert await names.addresses("slow.example") == ["127.0.0.1"]
    assert len(server.calls) == 2  # a result is not cached: each connection is checked with its own lookup
    names.close()


async def test_a_name_whose_lookup_has_timed_out_fails_at_once_until_it_ends(server: NameServer) -> None:
    names = NameLookup(seconds=1)
    with pytest.raises(TimeoutError):
        await names.addresses("slow.example")
    began = asyncio.get_running_loop().time()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await names.addresses("slow.example")
    assert asyncio.get_running_loop().time() - began < 0.5
    assert server.calls == ["slow.example"]
    server.end.set()
    for _ in range(100):
        await asyncio.sleep(0.02)
        try:
            assert await names.addresses("slow.example") == ["127.0.0.1"]
            break
        except TimeoutError:
            continue
    else:
        pytest.fail("the name must be resolvable again after its lookup has ended")
    names.close()


async def test_a_lookup_waiting_for_a_thread_is_cancelled_at_its_time_limit(server: NameServer) -> None:
    names = NameLookup(seconds=0.3, threads=1)
    results = await asyncio.gather(
        *(names.addresses(host) for host in ("slow.example", "other.example")), return_exceptions=True
    )
    assert [type(each) for each in results] == [TimeoutError, TimeoutError]
    server.end.set()
    names.close()
    await asyncio.sleep(0.1)
    assert server.calls == ["slow.example"]


async def test_literal_addresses_need_no_lookup_and_unknown_names_are_an_error(server: NameServer) -> None:
    names = NameLookup(seconds=5)
    assert await names.addresses("127.0.0.7") == ["127.0.0.7"]
    assert await names.addresses("::1") == ["::1"]
    assert server.calls == []
    for _ in range(2):
        with pytest.raises(OSError, match="unknown"):
            await names.addresses("unknown.example")
    names.close()
