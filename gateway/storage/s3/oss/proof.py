# SPDX-License-Identifier: Apache-2.0
"""Evaluate policies of Alibaba Cloud RAM for OSS, and prove their scope. No code is shared with their builder.

The evaluation follows the documentation of OSS ("RAM Policy", "Authorization syntax and elements"): an explicit Deny
wins, without an Allow a request is denied, `*` matches any text and `?` one character, and there are no escapes. All
keys of a condition must match; the values of a key are alternatives. Anything else raises `UnsupportedOssPolicy`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.proof_keys import neighbours

__all__ = ["Owner", "UnsupportedOssPolicy", "Violation", "evaluate", "prove_scope"]

_READ: Final = frozenset({"oss:GetObject"})
_WRITE: Final = _READ | {"oss:PutObject", "oss:AbortMultipartUpload", "oss:ListParts"}
_REQUIRED: Final = {
    AccessLevel.READ: _READ,
    AccessLevel.READ_WRITE: _WRITE,
    AccessLevel.READ_WRITE_DELETE: _WRITE | {"oss:DeleteObject"},
}
_OBJECT_ACTIONS: Final = (
    "oss:GetObject",
    "oss:GetObjectVersion",
    "oss:PutObject",
    "oss:DeleteObject",
    "oss:DeleteObjectVersion",
    "oss:AbortMultipartUpload",
    "oss:ListParts",
    "oss:GetObjectAcl",
    "oss:PutObjectAcl",
    "oss:PutObjectTagging",
    "oss:RestoreObject",
)
_OTHER_ACTIONS: Final = (
    "oss:ListBuckets",
    "oss:ListObjectVersions",
    "oss:ListMultipartUploads",
    "oss:PutBucket",
    "oss:DeleteBucket",
    "oss:PutBucketAcl",
    "oss:PutBucketPolicy",
    "oss:PutBucketReplication",
    "oss:PutBucketLifecycle",
    "sts:AssumeRole",
    "ram:CreateAccessKey",
)


class UnsupportedOssPolicy(ValueError):
    """The document contains something that this evaluator does not support."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of the evaluation that differs from what the location and the access level require."""

    action: str
    bucket: str
    key: str | None
    prefix: str | None
    expected: bool

    def __str__(self) -> str:
        verb = "refused" if self.expected else "allowed"
        return f"{self.action} on {self.bucket!r} key {self.key!r} prefix {self.prefix!r} is {verb}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The region and the account of the buckets."""

    region: str
    account: str


def evaluate(
    policy: str, action: str, *, owner: Owner, bucket: str, key: str | None = None, prefix: str | None = None
) -> bool:
    """Return True if the policy allows `action` on the object `key`, or on the bucket if `key` is None.

    `prefix` is the prefix of a list request, None if absent. Raises `UnsupportedOssPolicy`.
    """
    return _evaluate(_statements(policy), action, owner, bucket, key, prefix)


def prove_scope(
    policy: str, location: Location, level: AccessLevel, other_keys: Iterable[str], *, owner: Owner
) -> list[Violation]:
    """Evaluate the policy, and return each result that differs from the requirements of `location` and `level`. An
    empty list is the proof.
    """
    bucket, _, path = location.text.partition("://")[2].partition("/")
    inside = path + "/"
    statements = _statements(policy)
    violations: list[Violation] = []
    # Keys that contain the end of a resource name: a wildcard in region or account would match them.
    confusing = [f"x:{bucket}/{inside}f", f"x:{owner.account}:{bucket}/{inside}f", f"{owner.account}:{bucket}/{inside}"]

    def check(action: str, where: str, key: str | None, prefix: str | None, *, expected: bool) -> None:
        if _evaluate(statements, action, owner, where, key, prefix) is not expected:
            violations.append(Violation(action, where, key, prefix, expected))

    for key in (inside, inside + "data/f", inside + "a*b?c", *neighbours(path), *confusing, *other_keys):
        belongs = key.startswith(inside)
        for action in _OBJECT_ACTIONS:
            check(action, bucket, key, None, expected=belongs and action in _REQUIRED[level])
            check(action, bucket + "-other", key, None, expected=False)
        for prefix in (key, key[:-1], key.rpartition("/")[0], key.rpartition("/")[0] + "/"):
            check("oss:ListObjects", bucket, None, prefix, expected=prefix.startswith(inside))
    for nothing in (None, "", path, "/"):
        check("oss:ListObjects", bucket, None, nothing, expected=False)
    for action in _OTHER_ACTIONS:
        for listed in (None, inside):
            check(action, bucket, None, listed, expected=False)
            check(action, bucket, inside + "data", listed, expected=False)
    return violations


# -- evaluation --------------------------------------------------------------------------------------------------------


def _evaluate(
    statements: list[dict[str, Any]], action: str, owner: Owner, bucket: str, key: str | None, prefix: str | None
) -> bool:
    resource = f"acs:oss:oss-{owner.region}:{owner.account}:{bucket}" + ("" if key is None else f"/{key}")
    context = {} if prefix is None else {"oss:Prefix": prefix}
    effects = {each["Effect"] for each in statements if _applies(each, action, resource, context)}
    return effects == {"Allow"}


def _applies(statement: dict[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    if not any(_matches(pattern, resource) for pattern in _strings(statement["Resource"])):
        return False
    if not any(_matches(pattern.lower(), action.lower()) for pattern in _strings(statement["Action"])):
        return False
    for operator, keys in statement.get("Condition", {}).items():
        if operator != "StringLike":
            raise UnsupportedOssPolicy(f"condition operator {operator!r}")
        for name, values in keys.items():
            given = context.get(name)
            if given is None or not any(_matches(pattern, given) for pattern in _strings(values)):
                return False
    return True


def _statements(policy: str) -> list[dict[str, Any]]:
    document: Any = json.loads(policy, object_pairs_hook=_reject_duplicates)
    if not isinstance(document, dict) or document.keys() != {"Version", "Statement"} or document["Version"] != "1":
        raise UnsupportedOssPolicy("the document must have version 1 and statements")
    statements = document["Statement"]
    if not isinstance(statements, list) or not statements:
        raise UnsupportedOssPolicy("the statements must be a list")
    for statement in statements:
        known = {"Effect", "Action", "Resource", "Condition"}
        if statement.keys() - known or not {"Effect", "Action", "Resource"} <= statement.keys():
            raise UnsupportedOssPolicy("a statement has unknown elements, or lacks one")
        if statement["Effect"] not in ("Allow", "Deny"):
            raise UnsupportedOssPolicy("the effect must be Allow or Deny")
    return list(statements)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return list(value)
    raise UnsupportedOssPolicy("a string or a list of strings was expected")


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnsupportedOssPolicy("a member occurs twice")
    return found
