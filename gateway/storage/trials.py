# SPDX-License-Identifier: Apache-2.0
"""Interfaces for the attempts of the canary (`gateway/vending/canary.py`), which tries to leave a credential's scope.

The canary decides which attempts are made and what they prove. A provider sends the requests of an attempt and
evaluates the store's response. A provider without requests of its own uses `FileTrials`, which needs only its file
client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import TemporaryCredential
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import FileMissing, StorageDenied
from gateway.storage.provider import FileClient

__all__ = ["PROBE", "Act", "Attempt", "ControlCall", "FileTrials", "Outcome", "Trials"]

PROBE = b"lakegate storage check"
"""The content of objects that an attempt writes."""


class Act(StrEnum):
    """The kind of an attempt."""

    READ = "read"
    HEAD = "head"
    LIST = "list"
    LIST_FOLDERS = "list-folders"
    WRITE = "write"
    OVERWRITE = "overwrite"
    MULTIPART = "multipart-upload"
    COPY = "copy"
    COPY_PART = "copy-part"
    DELETE = "delete"
    DELETE_BATCH = "delete-batch"


class Outcome(StrEnum):
    """The result of an attempt.

    `reached`: the store carried it out, or answered as it does for a permitted request. `acknowledged`: the response is
    a success that can contain a refusal, so only the object shows the result. `unclear`: neither a success nor a
    refusal. `untested`: the provider or the store has no such request.
    """

    REFUSED = "refused"
    REACHED = "reached"
    ACKNOWLEDGED = "acknowledged"
    UNCLEAR = "unclear"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt on the object `key`. For a listing, `key` is the prefix, which is empty for the whole store.

    `inside` is the prefix of the credential's own keys: a listing succeeds in leaving the scope if it contains any
    other key. `source` is the key from which a copy is made. `exists` is True if the canary has written an object at
    `key`.
    """

    act: Act
    key: str
    inside: str
    source: str = ""
    exists: bool = False


ControlCall = tuple[str, Callable[[], Awaitable[Outcome]]]
"""The name of a request to the control plane of a store, and the function that sends it."""


class Trials(Protocol):
    """Sends attempts to a store with a vended credential. No method raises errors of the store."""

    def connected(self) -> AbstractAsyncContextManager[Trials]:
        """Return a context manager that yields an object for several attempts, which may share connections."""
        ...

    async def attempt(self, profile: StorageProfile, temporary: TemporaryCredential, attempt: Attempt) -> Outcome:
        """Send the attempt and return its result."""
        ...

    def control_plane(
        self, profile: StorageProfile, temporary: TemporaryCredential, *, sentinel: str, inside: str, unique: str
    ) -> Sequence[ControlCall]:
        """Return the requests to the control plane of the store that the canary sends with this credential.

        None of them changes anything that the canary did not create. `sentinel` is the key of an object outside of the
        credential's scope, `inside` the prefix of its scope, `unique` a new name for things that a request creates.
        """
        ...


class FileTrials:
    """`Trials` with a provider's file client: reading, listing, writing and deleting."""

    def __init__(self, files: FileClient) -> None:
        self._files = files

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[FileTrials]:
        """Yield this object: the file client manages its own connections."""
        yield self

    async def attempt(self, profile: StorageProfile, temporary: TemporaryCredential, attempt: Attempt) -> Outcome:
        """Send the attempt and return its result. Copies and uploads in parts are untested."""
        try:
            return await self._send(profile, temporary, attempt)
        except StorageDenied:
            return Outcome.REFUSED
        except FileMissing:
            return Outcome.UNCLEAR if attempt.exists else Outcome.REACHED
        except CatalogError:
            return Outcome.UNCLEAR

    async def _send(self, profile: StorageProfile, temporary: TemporaryCredential, attempt: Attempt) -> Outcome:
        match attempt.act:
            case Act.READ:
                await self._files.get(profile, temporary, attempt.key, 1024)
            case Act.LIST:
                names = await self._files.list(profile, temporary, attempt.key, 1000)
                return reached_by_listing(names, attempt.inside)
            case Act.WRITE:
                await self._files.put(profile, temporary, attempt.key, PROBE)
            case Act.DELETE:
                await self._files.delete(profile, temporary, [attempt.key])
                return Outcome.ACKNOWLEDGED
            case _:
                return Outcome.UNTESTED
        return Outcome.REACHED

    def control_plane(
        self, profile: StorageProfile, temporary: TemporaryCredential, *, sentinel: str, inside: str, unique: str
    ) -> Sequence[ControlCall]:
        """Return nothing: a file client has no requests to a control plane."""
        return ()


def reached_by_listing(names: Sequence[str], inside: str) -> Outcome:
    """Return the result of a listing: it leaves the scope if it contains a key outside of the prefix `inside`. An empty
    listing is inconclusive.
    """
    return Outcome.REFUSED if all(name.startswith(inside) for name in names) else Outcome.REACHED
