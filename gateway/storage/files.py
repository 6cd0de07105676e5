# SPDX-License-Identifier: Apache-2.0
"""Read and write files in the stores of warehouses: metadata files, test files, and files that are deleted with a
table.

Every location is parsed by the rules of the warehouse's profile and must be below the warehouse's base location. So no
other scheme, host or warehouse can be reached. Every key is checked here before a provider's client receives it.
"""

from collections.abc import Sequence

from gateway.scope.credential import Credential
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location
from gateway.scope.profile import StorageProfile
from gateway.spans import Attributes, span
from gateway.storage.provider import StorageClients

__all__ = ["Files"]


class Files:
    """Reads and writes files with a warehouse's credential, or with a given temporary one.

    All methods raise `InvalidLocation` for a location outside of the warehouse, and the errors of `FileClient`.
    """

    def __init__(self, clients: StorageClients) -> None:
        self._clients = clients

    async def write(self, profile: StorageProfile, credential: Credential, location_text: str, data: bytes) -> None:
        """Write a new file. Raises `FileExists` if it exists, where the store supports conditional writes."""
        key = _key(profile, location_text)
        with span("store.put", {**_of(profile), "lakegate.bytes": len(data)}):
            await self._clients.of(profile).files.put(profile, credential, key, data)

    async def read(
        self, profile: StorageProfile, credential: Credential, location_text: str, *, max_bytes: int
    ) -> bytes:
        """Return the whole file. Raises `FileMissing`, and `FileTooLarge` as soon as more than `max_bytes` are read."""
        key = _key(profile, location_text)
        with span("store.get", _of(profile)) as recorded:
            data = await self._clients.of(profile).files.get(profile, credential, key, max_bytes)
            recorded.set_attribute("lakegate.bytes", len(data))
            return data

    async def delete(self, profile: StorageProfile, credential: Credential, location_texts: Sequence[str]) -> None:
        """Delete the files. Missing files count as deleted."""
        keys = [_key(profile, text) for text in location_texts]
        await self._delete(profile, credential, keys)

    async def delete_below(
        self, profile: StorageProfile, credential: Credential, location: Location, keys: Sequence[str]
    ) -> None:
        """Delete files by keys that `list_keys` returned. Such keys may be invalid as locations. Raises InvalidLocation
        for a key outside of `location`.
        """
        _require_inside(profile, location)
        for key in keys:
            if not key.startswith(location.key_prefix):
                raise InvalidLocation("An object to delete is outside of the location. Nothing was deleted.")
        await self._delete(profile, credential, list(keys))

    async def list_keys(
        self, profile: StorageProfile, credential: Credential, location: BaseLocation, limit: int
    ) -> list[str]:
        """Return at most `limit` keys below the location, in the store's order."""
        _require_inside(profile, location)
        with span("store.list", {**_of(profile), "lakegate.limit": limit}):
            return await self._clients.of(profile).files.list(profile, credential, location.key_prefix, limit)

    async def is_empty(self, profile: StorageProfile, credential: Credential, location: Location) -> bool:
        """Return True if there is no file below the location."""
        return not await self.list_keys(profile, credential, location, 1)

    async def _delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        with span("store.delete", {**_of(profile), "lakegate.files": len(keys)}):
            await self._clients.of(profile).files.delete(profile, credential, keys)


def _of(profile: StorageProfile) -> Attributes:
    """Return the attributes of tracing spans. They contain no keys, which are names that users choose."""
    return {"lakegate.store": profile.provider}


def _key(profile: StorageProfile, text: str) -> str:
    base = profile.base_location()
    location = base.scheme.parse(text, escapes_known=profile.escapes_known)
    _require_inside(profile, location)
    return "/".join(location.segments)


def _require_inside(profile: StorageProfile, location: BaseLocation) -> None:
    base = profile.base_location()
    if not base.contains(location):
        raise InvalidLocation(f"Location must be below the base location of the warehouse, {base.prefix_text!r}")
