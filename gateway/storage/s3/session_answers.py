# SPDX-License-Identifier: Apache-2.0
"""The answers of services that make sessions: checks of a session, and errors without any text of the service."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.scope.errors import PolicyTooLarge
from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageSessionUnavailable
from gateway.storage.s3.credential import S3TemporaryCredential

__all__ = ["KNOWN_CODES", "by_code", "malformed", "temporary", "unreachable"]

# The allowed clock difference to the store, before a session that ends later than requested is an error.
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
