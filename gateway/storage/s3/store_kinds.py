# SPDX-License-Identifier: Apache-2.0
"""The stores of the S3 family and their differences, in one place. Pure.

A profile has no field for its store: the endpoint shows it. AWS's own endpoint is that of a profile without one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from gateway.scope.level import AccessLevel

__all__ = ["TRAITS", "StoreKind", "Traits", "kind_of"]

_EVERY_LEVEL: Final = frozenset(AccessLevel)


class StoreKind(StrEnum):
    """A store by the way in which it confines credentials."""

    AWS = "aws"
    COMPATIBLE = "s3-compatible"
    R2 = "cloudflare-r2"
    OSS = "alibaba-oss"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The differences between stores.

    `escapes`: True if policies can contain the pattern characters `* ? $ { } [ ]` as themselves; otherwise locations
    with one of them are refused. `levels`: the access levels that a credential can express. `role`: the form of the
    roles that sessions assume, None if there are none; `role_example` is for messages. `virtual_hosts_only`: True if
    requests with the bucket in the path are refused by the store. `source`: the documentation of all that.
    """

    label: str
    escapes: bool
    levels: frozenset[AccessLevel]
    role: re.Pattern[str] | None
    role_example: str
    virtual_hosts_only: bool
    aws_extensions: bool
    """True if the store may know session tags and keys of AWS KMS."""
    source: str


_AWS_ROLE: Final = re.compile(r"arn:[a-z0-9-]+:iam::[0-9]{0,12}:role/[A-Za-z0-9_+=,.@/-]{1,512}", re.ASCII)
_AWS_EXAMPLE: Final = "arn:aws:iam::123456789012:role/name"

TRAITS: Final[Mapping[StoreKind, Traits]] = {
    StoreKind.AWS: Traits(
        label="AWS S3",
        escapes=True,
        levels=_EVERY_LEVEL,
        role=_AWS_ROLE,
        role_example=_AWS_EXAMPLE,
        virtual_hosts_only=False,
        aws_extensions=True,
        source="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html",
    ),
    # MinIO, SeaweedFS and Ceph read an escape as text with wildcards inside, or do not document it.
    StoreKind.COMPATIBLE: Traits(
        label="MinIO, SeaweedFS, Ceph and others",
        escapes=False,
        levels=_EVERY_LEVEL,
        role=_AWS_ROLE,
        role_example=_AWS_EXAMPLE,
        virtual_hosts_only=False,
        aws_extensions=True,
        source="https://docs.ceph.com/en/latest/radosgw/bucketpolicy/",
    ),
    # The permissions are read, and read with write and delete. Prefixes are text; patterns are not documented.
    StoreKind.R2: Traits(
        label="Cloudflare R2",
        escapes=False,
        levels=frozenset({AccessLevel.READ, AccessLevel.READ_WRITE_DELETE}),
        role=None,
        role_example="",
        virtual_hosts_only=False,
        aws_extensions=False,
        source="https://developers.cloudflare.com/r2/api/s3/temporary-credentials/",
    ),
    # The patterns `*` and `?` have no escape.
    StoreKind.OSS: Traits(
        label="Alibaba Cloud OSS",
        escapes=False,
        levels=_EVERY_LEVEL,
        role=re.compile(r"acs:ram::[0-9]{1,20}:role/[A-Za-z0-9.-]{1,64}", re.ASCII),
        role_example="acs:ram::1234567890123456:role/name",
        virtual_hosts_only=True,
        aws_extensions=False,
        source="https://www.alibabacloud.com/help/en/oss/user-guide/authorization-syntax-and-elements",
    ),
}


def kind_of(endpoint: str | None, *, aws_flavor: bool) -> StoreKind:
    """Return the kind of the store at a profile's endpoint, None for a profile without one."""
    if endpoint is None:
        return StoreKind.AWS if aws_flavor else StoreKind.COMPATIBLE
    host = urlsplit(endpoint).hostname or ""
    if host.endswith(".r2.cloudflarestorage.com"):
        return StoreKind.R2
    if host.endswith(".aliyuncs.com"):
        return StoreKind.OSS
    return StoreKind.COMPATIBLE
