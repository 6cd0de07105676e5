# SPDX-License-Identifier: Apache-2.0
"""Locations in S3 and compatible stores: `s3://bucket/key`."""

import re
from typing import Final

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Scheme, shown

__all__ = ["SCHEME", "check_bucket"]

MAX_KEY_BYTES: Final = 1024  # S3 user guide, "Creating object key names"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_IPV4_LIKE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}", re.ASCII)
# Suffixes that AWS reserves for other kinds of buckets, whose policies need other ARNs or actions.
_RESERVED_SUFFIXES: Final = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_RESERVED_PREFIXES: Final = ("xn--", "sthree-", "amzn-s3-demo-")


def check_bucket(name: str) -> None:
    """Refuse a name that is no general purpose bucket name (S3 user guide, "General purpose bucket naming rules").

    Raises `InvalidLocation` with the violated rule.
    """
    if "@" in name or ":" in name:
        raise InvalidLocation(f"Bucket {shown(name)} must be a plain name, without user, password or port")
    if name.endswith("."):
        raise InvalidLocation(f"Bucket {shown(name)} must not end with a dot")
    if not _BUCKET.fullmatch(name) or ".." in name or ".-" in name or "-." in name:
        raise InvalidLocation(
            f"Bucket {shown(name)} is not a valid bucket name. It must have 3 to 63 characters of a-z, 0-9, dot and "
            "hyphen, and begin and end with a letter or digit. A dot must not be next to another dot or a hyphen"
        )
    if _IPV4_LIKE.fullmatch(name):
        raise InvalidLocation(f"Bucket {shown(name)} must not look like an IP address")
    if name.endswith(_RESERVED_SUFFIXES) or name.startswith(_RESERVED_PREFIXES):
        raise InvalidLocation(
            f"Bucket {shown(name)} has a prefix or suffix that S3 reserves. Only general purpose buckets are supported"
        )


SCHEME: Final = Scheme(
    names=("s3", "s3a", "s3n"),
    check_authority=check_bucket,
    max_path_bytes=MAX_KEY_BYTES,
    path_noun="an object key",
    root_noun="the root of a bucket",
)
