# SPDX-License-Identifier: Apache-2.0
"""Send HTTP requests to session services other than AWS STS, and check the responses of all session services.

The requests run on the event loop, with limits on time. Redirects are not followed, answers are limited in size, and
only connection errors and 5xx are retried. Creating a session changes nothing, so a retry is safe. Errors contain no
text of the service.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import aiohttp

from gateway.scope.endpoint import EndpointRoute, RouteTo
from gateway.scope.errors import InvalidStorageProfile, PolicyTooLarge
from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageSessionUnavailable
from gateway.storage.s3.credential import S3TemporaryCredential

__all__ = [
    "KNOWN_CODES",
    "Answer",
    "LatencyCallback",
    "Measured",
    "SessionRequests",
    "by_code",
    "malformed",
    "refused_endpoint",
    "route_to",
    "temporary",
    "unreachable",
]

# A session may end this much later than requested, because the clock of the store may differ.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)

_REASONS: Final = {
    "AccessDenied": (
        "refused",
        "the storage denied AssumeRole; check the role's trust policy and the credential of the warehouse",
    ),
    "InvalidClientTokenId": (
        "credential",
        "the storage does not know the access key of the warehouse's credential; set a valid one",
    ),
    "InvalidAccessKeyId": (
        "credential",
        "the storage does not know the access key of the warehouse's credential; set a valid one",
    ),
    "SignatureDoesNotMatch": (
        "credential",
        "the secret key of the warehouse's credential is wrong; set the correct one",
    ),
    "ExpiredToken": ("credential", "the credential with which the gateway called the storage has expired"),
    "ExpiredTokenException": ("credential", "the credential with which the gateway called the storage has expired"),
    "MalformedPolicyDocument": ("policy", "the storage rejected the session policy as malformed"),
    "NotImplemented": ("unsupported", "the storage does not support session policies"),
    "RegionDisabledException": (
        "region",
        "STS is disabled in the region of the storage profile; enable it for the AWS account",
    ),
}


KNOWN_CODES: Final = frozenset(_REASONS)
"""The error codes of which the cause is known."""


def temporary(answer: dict[str, Any], seconds: int) -> S3TemporaryCredential:
    found = answer.get("Credentials") or {}
    if not isinstance(found, dict):
        raise malformed()
    expiry = found.get("Expiration")
    fields = [found.get(name) for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")]
    if not all(isinstance(field, str) and field for field in fields) or not isinstance(expiry, datetime):
        raise StorageAnswerMalformed(
            "The response of the storage's STS endpoint lacks a session token or an expiry", "incomplete"
        )
    try:
        expires_at = expiry.replace(tzinfo=UTC) if expiry.tzinfo is None else expiry.astimezone(UTC)
    except OverflowError:
        raise malformed() from None
    if expires_at > datetime.now(UTC) + timedelta(seconds=seconds) + CLOCK_TOLERANCE:
        raise ShortTermCredentialError(
            "The storage issued a credential that lives longer than requested, so it was discarded. Check the STS "
            "of the store and its clock",
            "too-long",
        )
    return S3TemporaryCredential(
        access_key_id=found["AccessKeyId"],
        secret_access_key=found["SecretAccessKey"],
        session_token=found["SessionToken"],
        expires_at=expires_at,
    )


def by_code(code: str, status: int) -> ShortTermCredentialError | PolicyTooLarge:
    if code == "PackedPolicyTooLarge":
        return PolicyTooLarge(
            "The session policy and tags exceed the packed size that the store allows. Use a location with a "
            "shorter path, or fewer session tags"
        )
    unknown = ("failed", "the storage did not issue a credential")
    if status in {401, 403}:
        unknown = (
            "refused",
            "the storage denied AssumeRole with the credential of the warehouse; check the credential and the role",
        )
    reason, text = _REASONS.get(code, unknown)
    return ShortTermCredentialError(f"The gateway could not get a temporary credential: {text}", reason)


def unreachable() -> StorageSessionUnavailable:
    return StorageSessionUnavailable(
        "The gateway could not get a temporary credential: the storage's STS endpoint did not answer in time",
        "unreachable",
    )


def malformed() -> StorageAnswerMalformed:
    return StorageAnswerMalformed(
        "The gateway could not get a temporary credential: the server at the storage's STS endpoint did not answer "
        "as an STS. Check `sts-endpoint` (or `endpoint`) of the storage profile",
        "malformed",
    )


CONNECT_SECONDS: Final = 2.0
TOTAL_SECONDS: Final = 10.0
ATTEMPTS: Final = 3
MAX_ANSWER_BYTES: Final = 65_536

LatencyCallback = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The status and the body of a response."""

    status: int
    body: bytes


