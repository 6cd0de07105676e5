# SPDX-License-Identifier: Apache-2.0
"""Evaluate scopes of R2 credentials, and prove them by exhaustive checks. No code is shared with the builder of scopes.

The evaluation models what Cloudflare documents ("Temporary credentials"): the credential reaches one bucket, and the
objects whose keys begin with one of the prefixes. `object-read-only` reads and lists, `object-read-write` also writes
and deletes. Anything else in a scope raises `UnsupportedScope`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.proof_keys import neighbours

__all__ = ["UnsupportedScope", "Violation", "evaluate", "prove_scope"]

_READ: Final = frozenset({"get", "list"})
_OF_PERMISSION: Final = {"object-read-only": _READ, "object-read-write": _READ | {"put", "delete", "multipart"}}
_REQUIRED: Final = {AccessLevel.READ: _READ, AccessLevel.READ_WRITE_DELETE: _OF_PERMISSION["object-read-write"]}
_ACTIONS: Final = (
    "get",
    "put",
    "delete",
    "multipart",
    "put-bucket-policy",
    "create-bucket",
    "delete-bucket",
    "put-cors",
)


class UnsupportedScope(ValueError):
    """The scope contains something that this evaluator does not support."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of the evaluation that differs from what the location and the access level require."""

    action: str
    bucket: str
    key: str | None
    expected: bool

    def __str__(self) -> str:
        return f"{self.action} on {self.bucket!r} key {self.key!r} is {'refused' if self.expected else 'allowed'}"


def evaluate(scope: str, action: str, *, bucket: str, key: str | None) -> bool:
    """Return True if the scope allows `action` on the object `key`. For `list`, `key` is the prefix of the request.

    Raises `UnsupportedScope`.
    """
    return _evaluate(_read(scope), action, bucket, key)


def prove_scope(scope: str, location: Location, level: AccessLevel, other_keys: Iterable[str]) -> list[Violation]:
    """Evaluate the scope, and return each result that differs from the requirements of `location` and `level`. An empty
    list is the proof.
    """
    bucket, _, path = location.text.partition("://")[2].partition("/")
    inside = path + "/"
    required = _REQUIRED.get(level, frozenset())
    read = _read(scope)
    violations: list[Violation] = []

    def check(action: str, where: str, key: str | None, *, expected: bool) -> None:
        if _evaluate(read, action, where, key) is not expected:
            violations.append(Violation(action, where, key, expected))

    for key in (inside, inside + "data/f", inside + "a/../b", *neighbours(path), *other_keys):
        belongs = key.startswith(inside)
        for action in _ACTIONS:
            check(action, bucket, key, expected=belongs and action in required)
            check(action, bucket + "-other", key, expected=False)
        for prefix in (key, key[:-1], key.rpartition("/")[0], key.rpartition("/")[0] + "/"):
            check("list", bucket, prefix, expected="list" in required and prefix.startswith(inside))
    for nothing in (None, "", path, "/"):
        check("list", bucket, nothing, expected=False)
    return violations


def _evaluate(scope: tuple[str, frozenset[str], tuple[str, ...]], action: str, bucket: str, key: str | None) -> bool:
    allowed_bucket, actions, prefixes = scope
    return bucket == allowed_bucket and action in actions and key is not None and key.startswith(prefixes)


def _read(scope: str) -> tuple[str, frozenset[str], tuple[str, ...]]:
    """Return (bucket, actions, prefixes)."""
    fields: Any = json.loads(scope, object_pairs_hook=_reject_duplicates)
    if not isinstance(fields, dict) or fields.keys() != {"bucket", "permission", "prefixes"}:
        raise UnsupportedScope("a scope must have a bucket, a permission and prefixes, and nothing else")
    actions = _OF_PERMISSION.get(fields["permission"])
    if actions is None:
        raise UnsupportedScope("the permission is not one for objects")
    prefixes = fields["prefixes"]
    # A credential without prefixes would reach the whole bucket.
    if not isinstance(prefixes, list) or not prefixes:
        raise UnsupportedScope("a scope needs at least one prefix")
    for prefix in prefixes:
        # R2's documentation does not say whether a prefix matches only whole segments. With a final slash, this does
        # not matter.
        if not isinstance(prefix, str) or not prefix.endswith("/") or any(c in "*?" for c in prefix):
            raise UnsupportedScope("a prefix must end with a slash and have no pattern characters")
    return str(fields["bucket"]), actions, tuple(prefixes)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnsupportedScope("a member occurs twice")
    return found
