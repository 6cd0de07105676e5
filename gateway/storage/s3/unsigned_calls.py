# SPDX-License-Identifier: Apache-2.0
"""Requests of the canary that no key signed: without a signature, or with an invented one (CVE-2026-40344).

A store that carries one out gives everybody the files of the warehouse, whatever a vended credential allows. The
invented signatures name the access key of a vended credential, which a former holder of it still knows.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import S3Profile
from gateway.storage.s3.signed_calls import Reply, SignedCalls
from gateway.storage.trials import PROBE

__all__ = ["UNSIGNED", "send_unsigned"]

UNSIGNED: Final = ("unsigned-read", "unsigned-write", "forged-write", "forged-write-by-query")
"""The names of the requests."""

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNATURE: Final = "0" * 64
_CHUNKED: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_SIGNED_HEADERS: Final = "host;x-amz-content-sha256;x-amz-date"


async def send_unsigned(
    calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, name: str, *, sentinel: str, inside: str
) -> Reply:
    """Send the request of this name (`UNSIGNED`): a read of `sentinel`, or a write below `inside`. Raises Unanswered.

    The forms of a signature are those of AWS Signature Version 4 (Amazon S3 API reference, "Authenticating requests").
    """
    target = f"{inside}{name}.txt"
    match name:
        case "unsigned-read":
            return await calls.object(store, None, "GET", sentinel)
        case "unsigned-write":
            return await calls.object(store, None, "PUT", target, body=PROBE)
        case "forged-write":
            headers = {**_chunked_headers(), **_in_headers(store, keys)}
            return await calls.object(store, None, "PUT", target, headers=headers, body=_chunked_body())
        case _:
            query = _in_query(store, keys)
            return await calls.object(
                store, None, "PUT", target, query=query, headers=_chunked_headers(), body=_chunked_body()
            )


def _chunked_headers() -> Mapping[str, str]:
    return {
        "x-amz-content-sha256": _CHUNKED,
        "x-amz-decoded-content-length": str(len(PROBE)),
        "x-amz-trailer": "x-amz-checksum-crc32",
        "content-encoding": "aws-chunked",
    }


def _chunked_body() -> bytes:
    checksum = b64encode(zlib.crc32(PROBE).to_bytes(4, "big"))
    parts: Sequence[bytes] = (b"%x" % len(PROBE), PROBE, b"0", b"x-amz-checksum-crc32:" + checksum, b"", b"")
    return b"\r\n".join(parts)


def _in_headers(store: S3Profile, keys: S3TemporaryCredential) -> Mapping[str, str]:
    at, credential = _credential(store, keys)
    return {
        "x-amz-date": at,
        "x-amz-security-token": keys.session_token,
        "authorization": (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={_SIGNED_HEADERS}, Signature={_SIGNATURE}"
        ),
    }


def _in_query(store: S3Profile, keys: S3TemporaryCredential) -> Mapping[str, str]:
    at, credential = _credential(store, keys)
    return {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": credential,
        "X-Amz-Date": at,
        "X-Amz-Expires": "60",
        "X-Amz-Security-Token": keys.session_token,
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": _SIGNATURE,
    }


def _credential(store: S3Profile, keys: S3TemporaryCredential) -> tuple[str, str]:
    """Return the time of a signature, and the credential it names."""
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return at, f"{keys.access_key_id}/{at[:8]}/{store.region}/s3/aws4_request"
