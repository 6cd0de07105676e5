# SPDX-License-Identifier: Apache-2.0
"""Read and write files below the directories that the operator lists.

Clients of a local warehouse write into its directory directly, so its contents are untrusted. A symbolic link there
would lead the gateway, with its own rights, to files of another warehouse or of the system. So every path is opened
from the root of the file system, one directory at a time, without following links. An opened directory stays the same
directory, even if it is renamed meanwhile. Files with hard links and special files are not read.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeVar

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile, StorageRules
from gateway.storage.errors import (
    FileTooLarge,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
    file_exists,
    file_missing,
    require_size,
    unavailable,
)
from gateway.storage.local.profile import LocalAccess, LocalProfile, directory_location
from gateway.storage.provider import ClientOptions, StorageClient

__all__ = ["LocalFiles", "open_client"]

MAX_DEPTH: Final = 100
"""The maximum depth of directories below the listed one. A deeper tree makes the listing, and a purge, fail."""

_CHUNK: Final = 1024 * 1024
_ATTEMPTS: Final = 5
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SCAN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKED: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})

Result = TypeVar("Result")


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It has no sessions and nothing to close."""
    files = LocalFiles(options.rules, total_seconds=options.total_seconds)
    return StorageClient(files=files, sessions=None, close=lambda: None)