class SessionRequests:
    """Sends requests. `ca_bundle` names a file of certificates that are trusted in addition to the system's."""

    def __init__(self, *, ca_bundle: str | None = None, total_seconds: float = TOTAL_SECONDS) -> None:
        self._total_seconds = total_seconds
        self._ca_bundle = ca_bundle

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Return the TLS context. It is created at the first use, because most gateways send no such request."""
        context = ssl.create_default_context()
        if self._ca_bundle is not None:
            context.load_verify_locations(self._ca_bundle)
        return context

    async def post(
        self, url: str, *, headers: Mapping[str, str], body: Callable[[], bytes], route: EndpointRoute | None
    ) -> Answer:
        """Send the request, with retries. Return the response, whose status is below 500. `body` makes the body of each
        attempt.

        Without a `route`, the environment's proxy settings apply. Raises ShortTermCredentialError.
        """
        try:
            async with asyncio.timeout(self._total_seconds):
                for attempt in range(ATTEMPTS):
                    answer = await self._attempt(url, headers, body(), route)
                    if answer is not None:
                        return answer
                    await asyncio.sleep(0.2 * 2**attempt)
        except TimeoutError:
            pass
        raise unreachable()

    async def _attempt(
        self, url: str, headers: Mapping[str, str], body: bytes, route: EndpointRoute | None
    ) -> Answer | None:
        """Send the request once; return None if the connection fails or the status is 500 or above."""
        limits = aiohttp.ClientTimeout(total=self._total_seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limits, trust_env=route is None) as session,
                session.post(
                    url,
                    data=body,
                    headers=dict(headers),
                    ssl=self._tls,
                    allow_redirects=False,
                    proxy=None if route is None else route.proxy_url,
                ) as response,
            ):
                text = await response.content.read(MAX_ANSWER_BYTES + 1)
                while len(text) <= MAX_ANSWER_BYTES and not response.content.at_eof():
                    text += await response.content.read(MAX_ANSWER_BYTES + 1 - len(text))
        except (aiohttp.ClientError, OSError):
            _require_allowed(route)
            return None
        _require_allowed(route)
        if response.status >= 500:
            return None
        if len(text) > MAX_ANSWER_BYTES or 300 <= response.status < 400:
            raise malformed()
        return Answer(response.status, text)


def _require_allowed(route: EndpointRoute | None) -> None:
    if route is not None and route.refusal is not None:
        raise refused_endpoint(route.refusal)


def refused_endpoint(reason: str) -> ShortTermCredentialError:
    return ShortTermCredentialError(f"The gateway could not get a temporary credential: {reason}", "endpoint")


def route_to(route: RouteTo, endpoint: str) -> EndpointRoute:
    """Return the route to a session service. Raises ShortTermCredentialError for an address that is not allowed."""
    try:
        return route(endpoint)
    except InvalidStorageProfile as refused:
        raise refused_endpoint(refused.message) from None


class Measured:
    """Context manager that reports the duration and outcome of a session request to `on_latency`."""

    def __init__(self, on_latency: LatencyCallback) -> None:
        self._on_latency = on_latency
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        outcome = "ok" if error is None else "failed"
        if isinstance(error, ShortTermCredentialError):
            outcome = error.reason
        self._on_latency(time.monotonic() - self._started, outcome)
