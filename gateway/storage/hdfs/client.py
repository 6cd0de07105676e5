# SPDX-License-Identifier: Apache-2.0
"""Files in HDFS below the directories that the operator lists, with the gateway's own identity.

The Hadoop configuration (`HADOOP_CONF_DIR`) and Kerberos (`KRB5_CLIENT_KTNAME`, `KRB5CCNAME`) are read from the
process's environment, as Hadoop's own clients do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import StorageRules
from gateway.storage.errors import (
    FileExists,
    FileMissing,
    FileTooLarge,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.hdfs.loop_thread import LoopThread
from gateway.storage.hdfs.profile import HdfsAccess, HdfsProfile
from gateway.storage.provider import ClientOptions, StorageClient

__all__ = ["HdfsFiles", "open_client"]

DELETIONS: Final = 32
"""The number of files of one call that are deleted concurrently."""

_CLEANUP_SECONDS: Final = 5.0
_SOCKET_SECONDS: Final = 15
# The exception's class in the text of the library's errors. A path, which a client may have chosen, comes after it.
_REMOTE: Final = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)"', re.ASCII)
_IDENTITY: Final = re.compile(r"(?:SASLError|GSSAPIError|NoSASLMechanism)\b", re.ASCII)
_DENIED: Final = frozenset(
    {
        "org.apache.hadoop.security.AccessControlException",
        "org.apache.hadoop.security.authorize.AuthorizationException",
        "org.apache.hadoop.security.token.SecretManager$InvalidToken",
        "javax.security.sasl.SaslException",
    }
)
_EXISTS: Final = frozenset(
    {
        "org.apache.hadoop.fs.FileAlreadyExistsException",
        "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException",
    }
)
_PANIC: Final = "PanicException"  # of the library, and no subclass of Exception
_NOT_A_DIRECTORY: Final = "org.apache.hadoop.fs.ParentNotDirectoryException"
_NOT_EMPTY: Final = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"

Result = TypeVar("Result")
Call = Callable[[Any, int], Awaitable[Result]]
"""A function that receives the library's client and the permissions of the operator's directory."""


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It has no sessions, and it connects and starts its thread with the first call."""
    thread = LoopThread("storage-hdfs")
    files = HdfsFiles(options.rules, thread, total_seconds=options.total_seconds)
    return StorageClient(files=files, sessions=None, close=thread.close)


class HdfsFiles:
    """`FileClient` for HDFS. Each call returns within `total_seconds`. The library runs in `thread` alone."""

    def __init__(self, rules: StorageRules, thread: LoopThread, *, total_seconds: float) -> None:
        self._rules = rules
        self._thread = thread
        self._total_seconds = total_seconds
        self._clients: dict[str, Any] = {}

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file, and create missing directories above it. Raises FileExists.

        Files and directories get the permissions of the operator's directory, files without the right to execute.
        """
        path = _path(key)

        async def put(client: Any, permission: int) -> None:
            await client.mkdirs(path.rpartition("/")[0], permission, True)
            await _write(client, path, data, permission & 0o666)

        await self._calling(profile, credential, put)

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises `FileMissing`, and `FileTooLarge` if the name node reports a larger size."""
        path = _path(key)

        async def get(client: Any, _: int) -> bytes:
            reader = await client.read(path)
            size = len(reader)
            if size > max_bytes:
                raise FileTooLarge(f"The file has {size} bytes; at most {max_bytes} are allowed")
            data = bytes(await reader.read_range(0, size)) if size else b""
            if len(data) != size:
                raise StorageUnavailable("HDFS returned an incomplete file. Try again")
            return data

        return await self._calling(profile, credential, get)

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files, and the directories that become empty below the warehouse's own."""
        base = len(profile.base_location().segments)
        paths = [_path(key) for key in keys]

        async def delete(client: Any, _: int) -> None:
            for start in range(0, len(paths), DELETIONS):
                deletions = (client.delete(path, False) for path in paths[start : start + DELETIONS])
                for result in await asyncio.gather(*deletions, return_exceptions=True):
                    if isinstance(result, BaseException):
                        raise result
            await _remove_empty(client, {path.rpartition("/")[0] for path in paths}, base)

        await self._calling(profile, credential, delete)

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys below the directory `prefix`."""
        top = _path(prefix.removesuffix("/"))

        return await self._calling(profile, credential, lambda client, _: _list(client, top, limit))

    async def _calling(self, profile: StorageProfile, credential: Credential, call: Call[Result]) -> Result:
        """Check the profile by the operator's current rules, run `call` in the thread, and translate its errors."""
        if not isinstance(profile, HdfsProfile) or not isinstance(credential, HdfsAccess):
            raise TypeError(f"a {type(credential).__name__} for a {type(profile).__name__} opens no file in HDFS")
        try:
            profile.check(self._rules)
        except CatalogError as refused:
            raise StorageEndpointRefused(refused.message) from None
        root = profile.root(self._rules)

        def work() -> Coroutine[Any, Any, Result]:
            return self._work(root, call)

        try:
            return await self._thread.run(work, seconds=self._total_seconds)
        except CatalogError:
            raise
        except OSError:
            raise _unavailable() from None

    async def _work(self, root: Location, call: Call[Result]) -> Result:
        """Run `call` with the client of the name node. Runs in the thread."""
        try:
            client = self._clients.get(root.authority) or _connected(root.authority)
            self._clients[root.authority] = client
            return await call(client, await _permission(client, root))
        except (CatalogError, FileNotFoundError, FileExistsError, PermissionError) as known:
            _translate(known)
        except BaseException as unknown:
            # A call that was cancelled may have waited for a connection that never answers, so it is not used again.
            self._clients.pop(root.authority, None)
            if isinstance(unknown, (OSError, RuntimeError)) or type(unknown).__name__ == _PANIC:
                _translate(unknown)
            raise


