# SPDX-License-Identifier: Apache-2.0
"""List and delete files with a signature for one directory, by the API of the file service ("Path - List", "Delete").

The object store library uses the blob service for both. There, a list and a batch of deletions are requests on the
whole container, and a signature for a directory does not allow them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.storage.adls.credential import AdlsSas
from gateway.storage.adls.profile import AdlsProfile
from gateway.storage.adls.stores import blob_address
from gateway.storage.errors import denied, unavailable
from gateway.storage.object_files import ObjectFiles, ObjectStores
from gateway.storage.stored import typed

if TYPE_CHECKING:
    import requests

__all__ = ["AdlsFiles"]

MAX_THREADS: Final = 8
PAGE: Final = 1000
MAX_ANSWER: Final = 4 << 20

_T = TypeVar("_T")


class _Path(msgspec.Struct, rename={"is_directory": "isDirectory"}):
    """An entry of a list. The service writes the flag `isDirectory` as text."""

    name: str
    is_directory: str | bool = False


class _Page(msgspec.Struct):
    paths: list[_Path] = []


class AdlsFiles(ObjectFiles):
    """`FileClient` that lists and deletes with a signature by the file service. For everything else it works as for
    other stores.

    Close it with `close`. `endpoint` is the operator's address of the blob service, if any.
    """

    def __init__(
        self,
        stores: ObjectStores,
        *,
        endpoint: str | None,
        connect_seconds: float,
        request_seconds: float,
        total_seconds: float,
        ca_bundle: str | None,
    ) -> None:
        super().__init__(stores, total_seconds=total_seconds)
        self._endpoint = endpoint
        self._timeout = (connect_seconds, request_seconds)
        self._ca_bundle = ca_bundle
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="adls-files")

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files. Missing files count as deleted."""
        if isinstance(credential, AdlsSas):
            for start in range(0, len(keys), MAX_THREADS):
                some = keys[start : start + MAX_THREADS]
                await asyncio.gather(*(self._in_thread(self._delete, profile, credential, key) for key in some))
        else:
            await super().delete(profile, credential, keys)

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys below the directory `prefix`, in the store's order."""
        if isinstance(credential, AdlsSas):
            return [*await self._in_thread(self._keys, profile, credential, prefix, limit)]
        return await super().list(profile, credential, prefix, limit)

    def close(self) -> None:
        """Shut down the threads. Calls in progress end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, call: Callable[..., _T], *arguments: Any) -> _T:
        try:
            async with asyncio.timeout(self._total_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, call, *arguments)
        except TimeoutError:
            raise unavailable() from None

    def _delete(self, profile: StorageProfile, credential: AdlsSas, key: str) -> None:
        found = typed(profile, AdlsProfile)
        url = f"{self._address(found)}/{found.filesystem}/{quote(key)}?{credential.token}"
        self._send("DELETE", url)

    def _keys(self, profile: StorageProfile, credential: AdlsSas, prefix: str, limit: int) -> Sequence[str]:
        found = typed(profile, AdlsProfile)
        query = {"resource": "filesystem", "recursive": "true", "maxResults": str(min(limit, PAGE))}
        if prefix:
            query["directory"] = prefix.removesuffix("/")
        keys: list[str] = []
        following: str | None = ""
        while following is not None and len(keys) < limit:
            more = {"continuation": following} if following else {}
            url = f"{self._address(found)}/{found.filesystem}?{urlencode(query | more)}&{credential.token}"
            answer, content = self._send("GET", url)
            if answer is None:
                break
            try:
                page = msgspec.json.decode(content, type=_Page)
            except msgspec.MsgspecError:
                raise unavailable() from None
            keys += [each.name for each in page.paths if str(each.is_directory).lower() != "true"]
            following = answer.headers.get("x-ms-continuation") or None
        return keys[:limit]

    def _address(self, profile: AdlsProfile) -> str:
        return blob_address(profile, self._endpoint).replace(".blob.", ".dfs.", 1)

    def _send(self, method: str, url: str) -> tuple[requests.Response | None, bytes]:
        """Send a request. Return the response and its content; (None, b"") if there is nothing at this path.

        The signature is part of the address, so no error may contain the address.
        """
        import requests

        try:
            with requests.request(
                method,
                url,
                headers={"x-ms-version": "2022-11-02"},
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
                verify=self._ca_bundle or True,
            ) as answer:
                content: bytes = answer.raw.read(MAX_ANSWER, decode_content=True)
        except (requests.RequestException, OSError):
            raise unavailable() from None
        if answer.status_code == 404:
            return None, b""
        if answer.status_code in (401, 403):
            raise denied()
        if answer.status_code not in (200, 202):
            raise unavailable()
        return answer, content
