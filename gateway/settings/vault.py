# SPDX-License-Identifier: Apache-2.0
"""Settings of HashiCorp Vault as a secret store.

`URL`, `USER`, `PASSWORD` and `SECRET_MOUNT` have the names that Lakekeeper uses.
"""

from __future__ import annotations

import typing
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX, PositiveSeconds, Secret


class Kv2(msgspec.Struct, frozen=True, kw_only=True):
    """HashiCorp Vault, secrets engine KV version 2. It is used if `SECRET_BACKEND` is `kv2`."""

    url: str | None = None
    """Address of Vault, such as `https://vault.example.com:8200`."""
    auth: typing.Literal["userpass", "approle", "kubernetes"] = "userpass"
    """Auth method of Vault with which the gateway logs in."""
    auth_mount: str | None = None
    """Path of the auth method in Vault, without `auth/`. Default: its name."""
    user: str | None = None
    """User name for `userpass`."""
    password: Secret | None = None
    """Password for `userpass`."""
    role_id: str | None = None
    """Role id for `approle`."""
    secret_id: Secret | None = None
    """Secret id for `approle`."""
    role: str | None = None
    """Role for `kubernetes`."""
    token_file: str = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path, not a token
    """File with the service account token for `kubernetes`. It is read again at each login."""
    secret_mount: str | None = None
    """Path of the secrets engine KV version 2 that keeps the credentials."""
    path_prefix: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)*$")] = "lakegate"
    """Path below `SECRET_MOUNT` for the credentials of this installation. Two installations need different paths only
    to have different policies.
    """
    namespace: str | None = None
    """Namespace (Vault Enterprise)."""
    ca_file: str | None = None
    """File of CA certificates (PEM) for Vault alone. Default: those of all other connections."""
    timeout: PositiveSeconds = 5.0
    """Timeout in seconds of an operation in Vault, including logins and retries. Each call gets half of it. After it,
    the request gets 503, or 429 for a change of the catalog.
    """

    def problems(self) -> list[str]:
        """Return the problems of these settings, one line each. Return nothing if this store is not used."""
        needed: dict[str, object] = {"URL": self.url, "SECRET_MOUNT": self.secret_mount}
        match self.auth:
            case "userpass":
                needed |= {"USER": self.user, "PASSWORD": self.password}
            case "approle":
                needed |= {"ROLE_ID": self.role_id, "SECRET_ID": self.secret_id}
            case "kubernetes":
                needed |= {"ROLE": self.role, "TOKEN_FILE": self.token_file}
        lines = [f"{PREFIX}KV2__{name} must be set" for name, value in needed.items() if not value]
        if self.url and not self.url.startswith(("https://", "http://")):
            lines.append(f"{PREFIX}KV2__URL must begin with https:// or http://")
        return lines
