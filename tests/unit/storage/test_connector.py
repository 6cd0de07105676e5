# SPDX-License-Identifier: Apache-2.0
"""The connector with servers on loopback: allowed addresses and redirects."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from gateway.scope.endpoint import ANY_NETWORK, EndpointRules, parse_networks
from gateway.scope.errors import InvalidStorageProfile
from gateway.storage.connector import Connector
from gateway.storage.errors import (
    ShortTermCredentialError,
    StorageAnswerMalformed,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.files import Files
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import open_clients
from gateway.storage.relay import Disconnect
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.profile import Flavor, S3Profile
from tests.support.servers.storage_routes import files_of
from tests.support.servers.storage_servers import serving

KEYS = S3AccessKey(access_key_id="id", secret_access_key="hidden")


@pytest.fixture
def connector() -> Iterator[Connector]:
    made = Connector(ANY_NETWORK)
    yield made
    made.close()


def profile(endpoint: str, **more: Any) -> S3Profile:
    plain = S3Profile(
        bucket="lake", region="r", endpoint=endpoint, flavor=Flavor.S3_COMPAT, path_style_access=True, key_prefix="base"
    )
    return msgspec.structs.replace(plain, **more)


def files(connector: Connector) -> Files:
    return files_of(route=connector.route, request_seconds=3, total_seconds=4)


@pytest.mark.threat("LG-DEC-05")
async def test_an_object_stores_redirect_is_not_followed(connector: Connector) -> None:
    with serving(body=b"secret") as inner, serving(307, {"location": f"{inner.url}/lake/base/x"}) as store:
        with pytest.raises(StorageUnavailable):
            await files(connector).read(profile(store.url), KEYS, "s3://lake/base/x", max_bytes=99)
        with pytest.raises(StorageUnavailable):
            await files(connector).write(profile(store.url), KEYS, "s3://lake/base/y", b"x")
        assert store.seen and not inner.seen


async def test_a_redirect_to_the_endpoint_itself_is_not_followed_either(connector: Connector) -> None:
    with serving(302, {"location": "/lake/base/other"}) as store:
        with pytest.raises(StorageUnavailable):
            await files(connector).read(profile(store.url), KEYS, "s3://lake/base/x", max_bytes=99)
        assert {path for _, path, _ in store.seen} == {"/lake/base/x"}


@pytest.mark.threat("LG-DEC-05")
async def test_an_sts_redirect_is_not_followed(connector: Connector) -> None:
    sts = Sts(route=connector.route)
    with serving(body=b"secret") as inner, serving(307, {"location": f"{inner.url}/"}) as store:
        with pytest.raises(StorageAnswerMalformed):
            await sts.assume(profile=profile(store.url), credential=KEYS, policy="{}", session_name="test", seconds=900)
        assert store.seen and not inner.seen
    sts.close()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>", b"{}", b"hello", b"\xff\xfe\x00", b"<a/>", b"<AssumeRoleResponse/>",
        b"<AssumeRoleResponse><AssumeRoleResult><Credentials>x</Credentials></AssumeRoleResult></AssumeRoleResponse>",
        b"<AssumeRoleResponse><AssumeRoleResult><Credentials><Expiration>soon</Expiration></Credentials>"
        b"</AssumeRoleResult></AssumeRoleResponse>",
        b"<AssumeRoleResponse><AssumeRoleResult><Credentials><Expiration>99999-99-99</Expiration></Credentials>"
        b"</AssumeRoleResult></AssumeRoleResponse>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [200, 400])
async def test_a_malformed_sts_response_is_one_clear_error(connector: Connector, body: bytes, status: int) -> None:
    sts = Sts(route=connector.route)
    with serving(status, body=body) as store:
        with pytest.raises(ShortTermCredentialError) as failed:
            await sts.assume(profile=profile(store.url), credential=KEYS, policy="{}", session_name="test", seconds=900)
        if status == 200:
            assert isinstance(failed.value, StorageAnswerMalformed) and failed.value.code == 400
        assert 400 <= failed.value.code < 500
    sts.close()


@pytest.mark.threat("LG-DEC-05")
async def test_the_checked_address_is_the_connected_address(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to an allowed address first and to another one later (DNS rebinding)."""
    requested: list[str] = []
    resolve = socket.getaddrinfo

    def rebinding(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "rebinding.example":
            return resolve(host, *rest, **more)
        requested.append(host)
        return resolve("127.0.0.1" if len(requested) == 1 else "169.254.169.254", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with serving(body=b"content") as store:
        there = profile(f"http://rebinding.example:{store.server_address[1]}")
        reader = files(connector)
        assert await reader.read(there, KEYS, "s3://lake/base/x", max_bytes=99) == b"content"
        assert len(requested) == 1
        with pytest.raises(StorageEndpointRefused, match="metadata"):
            await files(Connector(ANY_NETWORK)).read(there, KEYS, "s3://lake/base/x", max_bytes=99)


@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("93.184.216.34", "127.0.0.1"), ("::ffff:127.0.0.1",)])
async def test_a_name_with_one_address_outside_allowed_networks_is_refused(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 1)) for address in addresses]
    resolve: Any = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *r, **m: found if host == "store.example" else resolve(host, *r, **m)
    )
    strict, sts = Connector(EndpointRules()), Sts(route=Connector(EndpointRules()).route)
    there = profile("http://store.example:1")
    with pytest.raises(StorageEndpointRefused, match="LAKEGATE__STORAGE_ENDPOINT_NETWORKS"):
        await files(strict).read(there, KEYS, "s3://lake/base/x", max_bytes=99)
    with pytest.raises(ShortTermCredentialError, match="LAKEGATE__STORAGE_ENDPOINT_NETWORKS"):
        await sts.assume(profile=there, credential=KEYS, policy="{}", session_name="test", seconds=900)
    strict.close()
    sts.close()


