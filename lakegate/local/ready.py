# SPDX-License-Identifier: Apache-2.0
"""Write and read the ready file, and the secrets of one stack.

The ready file has the addresses and secrets with which another program can use a running stack. The generated secrets
of a stack are in another file of its data directory. Only the owner can read the two files (mode 0600).
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

import msgspec

from lakegate.local.errors import StackError

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
    """Write the file atomically: a reader sees the whole file or no file."""
    write_private(path, msgspec.json.format(msgspec.json.encode(ready)) + b"\n")


def read(path: Path) -> Ready:
    """Read a ready file."""
    return msgspec.json.decode(path.read_bytes(), type=Ready)


TRINO, TRINO_BRIDGE = "trino", "trino-bridge"
"""The clients of Trino itself, and of the OPA beside it."""
USERS = ("admin", "alice", "bob", "carol", "etl", "analyst", "steward", "contractor", TRINO, TRINO_BRIDGE)
"""The users and programs of the demonstration; each is a confidential client of the identity provider."""
PROGRAMS = ("etl", TRINO, TRINO_BRIDGE)
"""The clients that are programs; they have no interactive sign-in."""


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Every secret of a stack; ``repr`` shows none of them."""

    postgres_superuser: str
    postgres_gateway: str
    postgres_openfga: str
    encryption_key: str
    openfga: str
    opa_gateway: str
    opa_operator: str
    s3_access_key: str
    s3_secret_key: str
    s3_signing_key: str
    store_jwt_keys: tuple[str, str, str, str]
    identity_session: str
    identity_management: str
    clients: dict[str, str]
    bridge_key: str = ""

    def __repr__(self) -> str:
        return "Secrets(…)"


def generate() -> Secrets:
    """Generate new secrets. Every value has at least 128 random bits from the operating system."""
    token = secrets.token_urlsafe
    return Secrets(
        postgres_superuser=token(24),
        postgres_gateway=token(24),
        postgres_openfga=token(24),
        encryption_key=token(32),
        openfga=token(32),
        opa_gateway=token(32),
        opa_operator=token(32),
        s3_access_key="LG" + secrets.token_hex(9).upper(),
        s3_secret_key=token(30),
        s3_signing_key=base64.b64encode(secrets.token_bytes(32)).decode(),
        store_jwt_keys=(token(32), token(32), token(32), token(32)),
        identity_session=token(32),
        identity_management=token(32),
        clients={name: token(24) for name in USERS},
        bridge_key=token(24),
    )


def _completed(kept: Secrets) -> Secrets:
    """Return the secrets that an earlier version has stored, completed by those that this version needs in addition."""
    made = generate()
    clients = made.clients | kept.clients
    return msgspec.structs.replace(kept, clients=clients, bridge_key=kept.bridge_key or made.bridge_key)


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically. It has the mode 0600 from its creation on."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def load_or_generate(path: Path) -> Secrets:
    """Return the secrets stored at ``path``. At the first start, generate and store them.

    Raises:
        StackError: the file exists but cannot be read. Without it, the data directory is unusable.
    """
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Secrets)
        made = _completed(kept)
        if made == kept:
            return kept
    except FileNotFoundError:
        made = generate()
    except (OSError, msgspec.DecodeError) as error:
        raise StackError(
            f"the file with the secrets of this data directory, {path}, cannot be read: {type(error).__name__}; "
            "remove the whole directory to start again without data"
        ) from error
    write_private(path, msgspec.json.encode(made))
    return made
