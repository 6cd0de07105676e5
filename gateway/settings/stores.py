# SPDX-License-Identifier: Apache-2.0
"""Settings for the stores of warehouses and of their credentials.

They include addresses that storage profiles cannot contain: private endpoints, emulators and further hosts.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.scope.endpoint import StoreAddresses, parse_networks, parse_store_address
from gateway.scope.profile import StorageRules, parse_directories, parse_roots
from gateway.settings.env import PREFIX, SettingsError
from gateway.settings.sections import Canary
from gateway.settings.system_identities import SystemIdentities
from gateway.settings.vault import Kv2

__all__ = [
    "StoreSettings",
]


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of object stores and of their authorization servers."""

    gcs_endpoint: str | None = None
    """Address of Google Cloud Storage for warehouses of type `gcs`, such as a private endpoint. An emulator is reached
    by plain HTTP on a loopback address. It receives no token of the warehouse's identity.
    """
    gcs_token_endpoint: str | None = None
    """Address with Google's token services, `/token` of OAuth 2 and `/v1/token` of token exchange, such as a private
    endpoint. Unset: Google's own.
    """
    adls_endpoint: str | None = None
    """Address of the blob service for warehouses of type `adls`, with `{account}` in place of the name of the storage
    account. An emulator is reached by plain HTTP on a loopback address.
    """
    adls_token_endpoint: str | None = None
    """Address of Entra ID. Unset: the `authority-host` of the storage profile."""
    adls_hosts: tuple[str, ...] = ()
    """Hosts that profiles of type `adls` may name in addition to those of Azure's clouds, such as
    `dfs.fabric.microsoft.com`. The gateway sends tokens of the warehouse's identity to them.
    """
    extensions: tuple[str, ...] = ()
    """Types of storage that installed packages provide and that warehouses may use (entry points of the group
    `lakegate.storage`). They run with all rights of the gateway.
    """

    def variables(self) -> dict[str, str]:
        """Return the settings that differ from the defaults, as variables whose names have no prefix."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        texts = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return {f"STORAGE__{name.upper()}": text for name, text in texts.items() if text}

    def addresses(self) -> dict[str, StoreAddresses]:
        """Return {type of storage profile: addresses}.

        Raises:
            SettingsError: an address has a wrong form.
        """
        return {
            "gcs": StoreAddresses(
                files=_address("GCS_ENDPOINT", self.gcs_endpoint),
                tokens=_address("GCS_TOKEN_ENDPOINT", self.gcs_token_endpoint),
            ),
            "adls": StoreAddresses(
                files=_address("ADLS_ENDPOINT", self.adls_endpoint, account=True),
                tokens=_address("ADLS_TOKEN_ENDPOINT", self.adls_token_endpoint),
            ),
        }


def _address(name: str, value: str | None, *, account: bool = False) -> str | None:
    try:
        return None if value is None else parse_store_address(value, account=account)
    except ValueError as wrong:
        raise SettingsError(f"{PREFIX}STORAGE__{name}: {wrong}") from None


class StoreSettings(SystemIdentities, frozen=True, kw_only=True):
    """Fields of `Settings`."""

    secret_backend: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]*$")] = "postgres"  # noqa: S105 - the name of a store, not a secret
    """Store of the storage credentials of warehouses: `postgres` (encrypted), `kv2` (HashiCorp Vault), or the name of a
    store that an installed package provides.
    """
    secret_backends_also_read: tuple[str, ...] = ()
    """Further stores that hold credentials, until `lakegate secrets move` has moved them. `postgres` is always read."""
    skip_storage_validation: bool = False
    """Accept a warehouse without a test of its storage. Not for production."""
    storage_endpoint_networks: tuple[str, ...] = ()
    """Networks (CIDR) that storage profiles may name as `endpoint` and `sts-endpoint`, in addition to public addresses.
    Loopback and private networks are refused unless listed. Link-local, site-local and metadata addresses are always
    refused.
    """
    sign_with_warehouse_keys: bool = False
    """Sign requests of clients with the access keys of warehouses without `sts-enabled`, for S3-compatible stores that
    have no sessions (not AWS, Cloudflare R2 or Alibaba Cloud OSS). A key signs for its whole bucket, so a store that
    reads a signed request in another way than the gateway gives access to other tables. Tried only with SeaweedFS 4.48.
    """
    storage_local_directories: tuple[str, ...] = ()
    """Absolute paths on the gateway's machine that may contain warehouses of type `local`. Only for development:
    clients open the files directly, without credentials. Empty: no such warehouses.
    """
    storage_hdfs_roots: tuple[str, ...] = ()
    """Directories `hdfs://host[:port]/path` that may contain warehouses of type `hdfs`. The gateway opens their files
    with its own identity, and clients with theirs. Empty: no such warehouses.
    """
    canary: Canary = Canary()
    storage: Storage = Storage()
    kv2: Kv2 = Kv2()

    def secret_store_names(self) -> tuple[str, ...]:
        """Return the names of the secret stores to open besides PostgreSQL. The store for new secrets is the first."""
        names = dict.fromkeys((self.secret_backend, *self.secret_backends_also_read))
        return tuple(name for name in names if name != "postgres")

    def require_secret_stores(self) -> None:
        """Raise SettingsError unless all settings that `lakegate secrets move` needs are set. The message has a line
        for each problem.
        """
        self.require_encryption_key()
        if "kv2" in self.secret_store_names() and (problems := self.kv2.problems()):
            raise SettingsError("\n".join(problems))

    def storage_rules(self) -> StorageRules:
        """Return the rules for the networks and directories that storage profiles may use.

        Raises:
            SettingsError: an entry is not a network in CIDR form, or no absolute and canonical path or location.
        """
        try:
            networks = parse_networks(self.storage_endpoint_networks)
        except ValueError as wrong:
            raise SettingsError(f"{PREFIX}STORAGE_ENDPOINT_NETWORKS: {wrong}") from None
        try:
            directories = parse_directories(self.storage_local_directories)
        except ValueError as wrong:
            raise SettingsError(f"{PREFIX}STORAGE_LOCAL_DIRECTORIES: {wrong}") from None
        try:
            roots = parse_roots(self.storage_hdfs_roots, "hdfs")
        except ValueError as wrong:
            raise SettingsError(f"{PREFIX}STORAGE_HDFS_ROOTS: {wrong}") from None
        return StorageRules(
            endpoints=networks,
            directories=directories,
            roots=roots,
            identities=self.identity_rules(),
            hosts=self.storage.adls_hosts,
            extensions=self.storage.extensions,
        )
