# SPDX-License-Identifier: Apache-2.0
"""The headers of a request to an S3 store that are signed. Pure.

The list is closed. Headers that change what a request does (copies, access lists, tags, locks, redirects, the bypass of
a retention) are refused. Headers that only describe the connection or the client are left out of the signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.scope.location import shown
from gateway.scope.signing import UnsupportedSignRequest
from gateway.storage.s3.profile import S3Profile

__all__ = ["headers_to_sign"]

MAX_HEADERS: Final = 64
MAX_VALUE: Final = 1024

#: Changed or added by HTTP libraries and proxies, or without effect on the store. Clients send them unsigned.
_NOT_SIGNED: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
        "amz-sdk-retry",
        "authorization",
        "connection",
        "content-length",
        "expect",
        "host",
        "range",
        "te",
        "transfer-encoding",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-user-agent",
        "x-amzn-trace-id",
    }
)

#: Signed as they are, if the value has one of these forms.
_TEXT: Final = re.compile(r"[\x20-\x7e]*", re.ASCII)
_SIGNED: Final[Mapping[str, re.Pattern[str]]] = {
    "cache-control": _TEXT,
    "content-disposition": _TEXT,
    "content-encoding": _TEXT,
    "content-language": _TEXT,
    "content-md5": re.compile(r"[A-Za-z0-9+/=]{24}", re.ASCII),
    "content-type": _TEXT,
    "if-match": _TEXT,
    "if-modified-since": _TEXT,
    "if-none-match": _TEXT,
    "if-unmodified-since": _TEXT,
    "x-amz-checksum-algorithm": re.compile(r"[A-Z0-9]{1,16}", re.ASCII),
    "x-amz-checksum-mode": re.compile(r"ENABLED", re.ASCII),
    "x-amz-checksum-type": re.compile(r"[A-Z_]{1,16}", re.ASCII),
    "x-amz-decoded-content-length": re.compile(r"[0-9]{1,15}", re.ASCII),
    "x-amz-mp-object-size": re.compile(r"[0-9]{1,15}", re.ASCII),
    "x-amz-sdk-checksum-algorithm": re.compile(r"[A-Z0-9]{1,16}", re.ASCII),
    "x-amz-server-side-encryption": re.compile(r"AES256|aws:kms", re.ASCII),
    "x-amz-server-side-encryption-bucket-key-enabled": re.compile(r"true|false", re.ASCII),
    "x-amz-te": re.compile(r"append-md5", re.ASCII),  # the Java client asks for a checksum behind the body
    "x-amz-trailer": re.compile(r"x-amz-checksum-[a-z0-9]{1,16}", re.ASCII),
    # Classes that are read without a restore, so that a writer cannot take a file out of use for days.
    "x-amz-storage-class": re.compile(
        r"STANDARD|STANDARD_IA|ONEZONE_IA|INTELLIGENT_TIERING|REDUCED_REDUNDANCY|GLACIER_IR", re.ASCII
    ),
}
#: Parts of the signature itself, which the gateway makes, and the host, which is that of the URI.
_REPLACED: Final = frozenset({"authorization", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"})
_CHECKSUM: Final = re.compile(r"x-amz-checksum-(crc32|crc32c|crc64nvme|sha1|sha256)", re.ASCII)
_CHECKSUM_VALUE: Final = re.compile(r"[A-Za-z0-9+/=]{4,64}(-[0-9]{1,5})?", re.ASCII)
_KMS_KEY: Final = "x-amz-server-side-encryption-aws-kms-key-id"


def headers_to_sign(
    profile: S3Profile, method: str, headers: Sequence[tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (headers to sign, headers to send unsigned), by their names in lower case.

    Raises UnsupportedSignRequest for one that is not known, has another value, or occurs more than once.
    """
    if len(headers) > MAX_HEADERS:
        raise UnsupportedSignRequest(f"A request to sign has at most {MAX_HEADERS} headers")
    found: dict[str, str] = {}
    unsigned: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in _NOT_SIGNED:
            if lower not in _REPLACED and len(value) <= MAX_VALUE and _TEXT.fullmatch(value):
                unsigned[lower] = value
            continue
        if not _is_known(profile, lower, value):
            raise UnsupportedSignRequest(
                f"The header {shown(name)} of a {shown(method)} request is not signed with this value. Remove it; the "
                "documentation of remote signing lists the headers that are signed"
            )
        if lower in found:
            raise UnsupportedSignRequest(f"The header {shown(name)} occurs more than once in the request to sign")
        found[lower] = value.strip()
    return found, unsigned


def _is_known(profile: S3Profile, name: str, value: str) -> bool:
    if len(value) > MAX_VALUE:
        return False
    if name == _KMS_KEY:
        # Another key would let its holder read the files, and could make them unreadable for others.
        return profile.aws_kms_key_arn is not None and value == profile.aws_kms_key_arn
    pattern = _CHECKSUM_VALUE if _CHECKSUM.fullmatch(name) else _SIGNED.get(name)
    return pattern is not None and pattern.fullmatch(value) is not None
