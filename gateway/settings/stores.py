# SPDX-License-Identifier: Apache-2.0
"""Settings for the stores of warehouses and of their credentials."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gateway.scope.endpoint import parse_networks
from gateway.scope.profile import StorageRules, parse_directories, parse_roots
from gateway.settings.env import PREFIX, SettingsError
from gateway.settings.sections import Canary
from gateway.settings.storage import Storage
from gateway.settings.system_identities import SystemIdentities
from gateway.settings.vault import Kv2

__all__ = ["StoreSettings"]


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
        """Return the names of the secret stores to open besides PostgreSQL, first the one of new secrets."""
        names = dict.fromkeys((self.secret_backend, *self.secret_backends_also_read))
        return tuple(name for name in names if name != "postgres")

    def require_secret_stores(self) -> None:
        """Require what `lakegate secrets move` needs. Raises SettingsError with a line for each problem."""
        self.require_encryption_key()
        if "kv2" in self.secret_store_names() and (problems := self.kv2.problems()):
            raise SettingsError("\n".join(problems))

    def storage_rules(self) -> StorageRules:
        """Return the rules for the networks and directories that storage profiles may name.

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
