# SPDX-License-Identifier: Apache-2.0
"""Evaluate shared access signatures, and prove their scope. No code is shared with the builder of signatures.

The evaluator works as the service does ("Create a service SAS", "Create a user delegation SAS"). It takes as many
directories from the path of a request as the signature's depth. It computes the text to sign for that directory with
the fields of the query, and compares the signature. Then it looks up the operation in the permissions.

`UnsupportedSignature` is raised for fields that the evaluator does not support, because it could prove nothing about
them.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location

__all__ = ["OPERATIONS", "UnsupportedSignature", "Violation", "evaluate", "prove_scope"]

#: The permissions for each operation; one of them suffices. `racwdxltmeop` is the order of all permissions.
OPERATIONS: Final[Mapping[str, str]] = {
    "read": "r",
    "list": "l",
    "create": "cw",
    "write": "w",
    "append": "aw",
    "delete": "d",
    "delete version": "x",
    "delete permanently": "y",
    "tags": "t",
    "move": "m",
    "set owner": "o",
    "set permissions": "p",
    "set immutability": "i",
}
_WANTED: Final = {
    AccessLevel.READ: frozenset({"read", "list"}),
    AccessLevel.READ_WRITE: frozenset({"read", "list", "create", "write", "append"}),
    AccessLevel.READ_WRITE_DELETE: frozenset({"read", "list", "create", "write", "append", "delete"}),
}
_DELEGATED: Final = ("skoid", "sktid", "skt", "ske", "sks", "skv")
_KNOWN: Final = {"sp", "st", "se", "spr", "sv", "sr", "sdd", "sig", "scid", *_DELEGATED}


class UnsupportedSignature(ValueError):
    """The query contains something that this evaluator does not support."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A result of the evaluation that differs from what the location and the access level require."""

    operation: str
    account: str
    filesystem: str
    path: str
    expected: bool

    def __str__(self) -> str:
        verb = "refused" if self.expected else "allowed"
        return f"{self.operation} of {self.path!r} in {self.filesystem}@{self.account} is {verb}"


def evaluate(query: str, key: bytes, operation: str, *, account: str, filesystem: str, path: str) -> bool:
    """Return True if the signature, made with `key`, allows the operation. `path` is decoded, without a leading slash.

    For a list, `path` is the directory. Raises `UnsupportedSignature`.
    """
    fields = _fields(query)
    depth = int(fields["sdd"])
    segments = path.rstrip("/").split("/") if path else []
    if len(segments) < depth or any(segment in ("", ".", "..") for segment in segments):
        return False
    resource = f"/blob/{account}/{filesystem}/" + "/".join(segments[:depth])
    signed = base64.b64encode(hmac.digest(key, _text_to_sign(fields, resource).encode(), hashlib.sha256)).decode()
    if not hmac.compare_digest(signed, fields["sig"]):
        return False
    return any(permission in fields["sp"] for permission in OPERATIONS[operation])


def prove_scope(
    query: str, key: bytes, location: Location, level: AccessLevel, other_paths: Iterable[str]
) -> list[Violation]:
    """Evaluate the signature, and return each result that differs from the requirements of `location` and `level`. An
    empty list is the proof.
    """
    authority, _, path = location.text.partition("://")[2].partition("/")
    filesystem, _, server = authority.partition("@")
    account = server.partition(".")[0]
    violations: list[Violation] = []

    def check(operation: str, where: tuple[str, str], target: str, *, expected: bool) -> None:
        found = evaluate(query, key, operation, account=where[0], filesystem=where[1], path=target)
        if found is not expected:
            violations.append(Violation(operation, *where, target, expected))

    for target in (path, path + "/data/f", path + "/a/b/c/d", *_neighbours(path), *other_paths):
        names = target.split("/")
        inside = names[: path.count("/") + 1] == path.split("/") and not {"", ".", ".."} & set(names)
        for operation in OPERATIONS:
            check(operation, (account, filesystem), target, expected=inside and operation in _WANTED[level])
            check(operation, (account + "0", filesystem), target, expected=False)
            check(operation, (account, filesystem + "0"), target, expected=False)
    return violations


def _neighbours(path: str) -> Iterator[str]:
    segments = path.split("/")
    for index, segment in enumerate(segments):
        for other in ("x", segment + "0", "x" + segment, segment[:-1], segment.swapcase() + "_", "%2e%2e", ".."):
            yield "/".join((*segments[:index], other, *segments[index + 1 :], "f"))
        yield "/".join((*segments[:index], *segments[index + 1 :], "f"))
        yield "/".join(segments[:index])
    yield from (path + "0", path + "0/f", "x/" + path + "/f", path + "/../other", path.upper() + "_/f")


def _fields(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    fields = dict(pairs)
    if len(fields) != len(pairs) or fields.keys() - _KNOWN:
        raise UnsupportedSignature("a field occurs twice or is not known")
    if fields.get("sr") != "d" or fields.get("spr") != "https" or not fields.get("sdd", "").isdigit():
        raise UnsupportedSignature("only signatures for a directory and over HTTPS are known")
    if int(fields["sdd"]) < 1 or fields.get("sv", "") < "2020-12-06" or fields["sv"] >= "2025-07-05":
        raise UnsupportedSignature("the depth or the version is not known")
    if any(name in fields for name in _DELEGATED) and not all(name in fields for name in _DELEGATED):
        raise UnsupportedSignature("the signature names only a part of its delegation key")
    return fields


def _text_to_sign(fields: Mapping[str, str], resource: str) -> str:
    def of(name: str) -> str:
        return fields.get(name, "")

    start = [of("sp"), of("st"), of("se"), resource]
    identity = [of("si")]
    if "skoid" in fields:
        identity = [*(of(name) for name in _DELEGATED), of("saoid"), of("suoid"), of("scid")]
    rest = [of("sip"), of("spr"), of("sv"), of("sr"), of("snapshot"), of("ses")]
    headers = [of(name) for name in ("rscc", "rscd", "rsce", "rscl", "rsct")]
    return "\n".join(start + identity + rest + headers)
