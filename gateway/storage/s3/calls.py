# SPDX-License-Identifier: Apache-2.0
"""Send single requests to an S3 store or its session service for the canary, signed, unsigned or with an invalid
signature.

The canary tries to leave the scope of vended credentials. For most of its attempts, the client library of the files has
no request, and it interprets the responses. So these requests are signed by botocore and sent unchanged. Redirects are
not followed.

A store that carries out a request without a signature, or with an invented one (CVE-2026-40344), gives every client the
files of the warehouse, whatever a vended credential allows. The invented signatures contain the access key of a vended
credential, because a former holder of the credential still knows it.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx2
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from gateway.scope.endpoint import RouteTo
from gateway.scope.errors import InvalidStorageProfile
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import S3Profile
from gateway.storage.s3.stores import address
from gateway.storage.trials import PROBE

__all__ = [
    "UNSIGNED",
    "Reply",
    "SignedCalls",
    "Unanswered",
    "send_unsigned",
]

MAX_REPLY: Final = 1_048_576
"""The number of bytes of an answer that are read."""
_ATTEMPTS: Final = 3
_BUSY: Final = frozenset({429, 500, 502, 503, 504})


class Unanswered(Exception):
    """The store did not respond, or its address is not allowed."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The status of a response, and the beginning of its body as text."""

    status: int
    text: str

    @property
    def succeeded(self) -> bool:
        """Return True for a status that means success."""
        return 200 <= self.status < 300


class SignedCalls:
    """Sends signed requests inside the block of `connected`. `seconds` is the time limit of one request."""

    def __init__(
        self, *, route: RouteTo | None, ca_bundle: str | None = None, connect_seconds: float, seconds: float
    ) -> None:
        self._route = route
        self._tls = ssl.create_default_context(cafile=ca_bundle)
        self._timeout = httpx2.Timeout(seconds, connect=connect_seconds)
        self._seconds = seconds
        self._clients: dict[str, httpx2.AsyncClient] = {}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[SignedCalls]:
        """Yield an object whose requests share connections. The connections are closed at the end of the block."""
        shared = copy(self)
        shared._clients = {}
        try:
            yield shared
        finally:
            for client in shared._clients.values():
                await client.aclose()

    async def object(
        self,
        profile: S3Profile,
        keys: S3TemporaryCredential | None,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        """Send a request about an object; about the bucket if `key` is empty. Raises Unanswered.

        Without `keys`, it is sent without a signature.
        """
        endpoint, virtual_host = address(profile)
        path = "/" if virtual_host else f"/{profile.bucket}" + ("/" if key else "")
        url = endpoint + path + quote(key, safe="/-_.~") + _query(query)
        return await self._send(profile, keys, method, endpoint, url, dict(headers or {}), body, "s3")

    async def service(
        self, profile: S3Profile, keys: S3TemporaryCredential, method: str, path: str, *, body: bytes = b""
    ) -> Reply:
        """Send a request to a path of the store itself, which does not contain the bucket. Raises Unanswered."""
        endpoint = profile.endpoint or address(profile)[0].replace(f"{profile.bucket}.", "", 1)
        return await self._send(profile, keys, method, endpoint, endpoint + path, {}, body, "s3")

    async def action(
        self, profile: S3Profile, keys: S3TemporaryCredential, service: str, action: str, **parameters: str
    ) -> Reply:
        """Send an action of `sts` or `iam` to the session service of the profile. Raises Unanswered."""
        version = "2011-06-15" if service == "sts" else "2010-05-08"
        endpoint = profile.sts_endpoint or profile.endpoint or _sts_of_aws(profile)
        body = urlencode({"Action": action, "Version": version, **parameters}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        return await self._send(profile, keys, "POST", endpoint, endpoint + "/", headers, body, service)

    async def _send(
        self,
        profile: S3Profile,
        keys: S3TemporaryCredential | None,
        method: str,
        endpoint: str,
        url: str,
        headers: dict[str, str],
        body: bytes,
        service: str,
    ) -> Reply:
        client = self._client(profile, endpoint)
        for attempt in range(1, _ATTEMPTS + 1):
            signed = headers if keys is None else _signed(profile, keys, method, url, headers, body, service)
            try:
                async with (
                    asyncio.timeout(self._seconds),
                    client.stream(method, url, headers=signed, content=body or None) as answer,
                ):
                    reply = Reply(answer.status_code, await _beginning(answer))
            except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError):
                reply = None
            if reply is not None and reply.status not in _BUSY:
                return reply
            if attempt < _ATTEMPTS:
                await asyncio.sleep(0.1 * 2**attempt)
        if reply is None:
            raise Unanswered
        return reply

    def _client(self, profile: S3Profile, endpoint: str) -> httpx2.AsyncClient:
        found = self._clients.get(endpoint)
        if found is None:
            found = self._clients[endpoint] = httpx2.AsyncClient(**self._options(profile, endpoint))
        return found

    def _options(self, profile: S3Profile, endpoint: str) -> dict[str, Any]:
        """Return the options of a client. For an endpoint in the profile they contain its route; for AWS, the
        environment's proxy settings.
        """
        options: dict[str, Any] = {"verify": self._tls, "timeout": self._timeout, "follow_redirects": False}
        if profile.endpoint is None and endpoint != profile.sts_endpoint:
            return options
        if self._route is None:
            raise Unanswered
        try:
            return options | {"proxy": self._route(endpoint).proxy_url, "trust_env": False}
        except InvalidStorageProfile:
            raise Unanswered from None


async def _beginning(answer: httpx2.Response) -> str:
    parts, size = [], 0
    async for part in answer.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size >= MAX_REPLY:
            break
    return b"".join(parts)[:MAX_REPLY].decode(errors="replace")


def _signed(
    profile: S3Profile,
    keys: S3TemporaryCredential,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    service: str,
) -> dict[str, str]:
    request = AWSRequest(method=method, url=url, headers=dict(headers), data=body)
    given = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(given, service, profile.region).add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}


def _query(given: Mapping[str, str] | None) -> str:
    if not given:
        return ""
    return "?" + "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in given.items())


def _sts_of_aws(profile: S3Profile) -> str:
    suffix = "amazonaws.com.cn" if profile.partition == "aws-cn" else "amazonaws.com"
    return f"https://sts.{profile.region}.{suffix}"


UNSIGNED: Final = ("unsigned-read", "unsigned-write", "forged-write", "forged-write-by-query")
"""The names of the requests."""

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNATURE: Final = "0" * 64
_CHUNKED: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_SIGNED_HEADERS: Final = "host;x-amz-content-sha256;x-amz-date"


async def send_unsigned(
    calls: SignedCalls, store: S3Profile, keys: S3TemporaryCredential, name: str, *, sentinel: str, inside: str
) -> Reply:
    """Send the unsigned request with the name `name` (`UNSIGNED`): it reads `sentinel`, or writes below `inside`.
    Raises Unanswered.

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
    """Return the time of a signature, and the credential in its header."""
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return at, f"{keys.access_key_id}/{at[:8]}/{store.region}/s3/aws4_request"
