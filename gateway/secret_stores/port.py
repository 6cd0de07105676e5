# SPDX-License-Identifier: Apache-2.0
"""The interface of secret stores, and their errors.

A store keeps the content of a storage credential under an id. PostgreSQL always has a row for the id, with the name of
its store. The rows show which credentials exist, and which are unused and can be deleted. A package outside of Lakegate
can provide a store (docs/secrets.md, "A secret store of your own").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable
from uuid import UUID

from gateway.iceberg.errors import CatalogError


class SecretUnreadable(Exception):
    """A stored credential does not exist in its store, or no configured encryption key decrypts it."""


class SecretStoreUnavailable(CatalogError, code=503, type="ServiceUnavailableException"):
    """The store did not respond in time, or reported an outage. A write may have been made, or may still be made."""


class SecretStoreRefused(CatalogError, code=503, type="ServiceUnavailableException"):
    """The store refuses the gateway: its login, its rights or its configuration are wrong. The operator must act.

    The message of this class is for clients. `reason` is for the operator, and contains no secret.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@runtime_checkable
class SecretStore(Protocol):
    """A store of secrets. Its methods run in the event loop of one process, and must not block it.

    Every method raises SecretStoreUnavailable for an outage and SecretStoreRefused for a wrong configuration. It ends
    within seconds, because a request waits for it. No error message contains a secret.
    """

    @property
    def name(self) -> str:
        """Return the store's name in the setting SECRET_BACKEND. Credentials are recorded with this name."""
        ...

    async def put(self, id: UUID, plain: bytes) -> None:
        """Write the content of a new id durably. A repeated call with the same content succeeds.

        The content of an id never changes: if the id has other content, the store must not replace it.
        """
        ...

    async def get(self, id: UUID) -> bytes:
        """Return the content of an id as it was written. Raises SecretUnreadable if there is none."""
        ...

    async def delete(self, id: UUID) -> None:
        """Delete the content of an id with all its versions. Succeed if there is none."""
        ...

    async def check(self) -> None:
        """Raise an error unless the store can read, write and delete secrets. Change nothing."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class SecretStores:
    """The stores of one process by name. `current` receives new secrets; the others are only read and deleted from."""

    def __init__(self, current: SecretStore, others: Iterable[SecretStore] = ()) -> None:
        self.current = current
        self._by_name = {store.name: store for store in (*others, current)}

    def __iter__(self) -> Iterator[SecretStore]:
        return iter(self._by_name.values())

    def named(self, name: str) -> SecretStore:
        """Return the store of this name. Raises SecretStoreRefused if the settings configure none."""
        store = self._by_name.get(name)
        if store is None:
            raise SecretStoreRefused(
                "The secret store that holds the storage credential of the warehouse is not configured on this "
                "gateway. The operator must configure it.",
                reason=f"a credential lies in the secret store {name!r}, which the settings do not configure",
            )
        return store