async def test_a_literal_address_is_refused_on_use() -> None:
    with serving() as store:
        narrow = Connector(parse_networks(["10.0.0.0/8"]))
        with pytest.raises(StorageEndpointRefused):
            await files(narrow).read(profile(store.url), KEYS, "s3://lake/base/x", max_bytes=99)
        with pytest.raises(StorageEndpointRefused):
            await Files(open_clients(ClientOptions())).read(profile(store.url), KEYS, "s3://lake/base/x", max_bytes=99)
        sts = Sts()
        with pytest.raises(ShortTermCredentialError):
            await sts.assume(profile=profile(store.url), credential=KEYS, policy="{}", session_name="test", seconds=900)
        assert store.seen == []
        sts.close()
    with pytest.raises(InvalidStorageProfile):
        narrow.route("http://169.254.169.254")


async def test_a_route_reaches_only_its_endpoint(connector: Connector) -> None:
    with serving(body=b"mine") as mine, serving(body=b"other") as other:
        route = connector.route(mine.url)
        async with httpx.AsyncClient(proxy=route.proxy_url) as client:
            assert (await client.get(f"{mine.url}/a/b?c=d%2F")).content == b"mine"
            assert mine.seen == [("GET", "/a/b?c=d%2F", None)]  # the proxy credential never reaches the store
            for url in (other.url, mine.url.replace("127.0.0.1", "127.0.0.2")):
                assert (await client.get(url)).status_code == 400
            with pytest.raises(httpx.ProxyError):
                await client.get(mine.url.replace("http://", "https://"))
        without = route.proxy_url.rpartition("@")[2]
        for wrong in (f"http://{without}", f"http://eA:00@{without}", f"http://%ff:%ff@{without}"):
            async with httpx.AsyncClient(proxy=wrong) as client:
                assert (await client.get(mine.url)).status_code == 400
        assert len(mine.seen) == 1 and not other.seen