def _connected(authority: str) -> Any:
    """Make the library's client. It connects with its first call. Raises OSError or RuntimeError for a configuration
    that does not define the authority.
    """
    from hdfs_native import AsyncClient

    config = {"dfs.client.socket-timeout": str(_SOCKET_SECONDS * 1000)}
    if ":" in authority:
        # A single name node has no other to try. The library's pause before a repetition fails outside of its runtime.
        config["dfs.client.failover.max.attempts"] = "0"
    return AsyncClient(f"hdfs://{authority}", config)


async def _permission(client: Any, root: Location) -> int:
    """Return the permissions of the operator's directory. Raises StorageUnavailable if it is missing: then the
    warehouse's files are unavailable, not deleted.
    """
    try:
        return int((await client.get_file_info(_path("/".join(root.segments)))).permission) & 0o777
    except FileNotFoundError:
        raise StorageUnavailable(
            "The directory in the setting LAKEGATE__STORAGE_HDFS_ROOTS does not exist. The operator can create it"
        ) from None


async def _write(client: Any, path: str, data: bytes, permission: int) -> None:
    from hdfs_native import WriteOptions

    options = WriteOptions(permission=permission, overwrite=False, create_parent=True)
    writer = await client.create(path, options)
    try:
        await writer.write(data)
        await writer.close()
    except BaseException:
        # The name node keeps an incomplete file. This call created it, so nothing else is deleted.
        with suppress(Exception):
            async with asyncio.timeout(_CLEANUP_SECONDS):
                await client.delete(path, False)
        raise


async def _list(client: Any, top: str, limit: int) -> list[str]:
    found: list[str] = []
    try:
        async for entry in client.list_status(top, True):
            # A file in place of the directory is listed as itself.
            if not entry.isdir and entry.path.startswith(top + "/"):
                found.append(entry.path.removeprefix("/"))
            if len(found) >= limit:
                return found
    except FileNotFoundError:
        # A directory below may have been deleted meanwhile. The remaining ones are unknown, so this is not empty.
        if not found and await _exists(client, top):
            raise StorageUnavailable("A directory was deleted while its parent was listed. Try again") from None
    return found


async def _exists(client: Any, path: str) -> bool:
    with suppress(FileNotFoundError):
        await client.get_file_info(path)
        return True
    return False


async def _remove_empty(client: Any, folders: set[str], base: int) -> None:
    """Delete the directories that are empty, the deepest first, and those above them, to the depth `base` without it.

    The name node deletes a directory only if it is empty.
    """
    while folders:
        folder = max(folders, key=lambda each: each.count("/"))
        folders.remove(folder)
        if folder.count("/") <= base:
            continue
        with suppress(FileNotFoundError):
            if not (await client.get_file_info(folder)).isdir:
                continue
        try:
            await client.delete(folder, False)
        except RuntimeError as error:
            if _remote_class(error) != _NOT_EMPTY:
                raise
            continue
        folders.add(folder.rpartition("/")[0])


def _path(key: str) -> str:
    """Return the absolute path of a key. Keys from listings may be invalid locations, but must not leave their
    directory.
    """
    segments = key.split("/")
    if any(segment in {"", ".", "..", ".reserved"} or "\0" in segment for segment in segments):
        raise StorageDenied("A path in HDFS must not contain empty segments, '.', '..' or '.reserved'")
    return "/" + key


def _remote_class(error: BaseException) -> str:
    found = _REMOTE.match(str(error))
    return found[1] if found else ""


def _translate(error: BaseException) -> NoReturn:
    """Raise the error of `FileClient` for one of the library. The cause is dropped, because it contains addresses."""
    if isinstance(error, CatalogError):
        raise error
    remote = _remote_class(error)
    if isinstance(error, FileNotFoundError):
        raise FileMissing("The file does not exist in the storage") from None
    if isinstance(error, FileExistsError) or remote in _EXISTS:
        raise FileExists("A file already exists at this path of the storage. Choose another path") from None
    if isinstance(error, PermissionError) or remote in _DENIED or _IDENTITY.match(str(error)):
        raise StorageDenied(
            "HDFS denied this request of the gateway. Check the gateway's identity and the permissions of the directory"
        ) from None
    if remote == _NOT_A_DIRECTORY:
        raise StorageDenied("Every part of a path in HDFS above the file must be a directory") from None
    raise _unavailable() from None


def _unavailable() -> StorageUnavailable:
    return StorageUnavailable(
        "The storage did not answer, or returned an unexpected error. Check the storage profile and the store, then "
        "try again"
    )
