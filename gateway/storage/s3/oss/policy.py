# SPDX-License-Identifier: Apache-2.0
"""Build the policy of AssumeRole at Alibaba Cloud STS, for one prefix of an OSS bucket.

The document has only Allow statements. Its form is that of RAM ("Policy structure and syntax"), and its actions are
those of OSS ("RAM Policy"). The patterns `*` and `?` cannot be escaped, so locations with them are refused. The
document contains region and account instead of `*`, because `*` also matches colons and slashes: `acs:oss:*:*:lake/t/*`
is a pattern for `t/f` in the bucket `lake`, and for the key `x:lake/t/f` in every bucket.
"""

import json
from typing import Final

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import PolicyTooLarge
from gateway.scope.location import Location, refuse_pattern_characters

__all__ = ["MAX_OSS_POLICY_CHARACTERS", "build_oss_policy"]

MAX_OSS_POLICY_CHARACTERS: Final = 2048  # STS API reference, AssumeRole, parameter Policy

_READ: Final = ("oss:GetObject",)
_WRITE: Final = (*_READ, "oss:PutObject", "oss:AbortMultipartUpload", "oss:ListParts")
_ACTIONS: Final = {
    AccessLevel.READ: _READ,
    AccessLevel.READ_WRITE: _WRITE,
    AccessLevel.READ_WRITE_DELETE: (*_WRITE, "oss:DeleteObject"),
}


def build_oss_policy(location: Location, level: AccessLevel, *, region: str, account: str) -> str:
    """Build the policy for `level` on every key below `location`, as compact JSON of at most 2,048 characters.

    `region` is that of the bucket, such as `cn-hangzhou`, and `account` the number of the account that owns it. Raises
    `InvalidLocation` for a pattern character, and `PolicyTooLarge`. The policy is never widened instead.
    """
    for segment in location.segments:
        refuse_pattern_characters(segment)
    bucket, prefix = f"acs:oss:oss-{region}:{account}:{location.authority}", location.key_prefix
    statements = [
        {"Effect": "Allow", "Action": list(_ACTIONS[level]), "Resource": [f"{bucket}/{prefix}*"]},
        {
            "Effect": "Allow",
            "Action": ["oss:ListObjects"],
            "Resource": [bucket],
            "Condition": {"StringLike": {"oss:Prefix": [f"{prefix}*"]}},
        },
    ]
    policy = json.dumps({"Version": "1", "Statement": statements}, ensure_ascii=False, separators=(",", ":"))
    if len(policy) > MAX_OSS_POLICY_CHARACTERS:
        raise PolicyTooLarge(
            f"The policy for the location has {len(policy)} characters; the store allows at most "
            f"{MAX_OSS_POLICY_CHARACTERS}. Use a location with a shorter path"
        )
    return policy
