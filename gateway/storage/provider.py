# SPDX-License-Identifier: Apache-2.0
"""Interfaces of a storage provider. A new provider is a folder and a line in `registry.py`.

A provider decodes its profiles and credentials, which are pure values (`gateway.scope.profile`), and opens a client.
All providers share three parts: the check that files are in the warehouse (`files.py`), the minimum lifetime and the
cache of credentials (`gateway/vending/`), and the validation of a store
(`gateway/features/credentials/storage_validation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from gateway.scope.credential import AccessLevel, Credential, ReadRequest, TemporaryCredential, UnsignedRequest
from gateway.scope.endpoint import NO_ADDRESSES, RouteTo, StoreAddresses
from gateway.scope.location import Location, Scheme
from gateway.scope.profile import STRICTEST, StorageProfile, StorageRules
from gateway.storage.errors import StorageEndpointRefused

if TYPE_CHECKING:
    from gateway.storage.trials import Trials

__all__ = [
    "ClientOptions",
    "FileClient",
    "Provider",
    "Sessions",
    "Signer",
    "StorageClient",
    "StorageClients",
    "no_metrics",
    "opens",
]

CONNECT_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 15.0
TOTAL_SECONDS: Final = 30.0


class FileClient(Protocol):
    """Reads and writes files of one provider by their keys. The caller has checked that they are in the warehouse.

    All methods raise StorageEndpointRefused, StorageDenied and StorageUnavailable. Their messages contain no text of
    the store.
    """

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file. Raises FileExists."""
        ...

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises FileMissing, and FileTooLarge as soon as more than `max_bytes` are read."""
        ...

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files. Missing files count as deleted."""
        ...

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys that start with `prefix`, in the store's order."""
        ...


class Sessions(Protocol):
    """Creates temporary credentials whose rights are limited by a policy."""

    async def make(
        self,
        *,
        profile: StorageProfile,
        credential: Credential,
        policy: str,
        session_name: str,
        seconds: int,
    ) -> TemporaryCredential:
        """Return a credential with the rights of `policy`, valid for `seconds`.

        Raises ShortTermCredentialError, or PolicyTooLarge if the policy exceeds the store's limit.
        """
        ...

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the holder of the credential can get rid of its policy by a request to the
        store.
        """
        ...


class Signer(Protocol):
    """Signs the requests that clients send to the store of a warehouse."""

    def offered(self, profile: StorageProfile) -> bool:
        """Return True if requests to the stores of this profile are signed."""
        ...

    def client_properties(self, *, uri: str | None, endpoint: str) -> dict[str, str]:
        """Return the properties that make clients send their requests for signing to `endpoint`, which is relative to
        `uri`.
        """
        ...

    def read(self, profile: StorageProfile, location: Location, request: UnsignedRequest) -> ReadRequest:
        """Parse a request completely. Raises RemoteSigningDisabled. Raises errors of status 400 if the request is of no
        known form or is not confined to `location`.
        """
        ...

    def sign(self, profile: StorageProfile, request: ReadRequest, credential: Credential) -> Mapping[str, str]:
        """Return all headers of the signed request. Raises SignWithoutCredentials and UnsupportedSignRequest."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClient:
    """An opened provider. `sessions` is None if the provider vends no credentials. `signer` is None if it signs no
    requests.

    If `trials` is None, the canary tests vended credentials only with `files`.
    """

    files: FileClient
    sessions: Sessions | None
    close: Callable[[], None]
    signer: Signer | None = None
    trials: Trials | None = None


