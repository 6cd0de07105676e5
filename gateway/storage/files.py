# SPDX-License-Identifier: Apache-2.0
"""Files in object stores: metadata documents, probes, and what a purge removes.

Every address is read by the rules of `Location` and must lie below the warehouse's base, so nothing but the
warehouse's own bucket is ever spoken to: not `file:`, not another host, not another tenant's folder.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import obstore
from obstore import exceptions as failures
from obstore.store import S3Store

from gateway.iceberg.errors import CatalogError
from gateway.scope.endpoint import DEFAULT_RULES, RouteTo
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import BaseLocation, Location
from gateway.scope.profile import S3Profile
from gateway.storage.connector import Connector
from gateway.storage.errors import (
    FileExists,
    FileMissing,
    FileTooLarge,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.stores import AnyCredential, OwnRole, Stores

__all__ = [
    "FileExists",
    "FileMissing",
    "FileTooLarge",
    "Files",
    "StorageDenied",
    "StorageEndpointRefused",
    "StorageUnavailable",
]

CONNECT_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 15.0
TOTAL_SECONDS: Final = 30.0
DELETE_BATCH: Final = 1000  # S3 API reference, DeleteObjects

# For listings and deletions of many the library has no exception of its own for a refusal, only these words. Requests
# are shown with their addresses percent-encoded, so no key can bring the words in.
_REFUSED: Final = re.compile(
    r"\AGeneric S3 error: ("
    r"Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
    r"|DeleteObjects request failed for key [^\n]* \(code: AccessDenied\))"
)


class Files:
    """Reads and writes with a warehouse's credential, or with a temporary one that is given instead.

    `own_role` assumes the profile's `assume-role-arn`; without it such profiles are refused. A `TemporaryCredential`
    is used as it is. `certificates` (PEM) are trusted beside the system's. `route` leads to profiles' endpoints;
    without it only public addresses are connected to. All methods raise `InvalidLocation` for an address outside of the
    warehouse, `StorageEndpointRefused`, `StorageDenied` and `StorageUnavailable`, whose messages hold nothing of the
    store's answer.
    """

    def __init__(
        self,
        *,
        own_role: OwnRole | None = None,
        system_identities: bool = False,
        connect_seconds: float = CONNECT_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        certificates: str | None = None,
        route: RouteTo | None = None,
    ) -> None:
        self._total_seconds = total_seconds
        self._stores = Stores(
            own_role=own_role,
            system_identities=system_identities,
            connect_seconds=connect_seconds,
            request_seconds=request_seconds,
            certificates=certificates,
            route=route or Connector(DEFAULT_RULES, connect_seconds=connect_seconds).route,
        )

    async def write(self, profile: S3Profile, credential: AnyCredential, location_text: str, data: bytes) -> None:
        """Put the object if there is none yet; `FileExists` when there is.

        A store that does not know `If-None-Match` overwrites. Metadata files carry a fresh UUID in their names, so
        that is the second fence, not the first.
        """
        key = _key(profile, location_text)
        async with self._calling(profile, credential) as store:
            await obstore.put_async(store, key, data, mode="create", use_multipart=False)

    async def read(self, profile: S3Profile, credential: AnyCredential, location_text: str, *, max_bytes: int) -> bytes:
        """The whole object; `FileMissing`, or `FileTooLarge` as soon as more than `max_bytes` are seen."""
        key = _key(profile, location_text)
        async with self._calling(profile, credential) as store:
            answer = await obstore.get_async(store, key)
            if answer.meta["size"] > max_bytes:
                raise FileTooLarge(f"The file has {answer.meta['size']} bytes, at most {max_bytes} are taken")
            parts: list[bytes] = []
            left = max_bytes
            # Counted as they come: the size was only the store's word.
            async for part in answer.stream():
                left -= len(part)
                if left < 0:
                    raise FileTooLarge(f"The file has more than {max_bytes} bytes")
                parts.append(bytes(part))
        return b"".join(parts)

    async def delete(self, profile: S3Profile, credential: AnyCredential, location_texts: Sequence[str]) -> None:
        """Delete the objects; those that are gone already count as deleted."""
        await self._delete(profile, credential, [_key(profile, text) for text in location_texts])

    async def delete_below(
        self, profile: S3Profile, credential: AnyCredential, location: Location, keys: Sequence[str]
    ) -> None:
        """Delete objects by the keys `list_keys` gave, which may be no valid locations; each must lie below it."""
        _require_inside(profile, location)
        for key in keys:
            if not key.startswith(location.key_prefix):
                raise InvalidLocation("An object to delete lies outside of the location; nothing was deleted")
        await self._delete(profile, credential, list(keys))

    async def list_keys(
        self, profile: S3Profile, credential: AnyCredential, location: BaseLocation, limit: int
    ) -> list[str]:
        """At most `limit` object keys below the location, in the order of the store."""
        _require_inside(profile, location)
        found: list[str] = []
        async with self._calling(profile, credential) as store:
            async for page in obstore.list(store, location.key_prefix or None, chunk_size=min(limit, 1000)):
                found.extend(entry["path"] for entry in page)
                if len(found) >= limit:
                    break
        return found[:limit]

    async def is_empty(self, profile: S3Profile, credential: AnyCredential, location: Location) -> bool:
        """Whether there is no object below the location."""
        return not await self.list_keys(profile, credential, location, 1)

    async def _delete(self, profile: S3Profile, credential: AnyCredential, keys: list[str]) -> None:
        for start in range(0, len(keys), DELETE_BATCH):
            async with self._calling(profile, credential) as store:
                await obstore.delete_async(store, keys[start : start + DELETE_BATCH])

    @asynccontextmanager
    async def _calling(self, profile: S3Profile, credential: AnyCredential) -> AsyncIterator[S3Store]:
        """Bound the time and translate what the library raises; the cause is dropped with the store's text in it."""
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
            raise FileMissing("There is no such file in the storage") from None
        except (failures.AlreadyExistsError, failures.PreconditionError):
            raise FileExists("There is a file at this place of the storage already") from None
        except (PermissionError, failures.PermissionDeniedError, failures.UnauthenticatedError):
            raise StorageDenied("The storage refused the warehouse's credential for this request") from None
        except (TimeoutError, OSError, failures.BaseError) as error:
            if route is not None and route.refusal is not None:
                raise StorageEndpointRefused(route.refusal) from None
            if _REFUSED.search(str(error)):
                raise StorageDenied("The storage refused the warehouse's credential for this request") from None
            raise StorageUnavailable("The storage did not answer as expected") from None


def _key(profile: S3Profile, text: str) -> str:
    location = Location.parse(text, escapes_known=profile.escapes_known)
    _require_inside(profile, location)
    return "/".join(location.segments)


def _require_inside(profile: S3Profile, location: BaseLocation) -> None:
    base = profile.base_location()
    if not base.contains(location):
        raise InvalidLocation(f"Location must lie below the warehouse's base location {base.prefix_text!r}")
