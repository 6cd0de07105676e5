# SPDX-License-Identifier: Apache-2.0
"""Files in the stores of warehouses: metadata documents, probes, and what a purge removes.

Every address is read by the rules of the warehouse's profile and must lie below the warehouse's base, so nothing but
the warehouse's own place is reached: not another scheme, not another host, not another tenant's folder. No provider's
client gets a key that was not judged here.
"""

from collections.abc import Sequence

from gateway.scope.credential import Credential
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location
from gateway.scope.profile import StorageProfile
from gateway.storage.provider import StorageClients

__all__ = ["Files"]


class Files:
    """Reads and writes with a warehouse's credential, or with a temporary one that is given instead.

    All methods raise `InvalidLocation` for an address outside of the warehouse, and what `FileClient` raises.
    """

    def __init__(self, clients: StorageClients) -> None:
        self._clients = clients

    async def write(self, profile: StorageProfile, credential: Credential, location_text: str, data: bytes) -> None:
        """Write a file that is not there yet; `FileExists` when it is, where the store can tell."""
        key = _key(profile, location_text)
        await self._clients.of(profile).files.put(profile, credential, key, data)

    async def read(
        self, profile: StorageProfile, credential: Credential, location_text: str, *, max_bytes: int
    ) -> bytes:
        """The whole file; `FileMissing`, or `FileTooLarge` as soon as more than `max_bytes` are seen."""
        key = _key(profile, location_text)
        return await self._clients.of(profile).files.get(profile, credential, key, max_bytes)

    async def delete(self, profile: StorageProfile, credential: Credential, location_texts: Sequence[str]) -> None:
        """Delete the files; those that are gone already count as deleted."""
        keys = [_key(profile, text) for text in location_texts]
        await self._clients.of(profile).files.delete(profile, credential, keys)

    async def delete_below(
        self, profile: StorageProfile, credential: Credential, location: Location, keys: Sequence[str]
    ) -> None:
        """Delete files by the keys `list_keys` gave, which may be no valid locations; each must lie below it."""
        _require_inside(profile, location)
        for key in keys:
            if not key.startswith(location.key_prefix):
                raise InvalidLocation("An object to delete lies outside of the location; nothing was deleted")
        await self._clients.of(profile).files.delete(profile, credential, list(keys))

    async def list_keys(
        self, profile: StorageProfile, credential: Credential, location: BaseLocation, limit: int
    ) -> list[str]:
        """At most `limit` keys below the location, in the order of the store."""
        _require_inside(profile, location)
        return await self._clients.of(profile).files.list(profile, credential, location.key_prefix, limit)

    async def is_empty(self, profile: StorageProfile, credential: Credential, location: Location) -> bool:
        """Whether there is no file below the location."""
        return not await self.list_keys(profile, credential, location, 1)


def _key(profile: StorageProfile, text: str) -> str:
    base = profile.base_location()
    location = base.scheme.parse(text, escapes_known=profile.escapes_known)
    _require_inside(profile, location)
    return "/".join(location.segments)


def _require_inside(profile: StorageProfile, location: BaseLocation) -> None:
    base = profile.base_location()
    if not base.contains(location):
        raise InvalidLocation(f"Location must lie below the warehouse's base location {base.prefix_text!r}")
