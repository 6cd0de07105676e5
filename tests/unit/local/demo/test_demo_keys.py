# SPDX-License-Identifier: Apache-2.0
"""Responses of a store to a vended key: only an access-denied response counts as a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakegate.local.demo import keys

CONFIG = {
    "s3.access-key-id": "ASIAEXAMPLE",
    "s3.secret-access-key": "not-to-be-printed",
    "s3.session-token": "nor-this",
    "s3.session-token-expires-at-ms": "1700000000000",
}
BODY = {
    "config": {"s3.endpoint": "http://127.0.0.1:1", "client.region": "us-east-1"},
    "storage-credentials": [{"prefix": "s3://bucket/w/0198-ab", "config": CONFIG}],
}


def raising(code: str, status: int) -> Any:
    def call() -> None:
        response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(response, "GetObject")

    return call


@pytest.mark.parametrize(
    ("code", "status", "good"),
    [
        ("AccessDenied", 403, True),
        ("NoSuchKey", 404, False),
        ("InvalidAccessKeyId", 403, False),
        ("ExpiredToken", 403, False),
        ("InternalError", 500, False),
        ("AccessDenied", 500, False),
    ],
)
async def test_only_access_denied_counts_as_a_refusal(code: str, status: int, good: bool) -> None:
    assert (await keys.refused(raising(code, status))).as_expected is good


async def test_a_successful_call_is_not_a_refusal() -> None:
    assert not (await keys.refused(lambda: {"Body": b""})).as_expected


async def test_the_refusal_of_an_allowed_call_is_a_failure() -> None:
    assert not (await keys.answered(raising("AccessDenied", 403), lambda _: (True, ""))).as_expected


def test_a_key_is_read_from_the_response_and_its_repr_has_no_secret() -> None:
    key = keys.vended(BODY)
    assert key is not None
    assert (key.bucket, key.prefix, key.expires_at_ms) == ("bucket", "w/0198-ab", 1_700_000_000_000)
    assert "not-to-be-printed" not in repr(key)
    assert "nor-this" not in repr(key)


@pytest.mark.parametrize("body", [{}, {"storage-credentials": []}])
def test_a_response_without_credentials_gives_no_key(body: dict[str, Any]) -> None:
    assert keys.vended(body) is None
