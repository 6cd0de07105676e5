# SPDX-License-Identifier: Apache-2.0
"""Locations in Google Cloud Storage: `gs://bucket/object`."""

import re
from typing import Final

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Scheme, shown

__all__ = ["SCHEME", "check_bucket"]

MAX_NAME_BYTES: Final = 1024  # Cloud Storage documentation, "About Cloud Storage objects", object name requirements
_COMPONENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?", re.ASCII)
_IPV4_LIKE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}", re.ASCII)


def check_bucket(name: str) -> None:
    """Refuse a name that is no bucket name (Cloud Storage documentation, "About buckets", bucket names).

    Raises `InvalidLocation` with the violated rule.
    """
    longest = 222 if "." in name else 63
    if not 3 <= len(name) <= longest or not all(_COMPONENT.fullmatch(part) for part in name.split(".")):
        raise InvalidLocation(
            f"Bucket {shown(name)} is not a valid bucket name. It must have 3 to 63 characters of a-z, 0-9, hyphen, "
            "underscore and dot, and begin and end with a letter or digit"
        )
    if _IPV4_LIKE.fullmatch(name):
        raise InvalidLocation(f"Bucket {shown(name)} must not look like an IP address")
    if name.startswith("goog") or "google" in name:
        raise InvalidLocation(f"Bucket {shown(name)} has a name that Google reserves")


def _check_segment(segment: str) -> None:
    if segment == ".well-known":
        raise InvalidLocation("Path segment '.well-known' is reserved by Google Cloud Storage")


SCHEME: Final = Scheme(
    names=("gs",),
    check_authority=check_bucket,
    max_path_bytes=MAX_NAME_BYTES,
    path_noun="an object name",
    root_noun="the root of a bucket",
    check_segment=_check_segment,
)
