# SPDX-License-Identifier: Apache-2.0
"""Build the inline session policy of AssumeRole: the smallest document that allows one prefix and nothing else.

It has only narrow Allow statements and no conditional Deny, because some stores ignore a Deny with an unknown condition
key. The list condition never contains the prefix without its slash: `LIST prefix=ns/t1` would show names below
`ns/t10`. So clients that list without the trailing slash are refused.
"""

import json
import re
from typing import Final

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import PolicyTooLarge
from gateway.scope.location import Location, refuse_pattern_characters

__all__ = ["MAX_POLICY_CHARACTERS", "build_session_policy"]

MAX_POLICY_CHARACTERS: Final = 2048  # STS API reference, AssumeRole, parameter Policy

_SPECIAL: Final = re.compile(r"[*?$]")


_READ: Final = ("s3:GetObject",)
# Large files are uploaded in parts: a writer must list and abort its own uploads.
_WRITE: Final = (*_READ, "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_OBJECT_ACTIONS: Final = {
    AccessLevel.READ: _READ,
    AccessLevel.READ_WRITE: _WRITE,
    AccessLevel.READ_WRITE_DELETE: (*_WRITE, "s3:DeleteObject"),
}


def build_session_policy(
    location: Location,
    level: AccessLevel,
    *,
    escapes_known: bool,
    kms_key_arn: str | None = None,
    partition: str = "aws",
) -> str:
    """Build the policy for `level` on every key below `location`, as compact JSON of at most 2,048 characters.

    `escapes_known` is True if the store reads `${*}`, `${?}` and `${$}` as the literal characters (AWS does). Raises
    `InvalidLocation` if the location needs an escape that the store does not support, and `PolicyTooLarge` if the
    document exceeds the limit. The policy is never widened, shortened or omitted instead.
    """
    if not escapes_known:
        for segment in location.segments:
            refuse_pattern_characters(segment)
    prefix = _literal(location.key_prefix)
    bucket_arn = f"arn:{partition}:s3:::{location.authority}"
    statements: list[dict[str, object]] = [
        {"Effect": "Allow", "Action": list(_OBJECT_ACTIONS[level]), "Resource": f"{bucket_arn}/{prefix}*"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket_arn,
            "Condition": {"StringLike": {"s3:prefix": f"{prefix}*"}},
        },
    ]
    if kms_key_arn is not None:
        actions = ["kms:Decrypt"] if level is AccessLevel.READ else ["kms:Decrypt", "kms:GenerateDataKey"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": kms_key_arn})
    # Letters outside of ASCII are not escaped: the limit counts characters, and an escaped letter has six.
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, ensure_ascii=False, separators=(",", ":"))
    if len(policy) > MAX_POLICY_CHARACTERS:
        raise PolicyTooLarge(
            f"The session policy for the location has {len(policy)} characters; the store allows at most "
            f"{MAX_POLICY_CHARACTERS}. Use a location with a shorter path"
        )
    return policy


def _literal(text: str) -> str:
    return _SPECIAL.sub(lambda found: "${" + found[0] + "}", text)
