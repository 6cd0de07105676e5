# SPDX-License-Identifier: Apache-2.0
"""Evaluate S3 policies, and prove their scope by exhaustive checks. No code is shared with the builder of policies.

The semantics follow the IAM user guide, "Policy evaluation logic" and "IAM JSON policy elements". Without an Allow a
request is denied, and an explicit Deny wins. Values of one condition key are alternatives; keys and operators must all
match. A key that is missing in the request matches no positive operator. `Dialect.CASE_BLIND` models stores that
compare resources case-insensitively and support neither escapes nor variables (SeaweedFS).

`UnsupportedPolicy` is raised for policy elements that the evaluator does not support, because it could prove nothing
about them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.proof_keys import neighbours

__all__ = ["Dialect", "UnsupportedPolicy", "Violation", "evaluate", "prove_scope"]


class Dialect(StrEnum):
    """The kind of store whose semantics of policies apply."""

    AWS = "aws"
    CASE_BLIND = "case-blind"


class UnsupportedPolicy(ValueError):
    """The document contains an element, operator or variable that this evaluator does not support."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of the evaluation that differs from what the location and the access level require."""

    action: str
    bucket: str
    key: str | None
    context: tuple[tuple[str, str], ...]
    expected: bool

    def __str__(self) -> str:
        verb = "refused" if self.expected else "allowed"
        return f"{self.action} on {self.bucket!r} key {self.key!r} with {dict(self.context)!r} is {verb}"


def evaluate(
    policy: str,
    action: str,
    *,
    bucket: str,
    key: str | None = None,
    context: Mapping[str, str] | None = None,
    dialect: Dialect = Dialect.AWS,
    partition: str = "aws",
) -> bool:
    """Return True if the policy allows `action` on the object `bucket/key`, or on the bucket if `key` is None.

    `context` contains the request's condition keys (`s3:prefix` …). Raises `UnsupportedPolicy` and
    `json.JSONDecodeError`.
    """
    arn = f"arn:{partition}:s3:::{bucket}" + ("" if key is None else f"/{key}")
    return _evaluate(_statements(policy), action, arn, dict(context or {}), dialect)


def prove_scope(
    policy: str,
    location: Location,
    level: AccessLevel,
    other_keys: Iterable[str],
    *,
    dialect: Dialect = Dialect.AWS,
    partition: str = "aws",
) -> list[Violation]:
    """Evaluate the policy, and return each result that differs from the requirements of `location` and `level`. An
    empty list is the proof.

    `other_keys` are further object keys in the same bucket, of other tables or invented. Only the text of the location
    determines which of them are inside. For every key, all object actions are evaluated, and lists with the key and its
    stems as prefix.
    """
    bucket, _, path = location.text.partition("://")[2].partition("/")
    inside = path + "/"
    statements = _statements(policy)
    arn = f"arn:{partition}:s3:::"
    violations: list[Violation] = []

    def check(action: str, where: str, key: str | None, context: dict[str, str], *, expected: bool) -> None:
        resource = arn + where + ("" if key is None else "/" + key)
        if _evaluate(statements, action, resource, context, dialect) is not expected:
            violations.append(Violation(action, where, key, tuple(context.items()), expected))

    allowed_actions = _ALLOWED_ACTIONS[level]
    for key in (*_inside_samples(inside), *neighbours(path), *other_keys):
        belongs = key.startswith(inside)
        for action in _OBJECT_ACTIONS:
            check(action, bucket, key, {}, expected=belongs and action in allowed_actions)
            check(action, bucket + "-other", key, {}, expected=False)
        for prefix in _stems(key):
            check("s3:ListBucket", bucket, None, {"s3:prefix": prefix}, expected=prefix.startswith(inside))
    for context in ({}, {"s3:prefix": ""}, {"s3:prefix": path}, {"s3:delimiter": "/"}):
        check("s3:ListBucket", bucket, None, context, expected=False)
    for action in _BUCKET_AND_CONTROL_ACTIONS:
        for context in ({}, {"s3:prefix": inside}):
            check(action, bucket, None, context, expected=False)
            check(action, bucket, inside + "data", context, expected=False)
    return violations


