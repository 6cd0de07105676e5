# SPDX-License-Identifier: Apache-2.0
"""Settings of stores that storage profiles cannot name: private endpoints, emulators and further hosts."""

from __future__ import annotations

import msgspec

from gateway.scope.endpoint import StoreAddresses, parse_store_address
from gateway.settings.env import PREFIX, SettingsError


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
        """Return the settings that are not the defaults, as variables without the prefix."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        texts = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return {f"STORAGE__{name.upper()}": text for name, text in texts.items() if text}

    def addresses(self) -> dict[str, StoreAddresses]:
        """Return the addresses by the `type` of storage profiles.

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
