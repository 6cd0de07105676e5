# SPDX-License-Identifier: Apache-2.0
"""Open the secret stores in the settings, including those of installed packages.

A package provides a store as an entry point of the group `lakegate.secrets`. Its name is the value of the setting
SECRET_BACKEND. The entry point refers to a function without parameters that returns a
`gateway.secret_stores.port.SecretStore`. The former group `lakegate.secret_stores` still works, and is logged as
deprecated.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from importlib.metadata import entry_points
from typing import Final

import structlog

from gateway.assembly.extensions import ExtensionGroup, NoSuchExtension, find_extension
from gateway.db.credentials.secrets import POSTGRES, Sealer
from gateway.db.credentials.stored_secrets import PostgresSecrets
from gateway.db.engine.database import Database
from gateway.secret_stores.port import SecretStore, SecretStores
from gateway.secret_stores.vault import KV2, VaultSecrets
from gateway.secret_stores.vault_session import AppRoleLogin, KubernetesLogin, Login, UserPassLogin, VaultAddress
from gateway.settings import Secret, Settings
from gateway.settings.vault import Kv2
from gateway.telemetry.health import HealthMonitor
from gateway.tls import Trust

_log = structlog.get_logger("assembly.secret_stores")

FORMER_GROUP: Final = "lakegate.secret_stores"


class NoSuchSecretStore(Exception):
    """No secret store has the name in the settings, or its package or library is missing or unusable."""


def open_secret_stores(
    settings: Settings, trust: Trust, database: Database, sealer: Sealer, stack: AsyncExitStack
) -> SecretStores:
    """Open PostgreSQL's store and the other stores in the settings, without connecting. Closing `stack` closes them.

    Raises NoSuchSecretStore.
    """
    stores: dict[str, SecretStore] = {POSTGRES: PostgresSecrets(database, sealer)}
    for name in settings.secret_store_names():
        stores[name] = _open_vault(settings.kv2, trust) if name == KV2 else open_provided_store(name)
    for store in stores.values():
        stack.push_async_callback(store.close)
    return SecretStores(stores[settings.secret_backend], stores.values())


def watch_secret_stores(health: HealthMonitor, stores: SecretStores) -> None:
    """Report the status of the stores outside of PostgreSQL to the health monitor, for `/health`.

    An outage does not make the gateway unhealthy, because credentials that were read before still work. Otherwise a
    load balancer would take all gateways out of service, and a small outage would become a complete one.
    """
    for store in stores:
        if store.name != POSTGRES:
            health.register("secrets", store.name, store.check, required=False)


def _open_vault(kv2: Kv2, trust: Trust) -> SecretStore:
    try:
        import hvac as hvac
    except ImportError:
        raise NoSuchSecretStore(
            "SECRET_BACKEND kv2 needs the Python package hvac, which is not installed. Install it."
        ) from None
    address = VaultAddress(
        url=(kv2.url or "").rstrip("/"),
        ca_bundle=kv2.ca_file or trust.bundle,
        namespace=kv2.namespace,
        timeout=kv2.timeout / 2,
    )
    return VaultSecrets(address, _login(kv2), mount=kv2.secret_mount or "", prefix=kv2.path_prefix, timeout=kv2.timeout)


def _login(kv2: Kv2) -> Login:
    mount = (kv2.auth_mount or kv2.auth).strip("/")
    match kv2.auth:
        case "userpass":
            return UserPassLogin(mount, kv2.user or "", _revealed(kv2.password))
        case "approle":
            return AppRoleLogin(mount, kv2.role_id or "", _revealed(kv2.secret_id))
        case "kubernetes":
            return KubernetesLogin(mount, kv2.role or "", kv2.token_file)


def _revealed(secret: Secret | None) -> str:
    return secret.reveal() if secret else ""


def open_provided_store(name: str) -> SecretStore:
    """Return the store of an installed package. Raises NoSuchSecretStore."""
    former = tuple(entry_points(group=FORMER_GROUP, name=name))
    try:
        if former and not entry_points(group=ExtensionGroup.SECRETS.value, name=name):
            _log.warning("secret_store.group_deprecated", store=name, group=FORMER_GROUP, use=ExtensionGroup.SECRETS)
            opener = find_extension(FORMER_GROUP, name)
        else:
            opener = find_extension(ExtensionGroup.SECRETS, name, built_in=(POSTGRES, KV2))
    except NoSuchExtension as missing:
        raise NoSuchSecretStore(f"SECRET_BACKEND names a store that cannot be opened. {missing}") from missing
    store = opener()
    if not isinstance(store, SecretStore) or store.name != name:
        raise NoSuchSecretStore(
            f"The extension {name!r} of the group {ExtensionGroup.SECRETS} returned no secret store with this name."
        )
    return store