class LocalFiles:
    """`FileClient` for the gateway's machine. Each call returns within `total_seconds`."""

    def __init__(self, rules: StorageRules, *, total_seconds: float) -> None:
        self._rules = rules
        self._total_seconds = total_seconds

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file, and create missing directories above it. Raises FileExists."""
        await self._calling(profile, credential, lambda listed: _put(_segments(key), data, listed))

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises `FileMissing`, and `FileTooLarge` as soon as more than `max_bytes` are read."""
        return await self._calling(profile, credential, lambda _: _get(_segments(key), max_bytes))

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files, and the directories that become empty. The warehouse's own directory stays."""
        base = len(profile.base_location().segments)
        paths = [_segments(key) for key in keys]

        def delete(_: int) -> None:
            for path in paths:
                _delete(path, base)

        await self._calling(profile, credential, delete)

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys below the directory `prefix`. Links are listed as files and not followed."""
        top = _segments(prefix.removesuffix("/"))
        return await self._calling(profile, credential, lambda _: _list(top, limit))

    async def _calling(self, profile: StorageProfile, credential: Credential, call: Callable[[int], Result]) -> Result:
        """Check the profile by the operator's current rules, run `call` in a thread, and translate its errors into
        those of `FileClient`.

        `call` receives the number of directories at the start of each path that belong to the operator. These are never
        created.
        """
        if not isinstance(profile, LocalProfile) or not isinstance(credential, LocalAccess):
            raise TypeError(
                f"local files cannot be used with a {type(credential).__name__} and a {type(profile).__name__}"
            )
        try:
            profile.check(self._rules)
        except CatalogError as refused:
            raise StorageEndpointRefused(refused.message) from None
        listed = _listed(profile, self._rules)

        def run() -> Result:
            _require_there(listed)
            return call(len(listed))

        try:
            async with asyncio.timeout(self._total_seconds):
                return await asyncio.to_thread(run)
        except CatalogError:
            raise
        except FileNotFoundError:
            raise file_missing() from None
        except FileExistsError:
            raise file_exists() from None
        except PermissionError:
            raise StorageDenied(
                "The operating system denies the gateway access to this local file. Check the permissions of the "
                "directory"
            ) from None
        except OSError as error:
            if error.errno in _LINKED:
                raise StorageDenied(
                    "A local path must not contain a symbolic link, and every part above the file must be a directory"
                ) from None
            raise unavailable() from None


def _listed(profile: LocalProfile, rules: StorageRules) -> tuple[str, ...]:
    """Return the path segments of the innermost listed directory that contains the warehouse."""
    base = profile.base_location()
    containing = [each for each in map(directory_location, rules.directories or ()) if each.contains(base)]
    return max((each.segments for each in containing), key=len, default=base.segments)


def _require_there(listed: tuple[str, ...]) -> None:
    """Raise StorageUnavailable if the operator's directory is missing, because its files are then unavailable, not
    deleted.
    """
    try:
        with _opened(listed):
            return
    except FileNotFoundError:
        raise StorageUnavailable(
            "The directory in the setting LAKEGATE__STORAGE_LOCAL_DIRECTORIES does not exist. The operator can "
            "create it"
        ) from None


def _segments(key: str) -> tuple[str, ...]:
    """Split a key into segments. A key from a listing may be invalid as a location, but it must not lead outside of its
    directory.
    """
    segments = tuple(key.split("/"))
    if any(segment in {"", ".", ".."} or "\0" in segment for segment in segments):
        raise StorageDenied("A local path must not contain empty segments, '.' or '..'")
    return segments


@contextmanager
def _opened(path: Sequence[str], *, existing: int | None = None) -> Iterator[int]:
    """Open a directory, starting at the root of the file system. Raises OSError (ENOTDIR, ELOOP) if the path contains a
    link.

    With `existing`, directories that are missing after the first `existing` segments of the path are created.
    """
    with ExitStack() as stack:

        def keep(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        current = keep(os.open("/", _STEP))
        for depth, segment in enumerate(path):
            if existing is not None and depth >= existing:
                with suppress(FileExistsError):
                    os.mkdir(segment, dir_fd=current)
            current = keep(os.open(segment, _STEP, dir_fd=current))
        yield current


def _put(path: tuple[str, ...], data: bytes, listed: int) -> None:
    *folder, name = path
    for _ in range(_ATTEMPTS):
        # A concurrent deletion may remove the empty directory before the file is written. Then the next attempt creates
        # it again.
        with suppress(FileNotFoundError), _opened(folder, existing=listed) as directory:
            return _write(directory, name, data)
    raise StorageUnavailable("The directory of a local file was removed while the file was written. Try again")


def _write(directory: int, name: str, data: bytes) -> None:
    descriptor = os.open(name, _CREATE, 0o666, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(name, dir_fd=directory)
        raise


def _get(path: tuple[str, ...], max_bytes: int) -> bytes:
    *folder, name = path
    with ExitStack() as stack:
        directory = stack.enter_context(_opened(folder))
        descriptor = os.open(name, _READ, dir_fd=directory)
        stack.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise StorageDenied("A local file must be a regular file without additional hard links")
        require_size(found.st_size, max_bytes)
        return _read(descriptor, max_bytes)


def _read(descriptor: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    remaining = max_bytes
    # The bytes are counted, because a client may be writing to the file.
    while part := os.read(descriptor, min(remaining + 1, _CHUNK)):
        remaining -= len(part)
        if remaining < 0:
            raise FileTooLarge(f"The file has more than {max_bytes} bytes")
        parts.append(part)
    return b"".join(parts)


def _delete(path: tuple[str, ...], base: int) -> None:
    *folder, name = path
    with suppress(FileNotFoundError):
        with _opened(folder) as directory:
            os.unlink(name, dir_fd=directory)
        while len(folder) > base:
            *folder, name = folder
            with _opened(folder) as directory:
                try:
                    os.rmdir(name, dir_fd=directory)
                except OSError as error:
                    if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                        return
                    raise


def _list(top: tuple[str, ...], limit: int) -> list[str]:
    found: list[str] = []
    waiting = [top]
    while waiting and len(found) < limit:
        folder = waiting.pop()
        for name, is_directory in _entries(folder):
            if not is_directory:
                found.append("/".join((*folder, name)))
            elif len(folder) - len(top) == MAX_DEPTH:
                raise StorageUnavailable(f"Local directories are nested more than {MAX_DEPTH} levels deep")
            else:
                waiting.append((*folder, name))
    return found[:limit]


def _entries(folder: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Return (name, True for a directory) for each entry of a directory. Return an empty list if it does not exist."""
    with suppress(FileNotFoundError), _opened(folder) as directory:
        descriptor = os.open(".", _SCAN, dir_fd=directory)
        try:
            with os.scandir(descriptor) as entries:
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        finally:
            os.close(descriptor)
    return []
