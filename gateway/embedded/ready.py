# SPDX-License-Identifier: Apache-2.0
"""The ready file: everything another program needs to use a running stack. It holds secrets and is written 0600."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gateway.embedded.secrets import write_private


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A demonstration user: catalog id, a token good for one hour, and the client to get more tokens with."""

    id: str
    token: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"User({self.id!r})"


class ObjectStoreAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The store with the gateway's own keys; ``profile`` is what a warehouse needs besides bucket and key prefix."""

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
    """OPA with the operator's token, which may change policy data and ask no decisions."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"OpaAccess({self.url!r})"


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A running stack. ``warehouse`` is null when the stack was started empty; ``postgres`` is the gateway's URL."""

    catalog_uri: str
    management_uri: str
    metrics_uri: str
    issuer: str
    token_endpoint: str
    project_id: str
    warehouse: str | None
    users: dict[str, User]
    s3: ObjectStoreAccess
    postgres: str
    openfga: OpenFgaAccess
    opa: OpaAccess
    pids: dict[str, list[int]]

    def __repr__(self) -> str:
        return f"Ready(catalog_uri={self.catalog_uri!r})"


def write(path: Path, ready: Ready) -> None:
    """Write the file in one step: whoever sees it sees all of it."""
    write_private(path, msgspec.json.format(msgspec.json.encode(ready)) + b"\n")


def read(path: Path) -> Ready:
    """Read a ready file."""
    return msgspec.json.decode(path.read_bytes(), type=Ready)