class StorageClients:
    """The clients of all providers, by the type of storage profile (`registry.open_clients`)."""

    def __init__(self, clients: Mapping[str, StorageClient]) -> None:
        self._clients = clients

    def of(self, profile: StorageProfile) -> StorageClient:
        """Return the client for this profile. Raises StorageEndpointRefused for a provider that is not enabled."""
        client = self._clients.get(profile.provider)
        if client is None:
            raise StorageEndpointRefused(
                f"The storage type {profile.provider!r} of the warehouse is not enabled on this gateway. The operator "
                "can add it to LAKEGATE__STORAGE__EXTENSIONS"
            )
        return client

    def close(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            client.close()


def no_metrics(_seconds: float, _outcome: str) -> None:
    """Ignore the duration and outcome of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options with which providers open their clients.

    `rules` are the operator's rules, by which stored profiles are checked at every use. `route` returns routes to the
    endpoints of profiles; without it, only public addresses are allowed. `certificates` (PEM) and `ca_bundle` (a file)
    are trusted in addition to the system's. `addresses` are the operator's addresses of stores by the `type` of
    profiles; a provider uses its own for a missing one. `on_session` receives the duration of each session request in
    seconds and its outcome: `ok` or the reason of the error. With `own_keys_sign_anywhere`, the keys of warehouses may
    sign requests of clients to every store. The three limits in seconds apply to a connection, a request, and a call
    with its retries.
    """

    rules: StorageRules = STRICTEST
    route: RouteTo | None = None
    certificates: str | None = None
    ca_bundle: str | None = None
    addresses: Mapping[str, StoreAddresses] = field(default_factory=dict)
    on_session: Callable[[float, str], None] = no_metrics
    connect_seconds: float = CONNECT_SECONDS
    request_seconds: float = REQUEST_SECONDS
    total_seconds: float = TOTAL_SECONDS
    own_keys_sign_anywhere: bool = False

    def addresses_of(self, provider: str) -> StoreAddresses:
        """Return the operator's addresses for this `type` of profiles."""
        return self.addresses.get(provider, NO_ADDRESSES)


def opens(module: str) -> Callable[[ClientOptions], StorageClient]:
    """Return the function that imports the client module of a provider and calls its `open_client`.

    The import is delayed until then: client libraries need memory and time, and decoding a profile does not use them.
    """

    def open_client(options: ClientOptions) -> StorageClient:
        client: StorageClient = import_module(module).open_client(options)
        return client

    return open_client


Prove = Callable[[StorageProfile, Location, AccessLevel, Sequence[str]], list[str]]
"""Function that returns a text for each difference, empty for a proof. The last argument is keys of other tables.
Raises PolicyTooLarge and InvalidLocation if the location has no policy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider. All except `open` is pure.

    `allowed` returns True if the operator's rules allow warehouses of this provider; error messages list only such
    providers. `decode_profile` raises InvalidStorageProfile and InvalidLocation, `decode_credential`
    InvalidStorageCredential and StorageTypeNotSupported. Both receive the fields of the JSON object.
    `decode_credential` is None for a provider without credentials. `prove` compares the policy for a location and level
    with what they require, by an evaluator that shares no code with the builder; it is None for a provider without
    policies. `credential_type` is the `type` of its credentials if it differs from that of its profiles. `aliases` are
    further values of a profile's `type`. `catalog_defaults` returns the properties that all clients of a warehouse get
    from `GET /v1/config`, and `soft_deletion_defaults` further ones for a warehouse that keeps dropped tables.
    """

    profile: type[StorageProfile]
    scheme: Scheme
    allowed: Callable[[StorageRules], bool]
    decode_profile: Callable[[dict[str, Any], StorageRules], StorageProfile]
    decode_credential: Callable[[dict[str, Any], StorageRules], Credential] | None
    open: Callable[[ClientOptions], StorageClient]
    prove: Prove | None = None
    credential_type: str | None = None
    aliases: tuple[str, ...] = ()
    catalog_defaults: Callable[[StorageProfile], Mapping[str, str]] = lambda _: {}
    soft_deletion_defaults: Callable[[StorageProfile], Mapping[str, str]] = lambda _: {}

    @property
    def tag(self) -> str:
        """The `type` of the provider's profiles."""
        return self.profile.provider

    @property
    def credential_tag(self) -> str:
        """The `type` of the provider's credentials."""
        return self.credential_type or self.tag
