# SPDX-License-Identifier: Apache-2.0
"""What a provider of storage consists of. To add a provider is to write a folder and to name it in `registry.py`.

A provider reads its profiles and credentials, which are pure values (`gateway.scope.profile`), and opens a client. What
holds for every provider is around it: the bounds of a warehouse (`files.py`), the floor and the cache of credentials
(`gateway/vending/`), the trials of a store (`gateway/governance/storage_validation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.endpoint import RouteTo
from gateway.scope.location import Scheme
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import STRICTEST, StorageRules

__all__ = ["ClientOptions", "FileClient", "Provider", "Sessions", "StorageClient", "StorageClients"]

CONNECT_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 15.0
TOTAL_SECONDS: Final = 30.0


class FileClient(Protocol):
    """Reads and writes files of one provider by their keys, which the caller has judged to lie in the warehouse.

    All methods raise StorageEndpointRefused, StorageDenied and StorageUnavailable, whose messages hold nothing of the
    store's answer.
    """

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a file that is not there yet. Raises FileExists."""
        ...

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises FileMissing, and FileTooLarge as soon as more than `max_bytes` are seen."""
        ...

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files; those that are gone already count as deleted."""
        ...

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys that start with `prefix`, in the order of the store."""
        ...


class Sessions(Protocol):
    """Makes temporary credentials that are confined by a policy."""

    async def make(
        self,
        *,
        profile: StorageProfile,
        credential: Credential,
        policy: str,
        session_name: str,
        seconds: int,
    ) -> TemporaryCredential:
        """Return a credential that can do what `policy` allows, for `seconds`.

        Raises ShortTermCredentialError, or PolicyTooLarge when the store's own limit is exceeded.
        """
        ...

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed when the credential can get rid of its policy by the store's own means."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClient:
    """An opened provider. `sessions` is None where the provider's profiles hand out no credentials."""

    files: FileClient
    sessions: Sessions | None
    close: Callable[[], None]


class StorageClients:
    """A client for each type of storage profile (`registry.open_clients`)."""

    def __init__(self, clients: Mapping[str, StorageClient]) -> None:
        self._clients = clients

    def of(self, profile: StorageProfile) -> StorageClient:
        """Return the client for this profile. Raises LookupError for a provider that was not opened."""
        return self._clients[profile.provider]

    def close(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            client.close()


def _no_metrics(_seconds: float, _outcome: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """What providers open their clients with.

    `rules` are the operator's, by which stored profiles are judged again when they are used. `route` leads to endpoints
    that profiles name; without it only public addresses are connected to. `certificates` (PEM) and `ca_bundle` (a file)
    are trusted beside the system's. `on_session` receives the seconds that the making of each session took, and its
    outcome: `ok` or the reason of the error. The seconds bound a connection, a request and a call with its repetitions.
    """

    rules: StorageRules = STRICTEST
    route: RouteTo | None = None
    certificates: str | None = None
    ca_bundle: str | None = None
    on_session: Callable[[float, str], None] = _no_metrics
    connect_seconds: float = CONNECT_SECONDS
    request_seconds: float = REQUEST_SECONDS
    total_seconds: float = TOTAL_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. All but `open` is pure.

    `allowed` says whether the operator's rules allow any warehouse of this provider; messages name those alone.
    `decode_profile` raises InvalidStorageProfile and InvalidLocation, `decode_credential` InvalidStorageCredential and
    StorageTypeNotSupported; both get the fields of the JSON object. A provider without credentials has None there.
    """

    profile: type[StorageProfile]
    scheme: Scheme
    allowed: Callable[[StorageRules], bool]
    decode_profile: Callable[[dict[str, Any], StorageRules], StorageProfile]
    decode_credential: Callable[[dict[str, Any], StorageRules], Credential] | None
    open: Callable[[ClientOptions], StorageClient]

    @property
    def tag(self) -> str:
        """The `type` of its profiles and credentials."""
        return self.profile.provider
