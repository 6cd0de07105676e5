# SPDX-License-Identifier: Apache-2.0
"""Evaluate credential access boundaries, and prove their scope. No code is shared with the builder of boundaries.

The evaluation follows the IAM documentation ("Credential Access Boundaries", "Attribute reference for IAM Conditions"):
a token has a permission on a resource if a rule for its bucket has a role with that permission, and the condition of
the rule is true. Only the part of the Common Expression Language that a boundary for a prefix needs is supported.
Anything else raises `UnsupportedBoundary`.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.proof_keys import neighbours

__all__ = ["UnsupportedBoundary", "Violation", "evaluate", "prove_scope"]

# IAM documentation, "Cloud Storage roles".
_PERMISSIONS: Final = {
    "roles/storage.objectViewer": {
        "storage.objects.get",
        "storage.objects.list",
        "storage.folders.get",
        "storage.folders.list",
        "storage.managedFolders.get",
        "storage.managedFolders.list",
    },
    "roles/storage.objectCreator": {
        "storage.objects.create",
        "storage.multipartUploads.create",
        "storage.multipartUploads.abort",
        "storage.multipartUploads.listParts",
        "storage.folders.create",
        "storage.managedFolders.create",
    },
    "roles/storage.objectUser": {
        "storage.objects.get",
        "storage.objects.list",
        "storage.objects.create",
        "storage.objects.delete",
        "storage.objects.update",
        "storage.objects.restore",
        "storage.objects.move",
        "storage.multipartUploads.create",
        "storage.multipartUploads.abort",
        "storage.multipartUploads.list",
        "storage.multipartUploads.listParts",
        "storage.folders.create",
        "storage.folders.delete",
        "storage.folders.get",
        "storage.folders.list",
        "storage.folders.rename",
        "storage.managedFolders.create",
        "storage.managedFolders.delete",
        "storage.managedFolders.get",
        "storage.managedFolders.list",
    },
}
_READ: Final = frozenset({"storage.objects.get"})
_WRITE: Final = _READ | {"storage.objects.create"}
_WANTED: Final = {
    AccessLevel.READ: _READ,
    AccessLevel.READ_WRITE: _WRITE,
    AccessLevel.READ_WRITE_DELETE: _WRITE | {"storage.objects.delete"},
}
_OBJECT_PERMISSIONS: Final = (
    "storage.objects.get",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.setIamPolicy",
    "storage.objects.getIamPolicy",
    "storage.objects.overrideUnlockedRetention",
)
_READ_FOLDERS: Final = frozenset({"storage.folders.get"})
_WRITE_FOLDERS: Final = _READ_FOLDERS | {"storage.folders.create"}
_WANTED_OF_FOLDERS: Final = {
    AccessLevel.READ: _READ_FOLDERS,
    AccessLevel.READ_WRITE: _WRITE_FOLDERS,
    AccessLevel.READ_WRITE_DELETE: _WRITE_FOLDERS | {"storage.folders.delete", "storage.folders.rename"},
}
_FOLDER_PERMISSIONS: Final = (
    "storage.folders.get",
    "storage.folders.create",
    "storage.folders.delete",
    "storage.folders.rename",
)
_MANAGED_FOLDER_PERMISSIONS: Final = (
    "storage.managedFolders.get",
    "storage.managedFolders.create",
    "storage.managedFolders.delete",
    "storage.managedFolders.setIamPolicy",
)
_BUCKET_PERMISSIONS: Final = (
    "storage.buckets.get",
    "storage.buckets.update",
    "storage.buckets.delete",
    "storage.buckets.setIamPolicy",
    "storage.buckets.create",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.hmacKeys.create",
    "iam.serviceAccounts.getAccessToken",
    "iam.serviceAccountKeys.create",
)


class UnsupportedBoundary(ValueError):
    """The document contains something that this evaluator does not support."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of the evaluation that differs from what the location and the access level require."""

    permission: str
    bucket: str
    name: str | None
    list_prefix: str | None
    expected: bool
    kind: str = "objects"

    def __str__(self) -> str:
        verb = "refused" if self.expected else "allowed"
        where = f"{self.kind} {self.name!r}" if self.name is not None else f"list of {self.list_prefix!r}"
        return f"{self.permission} on {self.bucket!r}, {where}, is {verb}"


def evaluate(
    boundary: str,
    permission: str,
    *,
    bucket: str,
    name: str | None = None,
    list_prefix: str | None = None,
    kind: str = "objects",
) -> bool:
    """Return True if the boundary allows `permission` on the object `name`, or on the bucket if `name` is None.

    `kind` is `folders` or `managedFolders` for the name of a folder. `list_prefix` is the prefix of a list request,
    None for other requests. Raises `UnsupportedBoundary`.
    """
    return _evaluate(_rules(boundary), permission, bucket, name, list_prefix, kind)


