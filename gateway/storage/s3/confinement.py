# SPDX-License-Identifier: Apache-2.0
"""The kinds of S3-compatible stores (AWS, R2, OSS, others), and how each restricts vended credentials to one table.

A profile has no field for the kind of its store: the endpoint shows it. A profile without an endpoint is for AWS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.location import Location, fold
from gateway.storage.s3.aws.proof import Dialect, prove_scope
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.oss import proof as oss_proof
from gateway.storage.s3.oss.policy import build_oss_policy
from gateway.storage.s3.r2 import proof as r2_proof
from gateway.storage.s3.r2.scope import build_r2_scope

if TYPE_CHECKING:
    from gateway.storage.s3.profile import S3Profile

__all__ = [
    "StoreKind",
    "TRAITS",
    "Traits",
    "check_confinement",
    "kind_of",
    "policy_builder",
    "prove",
]


_EVERY_LEVEL: Final = frozenset(AccessLevel)


class StoreKind(StrEnum):
    """The kind of a store: the way in which it restricts vended credentials."""

    AWS = "aws"
    COMPATIBLE = "s3-compatible"
    R2 = "cloudflare-r2"
    OSS = "alibaba-oss"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The differences between kinds of stores.

    `escapes`: True if policies can contain the pattern characters `* ? $ { } [ ]` as literal characters; otherwise
    locations with one of them are refused. `levels`: the access levels that a credential can express. `role`: the form
    of the roles that sessions assume, None if there are none; `role_example` is for messages. `virtual_hosts_only`:
    True if requests with the bucket in the path are refused by the store. `source`: the documentation of these facts.
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
    # MinIO, SeaweedFS and Ceph read an escape as text with wildcards inside, or do not document escapes.
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
    # R2 has two permissions: read, and read with write and delete. Prefixes are text; patterns are not documented.
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
    # OSS policies have no escape for the patterns `*` and `?`.
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
    """Return the kind of the store at `endpoint`, which is None for a profile without one."""
    if endpoint is None:
        return StoreKind.AWS if aws_flavor else StoreKind.COMPATIBLE
    host = urlsplit(endpoint).hostname or ""
    if host.endswith(".r2.cloudflarestorage.com"):
        return StoreKind.R2
    if host.endswith(".aliyuncs.com"):
        return StoreKind.OSS
    return StoreKind.COMPATIBLE


_KMS_ARN: Final = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]{1,32}:[0-9]{12}:key/[A-Za-z0-9-]{1,64}", re.ASCII)


def policy_builder(profile: S3Profile) -> Callable[[Location, AccessLevel], str]:
    """Return the function that builds the policy of a session for one location."""
    match profile.kind:
        case StoreKind.R2:
            return build_r2_scope
        case StoreKind.OSS:
            role = profile.session_role_arn or ""
            # `acs:ram::<account>:role/<name>`, which the profile's check requires.
            return partial(build_oss_policy, region=profile.region.removeprefix("oss-"), account=role.split(":")[3])
        case StoreKind.AWS | StoreKind.COMPATIBLE:
            return partial(
                build_session_policy,
                escapes_known=profile.escapes_known,
                kms_key_arn=profile.aws_kms_key_arn,
                partition=profile.partition,
            )


def check_confinement(profile: S3Profile, *, aws_flavor: bool) -> None:
    """Raise InvalidStorageProfile if roles, keys or addressing of the profile do not suit the kind of its store."""
    traits = TRAITS[profile.kind]
    _check_roles(profile, traits, aws_flavor)
    if profile.aws_kms_key_arn is not None and not _KMS_ARN.fullmatch(profile.aws_kms_key_arn):
        raise InvalidStorageProfile(
            "Storage profile field 'aws-kms-key-arn' must be the ARN of a key (…:key/…), not of an alias, because "
            "policies cannot refer to aliases"
        )
    for name, given in (("aws-kms-key-arn", profile.aws_kms_key_arn), ("sts-session-tags", profile.sts_session_tags)):
        if given and not traits.aws_extensions:
            raise InvalidStorageProfile(f"Storage profile field {name!r} is not possible with {traits.label}")
    if profile.path_style_access and traits.virtual_hosts_only:
        raise InvalidStorageProfile(
            f"Storage profile field 'path-style-access' must be false: {traits.label} accepts only host names that "
            "begin with the bucket"
        )
    if traits.virtual_hosts_only and "." in profile.bucket:
        raise InvalidStorageProfile(f"Storage profile field 'bucket' must have no dots with {traits.label}")


def _check_roles(profile: S3Profile, traits: Traits, aws_flavor: bool) -> None:
    for name, arn in (("assume-role-arn", profile.assume_role_arn), ("sts-role-arn", profile.sts_role_arn)):
        if arn is not None and traits.role is None:
            raise InvalidStorageProfile(
                f"Storage profile field {name!r} is not possible with {traits.label}, which has no roles"
            )
        if arn is not None and traits.role is not None and not traits.role.fullmatch(arn):
            raise InvalidStorageProfile(
                f"Storage profile field {name!r} must be a role ARN such as {traits.role_example}"
            )
    if profile.kind is StoreKind.OSS and profile.assume_role_arn is not None:
        raise InvalidStorageProfile(
            "Storage profile field 'assume-role-arn' is not possible with Alibaba Cloud OSS. The gateway accesses its "
            "files with the access key; 'sts-role-arn' names the role of clients"
        )
    if not profile.sts_enabled or profile.session_role_arn is not None:
        return
    if profile.kind is StoreKind.OSS:
        raise InvalidStorageProfile(
            "Storage profile must contain 'sts-role-arn' if 'sts-enabled' is true with Alibaba Cloud OSS"
        )
    if aws_flavor and profile.kind is not StoreKind.R2:
        raise InvalidStorageProfile(
            "Storage profile must contain 'sts-role-arn' or 'assume-role-arn' if 'sts-enabled' is true and 'flavor' "
            "is aws"
        )


def prove(profile: S3Profile, location: Location, level: AccessLevel, other_keys: Sequence[str]) -> list[str]:
    """Build the policy of a location and an access level. Return a text for each decision of the policy that differs
    from what they require.

    An empty list is the proof. A level that the store cannot express has no policy and nothing to prove. Raises
    PolicyTooLarge and InvalidLocation.
    """
    if level not in TRAITS[profile.kind].levels:
        return []
    policy = policy_builder(profile)(location, level)
    match profile.kind:
        case StoreKind.R2:
            return [str(each) for each in r2_proof.prove_scope(policy, location, level, other_keys)]
        case StoreKind.OSS:
            owner = oss_proof.Owner(
                region=profile.region.removeprefix("oss-"), account=(profile.session_role_arn or "").split(":")[3]
            )
            return [str(each) for each in oss_proof.prove_scope(policy, location, level, other_keys, owner=owner)]
        case StoreKind.AWS | StoreKind.COMPATIBLE:
            return _prove_session_policy(profile, policy, location, level, other_keys)


def _prove_session_policy(
    profile: S3Profile, policy: str, location: Location, level: AccessLevel, other_keys: Sequence[str]
) -> list[str]:
    dialect = Dialect.AWS if profile.escapes_known else Dialect.CASE_BLIND
    violations = prove_scope(policy, location, level, other_keys, dialect=dialect, partition=profile.partition)
    if dialect is Dialect.CASE_BLIND:
        # A store that ignores letter case also allows this location in another letter case. The catalog places no other
        # table there (`BaseLocation.overlap_key`).
        own = fold(location.key_prefix)
        violations = [each for each in violations if each.key is None or not fold(each.key).startswith(own)]
    return [str(each) for each in violations]
