# SPDX-License-Identifier: Apache-2.0
"""The ready file: addresses and secrets with which another program can use a running stack. Its mode is 0600."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lakegate.local.secrets import write_private

FILE = "ready.json"
"""The ready file in the data directory, for ``lakegate status``."""


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A demonstration user: catalog id, a token valid for one hour, and the client with which to get more tokens."""

    id: str
    token: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"User({self.id!r})"


class ObjectStoreAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The object store, with the gateway's own keys.

    ``profile``: storage profile of a warehouse, without bucket and key prefix.
    """

    endpoint: str
    region: str
    bucket: str
    access_key: str
    secret_key: str
    profile: dict[str, str | bool]

    def __repr__(self) -> str:
        return f"ObjectStoreAccess({self.endpoint!r})"


class OpenFgaAccess(msgspec.Struct, frozen=True, kw_only=True):
    """OpenFGA with its preshared key."""

    url: str
    store_id: str
    model_id: str
    token: str

    def __repr__(self) -> str:
        return f"OpenFgaAccess({self.url!r})"


class OpaAccess(msgspec.Struct, frozen=True, kw_only=True):
    """OPA with the operator's token, which may change policy data but not query decisions."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"OpaAccess({self.url!r})"


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A running stack.

    ``warehouse`` and ``warehouse_id`` are null if the stack was started empty. ``postgres`` is the URL for the
    gateway's role. ``bridge_key`` is the secret with which Trino proves its identity to the OPA beside it.
    ``environment`` is the file with the settings of the gateway.
    """

    catalog_uri: str
    management_uri: str
    metrics_uri: str
    issuer: str
    token_endpoint: str
    project_id: str
    warehouse: str | None
    warehouse_id: str | None
    users: dict[str, User]
    s3: ObjectStoreAccess
    postgres: str
    openfga: OpenFgaAccess
    opa: OpaAccess
    bridge_key: str
    pids: dict[str, list[int]]
    environment: str = ""

    def __repr__(self) -> str:
        return f"Ready(catalog_uri={self.catalog_uri!r})"


def write(path: Path, ready: Ready) -> None:
    """Write the file atomically: a reader sees the whole file or none."""
    write_private(path, msgspec.json.format(msgspec.json.encode(ready)) + b"\n")


def read(path: Path) -> Ready:
    """Read a ready file."""
    return msgspec.json.decode(path.read_bytes(), type=Ready)