def prove_scope(boundary: str, location: Location, level: AccessLevel, other_names: Iterable[str]) -> list[Violation]:
    """Evaluate the boundary, and return each result that differs from the requirements of `location` and `level`. An
    empty list is the proof.

    `other_names` are further object names in the same bucket, of other tables or invented.
    """
    bucket, _, path = location.text.partition("://")[2].partition("/")
    inside = path + "/"
    rules = _rules(boundary)
    violations: list[Violation] = []

    def check(
        permission: str, where: str, name: str | None, prefix: str | None, *, expected: bool, kind: str = "objects"
    ) -> None:
        if _evaluate(rules, permission, where, name, prefix, kind) is not expected:
            violations.append(Violation(permission, where, name, prefix, expected, kind))

    for name in (inside + "data/f", inside, inside + "'||true||'", *neighbours(path), *other_names):
        belongs = name.startswith(inside)
        for permission in _OBJECT_PERMISSIONS:
            check(permission, bucket, name, None, expected=belongs and permission in _WANTED[level])
            check(permission, bucket + "-other", name, None, expected=False)
        for permission in _FOLDER_PERMISSIONS:
            wanted = belongs and permission in _WANTED_OF_FOLDERS[level]
            check(permission, bucket, name, None, expected=wanted, kind="folders")
        for permission in _MANAGED_FOLDER_PERMISSIONS:
            check(permission, bucket, name, None, expected=False, kind="managedFolders")
        for prefix in (name, name[:-1], name.rpartition("/")[0], name.rpartition("/")[0] + "/"):
            check("storage.objects.list", bucket, None, prefix, expected=prefix.startswith(inside))
    for other in (None, "", path, "/"):
        check("storage.objects.list", bucket, None, other, expected=False)
    for permission in _BUCKET_PERMISSIONS:
        check(permission, bucket, None, None, expected=False)
    return violations


# -- evaluation --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    bucket: str
    permissions: frozenset[str]
    condition: "tuple[_Term, ...]"


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a condition: `start` is compared with the name of the resource, or with the prefix of a list
    request.
    """

    of_list: bool
    start: str


def _evaluate(
    rules: tuple[_Rule, ...], permission: str, bucket: str, name: str | None, list_prefix: str | None, kind: str
) -> bool:
    resource = f"projects/_/buckets/{bucket}" + ("" if name is None else f"/{kind}/{name}")
    return any(
        rule.bucket == bucket
        and permission in rule.permissions
        and any(((list_prefix or "") if term.of_list else resource).startswith(term.start) for term in rule.condition)
        for rule in rules
    )


def _rules(boundary: str) -> tuple[_Rule, ...]:
    document: Any = json.loads(boundary, object_pairs_hook=_reject_duplicates)
    try:
        (found,) = document.values()
        ((name, rules),) = found.items()
    except (AttributeError, ValueError):
        raise UnsupportedBoundary("the document has unknown members") from None
    if list(document) != ["accessBoundary"] or name != "accessBoundaryRules" or not 1 <= len(rules) <= 10:
        raise UnsupportedBoundary("the document must have 1 to 10 rules and nothing else")
    return tuple(_rule(rule) for rule in rules)


def _rule(rule: dict[str, Any]) -> _Rule:
    if rule.keys() != {"availableResource", "availablePermissions", "availabilityCondition"}:
        raise UnsupportedBoundary("a rule must have a resource, permissions and a condition")
    start, _, bucket = str(rule["availableResource"]).rpartition("/")
    if start != "//storage.googleapis.com/projects/_/buckets":
        raise UnsupportedBoundary("the resource of a rule must be a bucket")
    permissions: set[str] = set()
    for entry in rule["availablePermissions"]:
        marker, _, role = entry.partition(":")
        if marker != "inRole" or role not in _PERMISSIONS:
            raise UnsupportedBoundary(f"the role {role!r} is not known")
        permissions |= _PERMISSIONS[role]
    return _Rule(bucket, frozenset(permissions), _condition(rule["availabilityCondition"]["expression"]))


_STRING: Final = r"'(?:[^'\\\n]|\\['\\])*'"
_TERM: Final = re.compile(
    rf"(?:(?P<name>resource\.name)"
    rf"|api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\))"
    rf"\.startsWith\((?P<start>{_STRING})\)"
)


def _condition(expression: str) -> tuple[_Term, ...]:
    """Parse a condition into its terms, which are joined by `||`."""
    terms: list[_Term] = []
    position = 0
    while True:
        found = _TERM.match(expression, position)
        if found is None:
            raise UnsupportedBoundary("the condition is not a start of a name or of a list prefix")
        terms.append(_Term(found["name"] is None, re.sub(r"\\(.)", r"\1", found["start"][1:-1])))
        position = found.end()
        if position == len(expression):
            return tuple(terms)
        if not expression.startswith(" || ", position):
            raise UnsupportedBoundary("the terms of the condition must be joined by ||")
        position += 4


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnsupportedBoundary("a member occurs twice")
    return found