_ALLOWED_ACTIONS: Final[dict[AccessLevel, frozenset[str]]] = {
    AccessLevel.READ: frozenset({"s3:GetObject"}),
    AccessLevel.READ_WRITE: frozenset(
        {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}
    ),
    AccessLevel.READ_WRITE_DELETE: frozenset(
        {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:DeleteObject"}
    ),
}
_OBJECT_ACTIONS: Final = (
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
    "s3:GetObjectAcl",
    "s3:PutObjectAcl",
    "s3:GetObjectTagging",
    "s3:PutObjectTagging",
    "s3:RestoreObject",
    "s3:BypassGovernanceRetention",
    "s3:PutObjectRetention",
    "s3:PutObjectLegalHold",
    "s3:ReplicateObject",
)
_BUCKET_AND_CONTROL_ACTIONS: Final = (
    "s3:ListBucketVersions",
    "s3:ListBucketMultipartUploads",
    "s3:ListAllMyBuckets",
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:GetBucketPolicy",
    "s3:PutBucketPolicy",
    "s3:DeleteBucketPolicy",
    "s3:PutBucketAcl",
    "s3:PutBucketCORS",
    "s3:PutBucketVersioning",
    "s3:PutLifecycleConfiguration",
    "s3:PutReplicationConfiguration",
    "s3:PutInventoryConfiguration",
    "s3:PutBucketNotification",
    "s3:PutBucketTagging",
    "s3:PutEncryptionConfiguration",
    "sts:AssumeRole",
    "sts:GetSessionToken",
    "sts:GetFederationToken",
    "iam:CreateAccessKey",
    "iam:CreateUser",
    "iam:PassRole",
)


def _inside_samples(inside: str) -> Iterator[str]:
    yield from (inside, inside + "data/f.parquet", inside + "metadata/00001.json", inside + "deep/er/*/?/${x}/f")


def _stems(key: str) -> Iterator[str]:
    """Yield the key, the key without its last character, and its last four parents with and without the slash."""
    yield key
    yield key[:-1]
    stem = key
    for _ in range(4):
        stem, slash, _rest = stem.rpartition("/")
        if not slash:
            return
        yield stem
        yield stem + "/"


# -- evaluation --------------------------------------------------------------------------------------------------------


def _statements(policy: str) -> list[dict[str, Any]]:
    document = json.loads(policy, object_pairs_hook=_reject_duplicates)
    if not isinstance(document, dict) or document.keys() - {"Version", "Id", "Statement"}:
        raise UnsupportedPolicy("the document has unknown elements")
    if document.get("Version") != "2012-10-17":
        raise UnsupportedPolicy("only version 2012-10-17 knows variables and escapes")
    statements = document.get("Statement", [])
    statements = [statements] if isinstance(statements, dict) else statements
    known = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"}
    for statement in statements:
        if statement.keys() - known or statement.get("Effect") not in {"Allow", "Deny"}:
            raise UnsupportedPolicy("a statement has unknown elements or no effect")
        if ("Action" in statement) == ("NotAction" in statement) or ("Resource" in statement) == (
            "NotResource" in statement
        ):
            raise UnsupportedPolicy(
                "a statement needs exactly one of Action and NotAction, and of Resource and NotResource"
            )
    return list(statements)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnsupportedPolicy("an element occurs twice")
    return found


def _evaluate(
    statements: list[dict[str, Any]], action: str, arn: str, context: Mapping[str, str], dialect: Dialect
) -> bool:
    effects = {s["Effect"] for s in statements if _applies(s, action, arn, context, dialect)}
    return effects == {"Allow"}


def _applies(statement: dict[str, Any], action: str, arn: str, context: Mapping[str, str], dialect: Dialect) -> bool:
    actions = _strings(statement.get("Action", statement.get("NotAction")))
    named = any(_pattern_match(pattern.lower(), action.lower(), {}, dialect, fold=False) for pattern in actions)
    if named is ("NotAction" in statement):
        return False
    resources = _strings(statement.get("Resource", statement.get("NotResource")))
    covered = any(_pattern_match(pattern, arn, context, dialect, fold=True) for pattern in resources)
    if covered is ("NotResource" in statement):
        return False
    return all(
        _operator_holds(operator, name, _strings(values), context, dialect)
        for operator, keys in statement.get("Condition", {}).items()
        for name, values in keys.items()
    )


def _operator_holds(operator: str, name: str, values: list[str], context: Mapping[str, str], dialect: Dialect) -> bool:
    present = {key.lower(): value for key, value in context.items()}
    base = operator.removesuffix("IfExists")
    value = present.get(name.lower())
    if base == "Null":
        return [str(value is None).lower()] == values
    negated = base in {"StringNotEquals", "StringNotLike"}
    if value is None:
        return operator.endswith("IfExists") or (negated and dialect is Dialect.AWS)
    match base:
        case "StringLike" | "StringNotLike":
            found = any(_pattern_match(v, value, context, dialect, fold=False) for v in values)
        case "StringEquals" | "StringNotEquals":
            found = any(_plain(v, context, dialect) == value for v in values)
        case "StringEqualsIgnoreCase":
            found = any((_plain(v, context, dialect) or "").casefold() == value.casefold() for v in values)
        case _:
            raise UnsupportedPolicy(f"condition operator {operator!r}")
    return found is not negated


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return list(value)
    raise UnsupportedPolicy("a string or a list of strings was expected")


def _expand(pattern: str, context: Mapping[str, str], dialect: Dialect) -> list[tuple[str, bool]] | None:
    """Expand a pattern into pieces (text, True for a wildcard). Return None if it contains a variable that the request
    does not have.
    """
    pieces: list[tuple[str, bool]] = []
    for found in _PIECE.finditer(pattern):
        text = found[0]
        if dialect is Dialect.AWS and found["variable"] is not None:
            name = found["variable"]
            value = name if name in {"*", "?", "$"} else context.get(name)
            if value is None:
                return None
            pieces.append((value, False))
        elif found["variable"] is not None:
            # A variable of unsupported syntax is literal text, and wildcards inside of it are active.
            pieces.extend((character, character in "*?") for character in text)
        else:
            pieces.append((text, text in {"*", "?"}))
    return pieces


_PIECE: Final = re.compile(r"\$\{(?P<variable>[^}]*)\}|[*?]|[^*?$]+|\$", re.DOTALL)


def _plain(pattern: str, context: Mapping[str, str], dialect: Dialect) -> str | None:
    """Return the value to compare with a pattern by equality, in which `*` and `?` are ordinary characters."""
    pieces = _expand(pattern, context, dialect)
    return None if pieces is None else "".join(text for text, _ in pieces)


def _pattern_match(pattern: str, text: str, context: Mapping[str, str], dialect: Dialect, *, fold: bool) -> bool:
    pieces = _expand(pattern, context, dialect)
    if pieces is None:
        return False
    blind = fold and dialect is Dialect.CASE_BLIND
    expression = "".join(_WILD[piece] if wild else re.escape(piece) for piece, wild in pieces)
    return _compiled(expression, blind).fullmatch(text) is not None


_WILD: Final = {"*": ".*", "?": "."}


@lru_cache(maxsize=256)
def _compiled(expression: str, blind: bool) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if blind else re.NOFLAG))
