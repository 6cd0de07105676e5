# SPDX-License-Identifier: Apache-2.0
"""Files of the storage type `folder`. Writes are atomic and never replace a file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import FileExists, FileMissing, FileTooLarge, StorageDenied, StorageUnavailable

from .storage import FolderProfile

VOLUMES = "LAKEGATE_FOLDERS_VOLUMES"
Result = TypeVar("Result")


class FolderFiles:
    """Implementation of `gateway.storage.provider.FileClient`. `seconds` limits each call."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        pairs = [pair.partition("=") for pair in os.environ.get(VOLUMES, "").split(",") if pair]
        self._volumes = {name: Path(folder) for name, _, folder in pairs}

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file. Raises FileExists."""
        await self._run(profile, lambda volume: _put(_path(volume, key), data))

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises FileMissing and FileTooLarge."""
        return await self._run(profile, lambda volume: _get(_path(volume, key), max_bytes))

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files that exist."""

        def unlink(volume: Path) -> None:
            for key in keys:
                _path(volume, key).unlink(missing_ok=True)

        await self._run(profile, unlink)

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys below the folder `prefix`."""
        return await self._run(profile, lambda volume: _list(volume, prefix, limit))

    async def _run(self, profile: StorageProfile, work: Callable[[Path], Result]) -> Result:
        volume = self._volumes.get(profile.volume) if isinstance(profile, FolderProfile) else None
        if volume is None or not volume.is_dir():
            raise StorageUnavailable(f"The volume of the warehouse is not mounted, or not listed in {VOLUMES}")
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.to_thread(work, volume)
        except FileNotFoundError:
            raise FileMissing("The file does not exist in the storage") from None
        except FileExistsError:
            raise FileExists("A file already exists at this path of the storage. Choose another path") from None
        except PermissionError:
            raise StorageDenied("The operating system denies the gateway access to this file") from None
        except (OSError, TimeoutError):
            raise StorageUnavailable("The volume did not answer, or returned an unexpected error. Try again") from None


def _path(volume: Path, key: str) -> Path:
    if any(segment in {"", ".", ".."} or "\0" in segment for segment in key.split("/")):
        raise StorageDenied("A path must not contain empty segments, '.' or '..'")
    return volume / key


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)
    finally:
        os.unlink(partial)


def _get(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise FileTooLarge(f"The file has more than {max_bytes} bytes")
    return data


def _list(volume: Path, prefix: str, limit: int) -> list[str]:
    found = [
        file.relative_to(volume).as_posix()
        for file in sorted((volume / prefix).rglob("*"))
        if file.is_file() and not file.name.startswith(".partial-")
    ]
    return found[:limit]
