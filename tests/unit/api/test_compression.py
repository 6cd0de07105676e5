# SPDX-License-Identifier: Apache-2.0
"""Compressed responses: which ones, their headers, and never one that may hold a secret."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import zstandard

import gateway.features.all_routes  # noqa: F401 - registers all operations
from gateway.access.operation import OPERATIONS
from gateway.api.compression import MIN_BYTES, CompressedResponse, coding_of

BODY = b'{"text": "' + b"ab" * MIN_BYTES + b'"}'
JSON = (b"content-type", b"application/json")


async def _sent(
    *headers: tuple[bytes, bytes],
    accept: bytes = b"gzip",
    body: bytes = BODY,
    status: int = 200,
    secret: bool = False,
    more: bool = False,
) -> tuple[dict[bytes, bytes], list[bytes]]:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    scope: Any = {"headers": [(b"accept-encoding", accept)] if accept else []}
    response = CompressedResponse(scope, send, lambda: secret)
    length = (b"content-length", str(len(body)).encode())
    await response.send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await response.send({"type": "http.response.body", "body": body, "more_body": more})
    if more:
        await response.send({"type": "http.response.body", "body": b"end", "more_body": False})
    assert messages[0]["status"] == status
    names = [name for name, _ in messages[0]["headers"]]
    assert len(names) == len(set(names))
    return dict(messages[0]["headers"]), [message["body"] for message in messages[1:]]


async def test_a_large_text_is_compressed_by_the_accepted_coding() -> None:
    for accept, unpack in ((b"gzip", gzip.decompress), (b"gzip, zstd", zstandard.decompress)):
        headers, (body,) = await _sent(JSON, accept=accept)
        assert unpack(body) == BODY
        assert headers[b"content-encoding"] == accept.split(b", ")[-1]
        assert headers[b"content-length"] == str(len(body)).encode()
        assert headers[b"vary"] == b"Accept-Encoding"


@pytest.mark.parametrize(
    "given",
    [
        {"body": b'{"a": 1}'},
        {"more": True},
        {"accept": b""},
        {"accept": b"br, gzip;q=0"},
    ],
)
async def test_a_small_or_streamed_or_unaccepted_text_is_sent_as_it_is(given: Any) -> None:
    headers, bodies = await _sent(JSON, (b"vary", b"Authorization"), **given)
    assert bodies[0] == given.get("body", BODY)
    assert b"content-encoding" not in headers
    # A cache must keep it apart from the compressed response to another client.
    assert headers[b"vary"] == b"Authorization, Accept-Encoding"


async def test_other_content_is_never_compressed() -> None:
    for headers in ([(b"content-type", b"application/gzip")], [JSON, (b"content-encoding", b"br")], []):
        sent, bodies = await _sent(*headers)
        assert bodies == [BODY]
        assert sent.get(b"content-encoding") == dict(headers).get(b"content-encoding")


async def test_a_response_with_a_secret_is_never_compressed() -> None:
    headers, bodies = await _sent(JSON, secret=True)
    assert bodies == [BODY]
    assert b"content-encoding" not in headers


async def test_a_strong_etag_becomes_weak_only_when_compressed() -> None:
    for etag, compressed in ((b'"a"', b'W/"a"'), (b'W/"a"', b'W/"a"')):
        assert (await _sent(JSON, (b"etag", etag)))[0][b"etag"] == compressed
        assert (await _sent(JSON, (b"etag", etag), accept=b""))[0][b"etag"] == etag


async def test_not_modified_has_no_body_and_varies() -> None:
    headers, bodies = await _sent((b"etag", b'W/"a"'), status=304, body=b"")
    assert (bodies, headers[b"vary"], headers.get(b"content-encoding")) == ([b""], b"Accept-Encoding", None)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ([], None),
        ([b""], None),
        ([b"identity"], None),
        ([b"gzip, deflate"], "gzip"),
        ([b"gzip", b"ZSTD"], "zstd"),
        ([b"zstd;q=0.5, gzip;q=0.8"], "gzip"),
        ([b"*"], "zstd"),
        ([b"*, zstd;q=0"], "gzip"),
        ([b"gzip; q=0"], None),
        ([b"gzip;q=x"], None),
    ],
)
def test_the_coding_follows_the_weights(accepted: list[bytes], coding: str | None) -> None:
    assert coding_of(accepted) == coding


@pytest.mark.threat("LG-DIS-22")
def test_every_operation_that_hands_out_a_secret_says_so() -> None:
    found = {each.__name__ for each in OPERATIONS.values() if each.returns_secret()}
    assert found == {
        "ExchangeToken",
        "SignCreation",
        "SignRequest",
        "SignWrite",
        "VendCreationCredentials",
        "VendCredentials",
        "VendGenericTableCreationCredentials",
        "VendGenericTableCredentials",
        "VendStagedCredentials",
    }
    assert {name for name in OPERATIONS if any(word in name for word in ("Vend", "Sign", "ExchangeToken"))} <= found
