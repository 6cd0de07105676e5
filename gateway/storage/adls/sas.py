# SPDX-License-Identifier: Apache-2.0
"""Shared access signatures for one directory ("Create a user delegation SAS", "Create a service SAS").

The directory and its depth are signed, so that a signature for one directory is invalid for any other. The text to sign
has one line for each field, in the order of version 2020-12-06 and later. A field that is missing is an empty line.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location

__all__ = [
    "DelegationKey",
    "Directory",
    "build_directory",
    "read_directory",
    "sign_with_account",
    "sign_with_delegation",
]

VERSION: Final = "2022-11-02"

#: Letters of the permissions in the order that the service requires: read, add, create, write, delete, list.
_PERMISSIONS: Final = {
    AccessLevel.READ: "rl",
    AccessLevel.READ_WRITE: "racwl",
    AccessLevel.READ_WRITE_DELETE: "racwdl",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The scope of a signature: a directory of a file system, and the permissions on everything below it."""

    account: str
    filesystem: str
    path: str
    permissions: str

    @property
    def resource(self) -> str:
        """Return the canonical resource for the text to sign. Names are not percent-encoded."""
        return f"/blob/{self.account}/{self.filesystem}/{self.path}"

    @property
    def depth(self) -> int:
        """Return the number of directories from the root to `path`, which is included."""
        return self.path.count("/") + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationKey:
    """A user delegation key ("Get User Delegation Key"). `value` is the secret; `repr` shows only the expiry."""

    object_id: str
    tenant_id: str
    start: str
    expiry: str
    service: str
    version: str
    value: bytes

    @property
    def expires_at(self) -> datetime:
        """Return the expiry as an aware datetime in UTC."""
        return datetime.strptime(self.expiry, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)

    def __repr__(self) -> str:
        return f"DelegationKey(expiry={self.expiry!r})"


def build_directory(location: Location, level: AccessLevel) -> str:
    """Describe the scope of a signature for `level` below `location`, as compact JSON.

    Raises `InvalidLocation` for a line break, which would add a line to the text to sign.
    """
    filesystem, _, server = location.authority.partition("@")
    path = "/".join(location.segments)
    if not path.isprintable():
        raise InvalidLocation("The location has a character that a shared access signature cannot contain")
    fields = {
        "account": server.partition(".")[0],
        "filesystem": filesystem,
        "path": path,
        "permissions": _PERMISSIONS[level],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read_directory(description: str) -> Directory:
    """Parse a description by `build_directory`."""
    return Directory(**json.loads(description))


def sign_with_delegation(
    directory: Directory, key: DelegationKey, *, start: datetime, expiry: datetime, correlation_id: str
) -> str:
    """Return the query string of a user delegation SAS. `correlation_id` is a GUID that the store's logs contain."""
    times = {"st": _time(start), "se": _time(expiry)}
    signed = (
        directory.permissions,
        times["st"],
        times["se"],
        directory.resource,
        key.object_id,
        key.tenant_id,
        key.start,
        key.expiry,
        key.service,
        key.version,
        "",  # authorized user
        "",  # user that the service checks by access lists
        correlation_id,
        "",  # addresses
        "https",
        VERSION,
        "d",
        *[""] * 7,  # snapshot, encryption scope, five response headers
    )
    fields = {
        "sp": directory.permissions,
        **times,
        "skoid": key.object_id,
        "sktid": key.tenant_id,
        "skt": key.start,
        "ske": key.expiry,
        "sks": key.service,
        "skv": key.version,
        "scid": correlation_id,
        "spr": "https",
        "sv": VERSION,
        "sr": "d",
        "sdd": str(directory.depth),
        "sig": _signature(key.value, signed),
    }
    return urlencode(fields)


def sign_with_account(directory: Directory, key: bytes, *, start: datetime, expiry: datetime) -> str:
    """Return the query string of a service SAS, signed with the key of the account."""
    times = {"st": _time(start), "se": _time(expiry)}
    signed = (
        directory.permissions,
        times["st"],
        times["se"],
        directory.resource,
        "",  # stored policy
        "",  # addresses
        "https",
        VERSION,
        "d",
        *[""] * 7,  # snapshot, encryption scope, five response headers
    )
    fields = {
        "sp": directory.permissions,
        **times,
        "spr": "https",
        "sv": VERSION,
        "sr": "d",
        "sdd": str(directory.depth),
        "sig": _signature(key, signed),
    }
    return urlencode(fields)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _signature(key: bytes, lines: tuple[str, ...]) -> str:
    return base64.b64encode(hmac.digest(key, "\n".join(lines).encode(), hashlib.sha256)).decode()
