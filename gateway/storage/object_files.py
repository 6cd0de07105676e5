# SPDX-License-Identifier: Apache-2.0
"""Read and write files in object stores. All providers whose stores the client library supports use this code."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import obstore
from obstore import exceptions as failures
from obstore.store import ObjectStore

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.endpoint import EndpointRoute
from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import (
    FileMissing,
    FileTooLarge,
    StorageEndpointRefused,
    StorageUnavailable,
    denied,
    file_exists,
    file_missing,
    require_size,
    unavailable,
)

if TYPE_CHECKING:
    from obstore.store import BackoffConfig, ClientConfig, RetryConfig

__all__ = ["CachedStores", "ObjectFiles", "ObjectStores"]

Key = TypeVar("Key")
Store = TypeVar("Store", bound=ObjectStore)

MAX_STORES: Final = 256
DELETE_BATCH: Final = 1000
DELETE_AT_ONCE: Final = 16
# If the function that gets tokens fails, the library raises no type of its own, only this text.
_TOKEN_OUTAGE: Final = re.compile(r" for path External [A-Za-z]+ credential provider: StorageSessionUnavailable: ")


class ObjectStores(Protocol):
    """Makes the library's clients for one provider. `refused` matches the text of an untyped error if the store
    refused.
    """

    refused: re.Pattern[str]

    def store(self, profile: StorageProfile, credential: Credential) -> ObjectStore:
        """Return the client for the profile and the credential. Raises StorageDenied if this kind of credential is not
        allowed.
        """
        ...

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return the route to the profile's endpoint; None if it has none. Raises InvalidStorageProfile."""
        ...


class CachedStores(Generic[Key, Store]):
    """An LRU cache of the library's clients for one provider, and the options that they share.

    `certificates` (PEM) are trusted in addition to the system's.
    """

    def __init__(self, *, connect_seconds: float, request_seconds: float, certificates: str | None = None) -> None:
        self._connect = timedelta(seconds=connect_seconds)
        self._request = timedelta(seconds=request_seconds)
        self._certificates = certificates
        self._cached: OrderedDict[Key, Store] = OrderedDict()

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return None: the profile contains no server. The proxy settings of the environment apply."""
        return None

    def _cache(self, key: Key, make: Callable[[], Store]) -> Store:
        """Return the client for this key. If it is missing, it is created by `make` and cached."""
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = make()
            while len(self._cached) > MAX_STORES:
                self._cached.popitem(last=False)
        self._cached.move_to_end(key)
        return found

    def _client(self, endpoint: str, route: EndpointRoute | None = None) -> ClientConfig:
        options: ClientConfig = {
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": self._connect,
            "timeout": self._request,
            "user_agent": "lakegate",
        }
        if self._certificates is not None:
            options["root_certificate"] = self._certificates
        if route is not None:
            options["proxy_url"] = route.proxy_url
        return options

    def _retries(self) -> RetryConfig:
        backoff: BackoffConfig = {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=1),
            "base": 2,
        }
        return {"max_retries": 2, "retry_timeout": self._request, "backoff": backoff}


class ObjectFiles:
    """`FileClient` for object stores. No call takes more than `total_seconds`."""

    def __init__(self, stores: ObjectStores, *, total_seconds: float) -> None:
        self._stores = stores
        self._total_seconds = total_seconds

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Put a new object. Raises `FileExists`.

        A store without support for `If-None-Match` overwrites an object. That does not happen in practice: names of
        metadata files contain a new UUID.
        """
        async with self._calling(profile, credential) as store:
            await obstore.put_async(store, key, data, mode="create", use_multipart=False)

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises `FileMissing`, and `FileTooLarge` as soon as more than `max_bytes` are read."""
        async with self._calling(profile, credential) as store:
            answer = await obstore.get_async(store, key)
            require_size(answer.meta["size"], max_bytes)
            parts: list[bytes] = []
            remaining = max_bytes
            # The size in the response is only the store's statement, so the received bytes are counted.
            async for part in answer.stream():
                remaining -= len(part)
                if remaining < 0:
                    raise FileTooLarge(f"The file has more than {max_bytes} bytes")
                parts.append(bytes(part))
        return b"".join(parts)

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the objects. Missing ones count as deleted.

        For some stores the library ends a deletion at the first missing object. Then the objects are deleted one by
        one.
        """
        for start in range(0, len(keys), DELETE_BATCH):
            batch = keys[start : start + DELETE_BATCH]
            try:
                async with self._calling(profile, credential) as store:
                    await obstore.delete_async(store, batch)
            except FileMissing:
                for first in range(0, len(batch) if len(batch) > 1 else 0, DELETE_AT_ONCE):
                    some = batch[first : first + DELETE_AT_ONCE]
                    await asyncio.gather(*(self._delete_one(profile, credential, key) for key in some))

    async def _delete_one(self, profile: StorageProfile, credential: Credential, key: str) -> None:
        with contextlib.suppress(FileMissing):
            async with self._calling(profile, credential) as store:
                await obstore.delete_async(store, [key])

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` object keys that start with `prefix`, in the store's order."""
        found: list[str] = []
        async with self._calling(profile, credential) as store:
            async for page in obstore.list(store, prefix or None, chunk_size=min(limit, 1000)):
                found.extend(entry["path"] for entry in page)
                if len(found) >= limit:
                    break
        return found[:limit]

    @asynccontextmanager
    async def _calling(self, profile: StorageProfile, credential: Credential) -> AsyncIterator[ObjectStore]:
        """Limit the time of the block, and translate the library's errors. The cause is dropped, because it contains
        text of the store.
        """
        try:
            store, route = self._stores.store(profile, credential), self._stores.route(profile)
        except InvalidStorageProfile as refused:
            raise StorageEndpointRefused(refused.message) from None
        try:
            async with asyncio.timeout(self._total_seconds):
                yield store
        except CatalogError:
            raise
        except (FileNotFoundError, failures.NotFoundError):
            raise file_missing() from None
        except (failures.AlreadyExistsError, failures.PreconditionError):
            raise file_exists() from None
        except (PermissionError, failures.PermissionDeniedError, failures.UnauthenticatedError) as error:
            if _TOKEN_OUTAGE.search(str(error)):
                raise StorageUnavailable(
                    "The authorization server of the storage did not answer in time. Try again"
                ) from None
            raise denied() from None
        except (TimeoutError, OSError, failures.BaseError) as error:
            if route is not None and route.refusal is not None:
                raise StorageEndpointRefused(route.refusal) from None
            if self._stores.refused.search(str(error)):
                raise denied() from None
            raise unavailable() from None
