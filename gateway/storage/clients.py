# SPDX-License-Identifier: Apache-2.0
"""The opened clients of all providers."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.scope.profile import StorageProfile
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.registry import PROVIDERS

__all__ = ["StorageClients", "open_clients"]


class StorageClients:
    """A client for each type of storage profile."""

    def __init__(self, clients: Mapping[str, StorageClient]) -> None:
        self._clients = clients

    def of(self, profile: StorageProfile) -> StorageClient:
        """Return the client for this profile. Raises LookupError for a provider that was not opened."""
        return self._clients[profile.provider]

    def close(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            client.close()


def open_clients(options: ClientOptions) -> StorageClients:
    """Open a client of every provider."""
    return StorageClients({provider.tag: provider.open(options) for provider in PROVIDERS})