async def test_bodies_pass_unchanged_in_both_directions_and_connections_are_reused(connector: Connector) -> None:
    data = bytes(range(256)) * 8192

    async def chunks() -> Any:
        for start in range(0, len(data), 100_000):
            yield data[start : start + 100_000]

    with serving() as echo:
        async with httpx.AsyncClient(proxy=connector.route(echo.url).proxy_url) as client:
            for _ in range(3):
                assert (await client.put(f"{echo.url}/x", content=data)).content == data
                assert (await client.head(f"{echo.url}/x")).status_code == 200
    assert [method for method, *_ in echo.seen] == ["PUT", "HEAD"] * 3


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", None),
        (b"nonsense\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 140_000 + b"\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", None),
        (b"", None),
    ],
)
async def test_responses_keep_their_framing(connector: Connector, sent: bytes, expected: bytes | None) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with httpx.AsyncClient(proxy=connector.route(url).proxy_url, timeout=3) as client:
        if expected is None:
            with pytest.raises(httpx.HTTPError):
                await client.get(url)
        else:
            assert (await client.get(url)).content == expected
    server.close()


async def test_a_closed_port_is_an_unavailable_store(connector: Connector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(StorageUnavailable):
        await files(connector).read(profile(f"http://127.0.0.1:{port}"), KEYS, "s3://lake/base/x", max_bytes=9)


def raw_request(connector: Connector, endpoint: str) -> tuple[int, bytes]:
    """Return the port of the connector, and the bytes of a GET through it."""
    route = urlsplit(connector.route(endpoint).proxy_url)
    credentials = base64.b64encode(f"{route.username}:{route.password}".encode()).decode()
    head = f"GET {endpoint}/x HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {credentials}\r\n\r\n"
    return route.port or 0, head.encode()


class SilentStore:
    """A store that reads the request, sends `start`, and then waits for the end of the connection."""

    def __init__(self, start: bytes) -> None:
        self.start, self.url = start, ""
        self.calls, self.ended = asyncio.Event(), asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.start)
        self.calls.set()
        await reader.read()
        self.ended.set()
        writer.close()


@asynccontextmanager
async def silent_store(start: bytes = b"") -> AsyncIterator[SilentStore]:
    store = SilentStore(start)
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    store.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield store
    server.close()


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nsome"])
async def test_a_disconnected_client_closes_the_connection_to_a_silent_store(
    connector: Connector, start: bytes
) -> None:
    async with silent_store(start) as store:
        port, request = raw_request(connector, store.url)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        await asyncio.wait_for(store.calls.wait(), 5)
        writer.close()
        await asyncio.wait_for(store.ended.wait(), 5)


async def test_an_exchange_with_a_silent_store_ends_at_its_time_limit() -> None:
    connector = Connector(ANY_NETWORK, exchange_seconds=0.3)
    async with silent_store() as store:
        port, request = raw_request(connector, store.url)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        await asyncio.wait_for(store.ended.wait(), 5)
        writer.close()
    connector.close()


async def test_a_connection_without_a_request_head_ends_at_its_time_limit() -> None:
    connector = Connector(ANY_NETWORK, head_seconds=0.3)
    port, request = raw_request(connector, "http://127.0.0.1:9")
    for sent in (b"", request[:-2]):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    connector.close()


async def test_the_oldest_unauthenticated_connection_is_closed_for_a_new_one() -> None:
    connector = Connector(ANY_NETWORK, unauthenticated=2)
    with serving(body=b"content") as store:
        port, request = raw_request(connector, store.url)
        known = await asyncio.open_connection("127.0.0.1", port)
        known[1].write(request)
        assert b"content" in await asyncio.wait_for(known[0].read(4096), 5)
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        assert await asyncio.wait_for(opened[0][0].read(), 5) == b""
        for reader, writer in [known, *opened[1:]]:  # still served
            writer.write(request)
            assert b"content" in await asyncio.wait_for(reader.read(4096), 5)
        for _, writer in [known, *opened]:
            writer.close()
    connector.close()


