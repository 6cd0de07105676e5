# SPDX-License-Identifier: Apache-2.0
"""Read and write files in HDFS below the directories that the operator lists, with the gateway's own identity.

The Hadoop configuration (`HADOOP_CONF_DIR`) and Kerberos (`KRB5_CLIENT_KTNAME`, `KRB5CCNAME`) are read from the
process's environment, as Hadoop's own clients do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile, StorageRules
from gateway.storage.errors import (
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
    file_exists,
    file_missing,
    require_size,
    unavailable,
)
from gateway.storage.hdfs.name_node import Deadline, NameNode
from gateway.storage.hdfs.profile import HdfsAccess, HdfsProfile
from gateway.storage.provider import ClientOptions, StorageClient

__all__ = ["HdfsFiles", "open_client"]

DELETIONS: Final = 100
"""The number of files that one call deletes."""

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
_NOT_A_DIRECTORY: Final = "org.apache.hadoop.fs.ParentNotDirectoryException"
_NOT_EMPTY: Final = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException"

Result = TypeVar("Result")
Call = Callable[[Any, int, Deadline], Result]
"""A function that receives the library's client, the permissions of the operator's directory, and a time limit."""


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It has no sessions and nothing to close. It connects at the first call."""
    files = HdfsFiles(options.rules, total_seconds=options.total_seconds)
    return StorageClient(files=files, sessions=None, close=lambda: None)


