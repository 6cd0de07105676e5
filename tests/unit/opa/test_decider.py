# SPDX-License-Identifier: Apache-2.0
"""Accepted URLs of OPA, and the reason when it refuses the gateway."""

from __future__ import annotations

import asyncio

import pytest

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.opa.decider import OpaDecider, _parts


@pytest.mark.parametrize(
    ("endpoint", "parts"),
    [
        ("http://127.0.0.1:8181", ("127.0.0.1", 8181, False)),
        ("http://opa:8181/", ("opa", 8181, False)),
        ("https://opa.example", ("opa.example", 443, True)),
        ("http://[::1]:8181", ("[::1]", 8181, False)),
    ],
)
def test_an_opa_url_is_a_scheme_a_host_and_a_port(endpoint: str, parts: tuple[str, int, bool]) -> None:
    assert _parts(endpoint) == parts


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "opa:8181",
        "ftp://opa:21",
        "http://",
        "http://opa:8181/v1/data/other",
        "http://opa:8181?x=1",
        "http://user:secret@opa:8181",
        "http://opa:8181#x",
    ],
)
def test_an_opa_url_with_more_parts_is_refused_without_repeating_it(endpoint: str) -> None:
    with pytest.raises(ValueError, match="http://host:port") as refused:
        OpaDecider(endpoint, None, timeout_s=1)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "OPA rejected the gateway's token with status 401. Correct LAKEGATE__OPA__TOKEN."),
        (403, "OPA rejected the gateway's token with status 403. Correct LAKEGATE__OPA__TOKEN."),
        (404, "status 404|health check .404."),
    ],
)
async def test_a_wrong_token_is_told_from_another_fault(status: int, message: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        decider = OpaDecider(f"http://127.0.0.1:{port}", "t", timeout_s=5)
        for call in (decider.ping, decider.revision):
            with pytest.raises(DecisionEngineUnavailable, match=message):
                await call()
        await decider.aclose()