async def test_a_connection_reset_by_the_store_adds_nothing_to_its_response(connector: Connector) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nbegin")
        await asyncio.sleep(0.3)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    port, request = raw_request(connector, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"\r\n\r\nbegin")
    writer.close()
    server.close()


async def test_each_request_of_a_connection_reaches_the_endpoint_of_its_credentials(connector: Connector) -> None:
    with serving(body=b"first") as first, serving(body=b"second") as second:
        reader, writer = await asyncio.open_connection("127.0.0.1", raw_request(connector, first.url)[0])
        for store, body in ((first, b"first"), (second, b"second")):
            writer.write(raw_request(connector, store.url)[1])
            assert (await asyncio.wait_for(reader.readuntil(body), 5)).endswith(body)
        assert len(first.seen) == len(second.seen) == 1
        writer.close()


async def test_a_slow_name_server_does_not_delay_other_names(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, under_way, end = socket.getaddrinfo, threading.Semaphore(0), threading.Event()

    def slow(host: Any, *rest: Any, **more: Any) -> Any:
        if not str(host).endswith(".example"):
            return resolve(host, *rest, **more)
        if host != "store.example":
            under_way.release()
            end.wait(20)
        return resolve("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    writers = []
    try:
        with serving(body=b"content") as store:
            for number in range(40):
                port, request = raw_request(connector, f"http://tenant-{number}.example:9")
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                writers.append(writer)
            assert await asyncio.to_thread(under_way.acquire, timeout=5)
            there = profile(f"http://store.example:{store.server_address[1]}")
            assert await files(connector).read(there, KEYS, "s3://lake/base/x", max_bytes=99) == b"content"
    finally:
        end.set()
        for writer in writers:
            writer.close()


@pytest.mark.parametrize("silent", [("2001:db8::1",), tuple(f"127.0.1.{last}" for last in range(1, 9))])
async def test_an_unresponsive_address_leaves_time_for_the_next_one(
    silent: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only responsive address is of the other family, and the last one of the name."""
    answering = "127.0.0.1" if ":" in silent[0] else "::1"
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 1)) for address in (*silent, answering)]
    resolve: Any = socket.getaddrinfo
    connect: Any = asyncio.open_connection

    async def open_connection(host: str, port: int, **more: Any) -> Any:
        if host in silent:
            await asyncio.Event().wait()
        return await connect("127.0.0.1", port, **more)

    connector = Connector(ANY_NETWORK, connect_seconds=1)
    with serving(body=b"content") as store:
        there = profile(f"http://store.example:{store.server_address[1]}")
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda host, *r, **m: found if host == "store.example" else resolve(host, *r, **m)
        )
        monkeypatch.setattr(asyncio, "open_connection", open_connection)
        assert await files(connector).read(there, KEYS, "s3://lake/base/x", max_bytes=99) == b"content"
    connector.close()


async def test_a_closed_connector_restarts_with_its_next_route(connector: Connector) -> None:
    with serving(body=b"content") as store:
        for _ in range(2):
            there = profile(f"http://localhost:{store.server_address[1]}")
            assert await files(connector).read(there, KEYS, "s3://lake/base/x", max_bytes=99) == b"content"
            connector.close()


async def test_small_answers_are_sent_without_waiting_for_acknowledgements(
    connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the body of each answer follows its head 40 ms later."""
    options: list[int] = []
    accept = Connector._accept

    def recorded(self: Connector, reader: Any, writer: asyncio.StreamWriter, disconnect: Disconnect) -> None:
        options.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        accept(self, reader, writer, disconnect)

    monkeypatch.setattr(Connector, "_accept", recorded)
    with serving(body=b"x") as store:
        assert await files(connector).read(profile(store.url), KEYS, "s3://lake/base/x", max_bytes=9) == b"x"
    assert options and all(options)