class HdfsFiles:
    """`FileClient` for HDFS. Each request to the name node returns within `total_seconds`."""

    def __init__(self, rules: StorageRules, *, total_seconds: float) -> None:
        self._rules = rules
        self._total_seconds = total_seconds
        self._name_nodes: dict[str, NameNode] = {}

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file, and create missing directories above it. Raises FileExists.

        They get the permissions of the operator's directory. Files do not get its right to execute.
        """
        path = _path(key)

        def put(client: Any, permission: int, deadline: Deadline) -> None:
            client.mkdirs(_above(path), permission, True)
            deadline.check()
            _write(client, path, data, permission & 0o666)

        await self._calling(profile, credential, put)

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file. Raises `FileMissing`, and `FileTooLarge` if the name node reports a larger size."""
        path = _path(key)
        return await self._calling(profile, credential, lambda client, *_: _get(client, path, max_bytes))

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files, and the directories that become empty. The warehouse's own directory stays."""
        base = len(profile.base_location().segments)
        paths = [_path(key) for key in keys]

        for start in range(0, len(paths), DELETIONS):
            some = paths[start : start + DELETIONS]
            await self._calling(profile, credential, partial(_delete, paths=some, base=base))

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys below the directory `prefix`."""
        top = _path(prefix.removesuffix("/"))
        return await self._calling(profile, credential, lambda client, _, until: _list(client, top, limit, until))

    async def _calling(self, profile: StorageProfile, credential: Credential, call: Call[Result]) -> Result:
        """Check the profile by the operator's current rules, run `call`, and translate its errors into those of
        `FileClient`.
        """
        if not isinstance(profile, HdfsProfile) or not isinstance(credential, HdfsAccess):
            raise TypeError(f"HDFS cannot be used with a {type(credential).__name__} and a {type(profile).__name__}")
        try:
            profile.check(self._rules)
        except CatalogError as refused:
            raise StorageEndpointRefused(refused.message) from None
        root = profile.root(self._rules)
        name_node = self._name_nodes.get(root.authority)
        if name_node is None:
            name_node = self._name_nodes[root.authority] = NameNode(root.authority)

        def work(client: Any, deadline: Deadline) -> Result:
            return call(client, _permission(client, root), deadline)

        try:
            return await name_node.run(work, seconds=self._total_seconds)
        except CatalogError:
            raise
        except (OSError, RuntimeError) as error:
            _translate(error)


def _permission(client: Any, root: Location) -> int:
    """Return the permissions of the operator's directory. Raises StorageUnavailable if the directory is missing,
    because the warehouse's files are then unavailable, not deleted.
    """
    try:
        return int(client.get_file_info(_path("/".join(root.segments))).permission) & 0o777
    except FileNotFoundError:
        raise StorageUnavailable(
            "The directory in the setting LAKEGATE__STORAGE_HDFS_ROOTS does not exist. The operator can create it"
        ) from None


def _write(client: Any, path: str, data: bytes, permission: int) -> None:
    from hdfs_native import WriteOptions

    writer = client.create(path, WriteOptions(permission=permission, overwrite=False, create_parent=True))
    try:
        writer.write(data)
        writer.close()
    except BaseException:
        # The name node keeps an incomplete file. This call created the file, so the deletion removes no other data.
        with suppress(OSError, RuntimeError):
            client.delete(path, False)
        raise


def _get(client: Any, path: str, max_bytes: int) -> bytes:
    reader = client.read(path)
    size = len(reader)
    require_size(size, max_bytes)
    data = bytes(reader.read_range(0, size)) if size else b""
    if len(data) != size:
        raise StorageUnavailable("HDFS returned an incomplete file. Try again")
    return data


def _delete(client: Any, _: int, deadline: Deadline, *, paths: Sequence[str], base: int) -> None:
    for path in paths:
        deadline.check()
        client.delete(path, False)
    _remove_empty(client, {_above(path) for path in paths}, base, deadline)


def _list(client: Any, top: str, limit: int, deadline: Deadline) -> list[str]:
    found: list[str] = []
    try:
        for entry in client.list_status(top, True):
            deadline.check()
            # If the location is a file, the store lists the file itself.
            if not entry.isdir and entry.path.startswith(top + "/"):
                found.append(entry.path.removeprefix("/"))
            if len(found) >= limit:
                return found
    except FileNotFoundError:
        # A subdirectory was deleted during the listing. Its parent may have other entries, so the result is not
        # "empty".
        if not found and _is_directory(client, top):
            raise StorageUnavailable("A directory was deleted while its parent was listed. Try again") from None
    return found


def _remove_empty(client: Any, folders: set[str], base: int, deadline: Deadline) -> None:
    """Delete the empty directories among `folders`, deepest first, and their empty ancestors below `base`.

    The name node deletes a directory only if it is empty.
    """
    while folders:
        deadline.check()
        folder = max(folders, key=lambda each: each.count("/"))
        folders.remove(folder)
        if folder.count("/") <= base:
            continue
        if _is_directory(client, folder):
            try:
                client.delete(folder, False)
            except RuntimeError as error:
                if _remote_class(error) != _NOT_EMPTY:
                    raise
                continue
        folders.add(_above(folder))


def _is_directory(client: Any, path: str) -> bool:
    with suppress(FileNotFoundError):
        return bool(client.get_file_info(path).isdir)
    return False


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _path(key: str) -> str:
    """Return the absolute path of a key. A key from a listing may be invalid as a location, but it must not lead
    outside of its directory.
    """
    segments = key.split("/")
    if any(segment in {"", ".", "..", ".reserved"} or "\0" in segment for segment in segments):
        raise StorageDenied("A path in HDFS must not contain empty segments, '.', '..' or '.reserved'")
    return "/" + key


def _remote_class(error: BaseException) -> str:
    found = _REMOTE.match(str(error))
    return found[1] if found else ""


def _translate(error: OSError | RuntimeError) -> NoReturn:
    """Raise the error of `FileClient` that corresponds to an error of the library. The cause is dropped, because it
    contains addresses.
    """
    remote = _remote_class(error)
    if isinstance(error, FileNotFoundError):
        raise file_missing() from None
    if isinstance(error, FileExistsError) or remote in _EXISTS:
        raise file_exists() from None
    if isinstance(error, PermissionError) or remote in _DENIED or _IDENTITY.match(str(error)):
        raise StorageDenied(
            "HDFS denied this request of the gateway. Check the gateway's identity and the permissions of the directory"
        ) from None
    if remote == _NOT_A_DIRECTORY:
        raise StorageDenied("Every part of a path in HDFS above the file must be a directory") from None
    raise unavailable() from None
