# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for storage providers: the rules of files (`gateway.storage.provider.FileClient`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import FileExists, FileMissing, FileTooLarge
from gateway.storage.files import Files
from lakegate.conformance.rules import Broken, Rule, require
from lakegate.conformance.storage import StorageSubject

_LARGE: Final = 9 * 1024 * 1024 + 1  # more than one part of a multipart upload
_MANY: Final = 1100  # more than stores delete, or list, with one request
_CONCURRENT: Final = 12

#: Names that are valid in locations and that stores, URLs or shells treat specially.
NAMES: Final = (
    "plain.txt",
    "a=b",
    "a%20b",
    "%C3%BC",
    "a+b",
    "a&b;c",
    "it's",
    'quo"te',
    "<tag>",
    "größe",
    "groesse-o\u0308",
    "表",
    "~tilde",
    "(x),@:!",
    ".hidden",
    "trailing.",
    "n" * 200,
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The files of one warehouse, and a folder in it."""

    files: Files
    profile: StorageProfile
    credential: Credential
    folder: Location

    def path(self, *segments: str) -> str:
        return self.folder.child(*segments, escapes_known=self.profile.escapes_known).text

    async def write(self, data: bytes, *segments: str) -> None:
        await self.files.write(self.profile, self.credential, self.path(*segments), data)

    async def read(self, *segments: str, max_bytes: int = _LARGE) -> bytes:
        return await self.files.read(self.profile, self.credential, self.path(*segments), max_bytes=max_bytes)

    async def delete(self, *texts: str) -> None:
        await self.files.delete(self.profile, self.credential, texts)

    async def keys(self, *segments: str, limit: int = 1000) -> list[str]:
        below = self.folder.child(*segments, escapes_known=self.profile.escapes_known) if segments else self.folder
        return await self.files.list_keys(self.profile, self.credential, below, limit)


@asynccontextmanager
async def _place(subject: StorageSubject, name: str) -> AsyncIterator[_Place]:
    async with subject.opened() as clients:
        yield _Place(Files(clients), subject.decoded(), subject.own_credential(), subject.location(name))


async def _returns_what_was_written(subject: StorageSubject) -> None:
    async with _place(subject, "sizes") as place:
        for size in (0, 1, 1000, _LARGE):
            data = bytes(range(251)) * (size // 251 + 1)
            await place.write(data[:size], f"f{size}")
            found = await place.read(f"f{size}")
            require(found == data[:size], f"a file of {size} bytes is read back with {len(found)} other bytes")
    async with _place(subject, "sizes") as again:
        require(len(await again.read("f1000")) == 1000, "a file is not durable: another client reads other bytes")


async def _missing_file_is_reported(subject: StorageSubject) -> None:
    async with _place(subject, "missing") as place:
        for segments in (("nothing",), ("no", "such", "folder", "nothing")):
            try:
                await place.read(*segments)
            except FileMissing:
                continue
            except CatalogError as other:
                raise Broken(f"a missing file raises {type(other).__name__} and must raise FileMissing") from other
            raise Broken("a missing file is read and must raise FileMissing")
        require(await place.keys() == [], "a list of a folder that does not exist is not empty")


async def _limit_is_kept(subject: StorageSubject) -> None:
    async with _place(subject, "limit") as place:
        await place.write(b"x" * 100, "f")
        require(len(await place.read("f", max_bytes=100)) == 100, "a file of exactly `max_bytes` is not returned")
        try:
            await place.read("f", max_bytes=99)
        except FileTooLarge:
            return
        raise Broken("a file of 100 bytes is returned with a limit of 99 and must raise FileTooLarge")


async def _files_are_never_replaced(subject: StorageSubject) -> None:
    async with _place(subject, "twice") as place:
        await place.write(b"first", "f")
        try:
            await place.write(b"other", "f")
        except FileExists:
            require(await place.read("f") == b"first", "a refused write changed the file")
        else:
            raise Broken("a second write of a file succeeds and must raise FileExists")


async def _one_concurrent_write_succeeds(subject: StorageSubject) -> None:
    async with _place(subject, "race") as place:
        contents = [f"writer {number}".encode() for number in range(_CONCURRENT)]
        results = await asyncio.gather(*(place.write(each, "f") for each in contents), return_exceptions=True)
        winners = [each for each, result in zip(contents, results, strict=True) if result is None]
        others = {type(result).__name__ for result in results if not isinstance(result, FileExists | None)}
        require(not others, f"concurrent writes of one file raise {', '.join(others)} and must raise FileExists")
        require(len(winners) == 1, f"{len(winners)} of {_CONCURRENT} concurrent writes of one file succeed, not one")
        require(await place.read("f") == winners[0], "the file is not that of the write that succeeded")


async def _names_are_exact(subject: StorageSubject) -> None:
    async with _place(subject, "names") as place:
        for name in NAMES:
            await place.write(name.encode(), "t", name)
        for name in NAMES:
            found = await place.read("t", name)
            require(found == name.encode(), f"the file {name!r} is read as that of {found.decode()!r}")
        prefix = f"{place.folder.key_prefix}t/"
        listed, expected = set(await place.keys("t")), {prefix + name for name in NAMES}
        require(listed == expected, f"a list changes names: {sorted(listed ^ expected)}")


async def _lists_are_exact(subject: StorageSubject) -> None:
    async with _place(subject, "lists") as place:
        inside = [("t1", "a"), ("t1", "data", "b"), ("t1", "data", "deep", "c")]
        outside = [("t10", "a"), ("t", "a"), ("t1-x", "a"), ("t0", "a")]
        for segments in (*inside, *outside):
            await place.write(b"x", *segments)
        expected = {f"{place.folder.key_prefix}{'/'.join(segments)}" for segments in inside}
        found = await place.keys("t1")
        require(set(found) == expected, f"the list of one folder differs by {sorted(set(found) ^ expected)}")
        require(len(found) == len(expected), "a list returns a file twice")
        for limit in (1, 2):
            some = await place.keys("t1", limit=limit)
            require(len(some) == limit and set(some) <= expected, f"a list with the limit {limit} returns {len(some)}")


async def _deletion_is_exact(subject: StorageSubject) -> None:
    async with _place(subject, "deletion") as place:
        for segments in (("t1", "a"), ("t1", "b"), ("t1", "a.bak"), ("t10", "a")):
            await place.write(b"x", *segments)
        many = [place.path("t1", f"missing-{number}") for number in range(_MANY)]
        await place.delete(place.path("t1", "a"), *many)
        await place.delete(place.path("t1", "a"))
        await place.delete()
        found = {key.removeprefix(place.folder.key_prefix) for key in await place.keys()}
        require(
            found == {"t1/b", "t1/a.bak", "t10/a"}, f"after a deletion of t1/a these files are left: {sorted(found)}"
        )
        try:
            await place.read("t1", "a")
        except FileMissing:
            return
        raise Broken("a deleted file is still read")


FILE_RULES: Final = (
    Rule("a file is read back as it was written", _returns_what_was_written),
    Rule("a missing file raises FileMissing", _missing_file_is_reported),
    Rule("a file that is too large raises FileTooLarge", _limit_is_kept),
    Rule("a file is never replaced", _files_are_never_replaced),
    Rule("one of several concurrent writes succeeds", _one_concurrent_write_succeeds),
    Rule("names are exact", _names_are_exact),
    Rule("a list is exactly one folder", _lists_are_exact),
    Rule("a deletion is exact and can be repeated", _deletion_is_exact),
)
"""The rules of files, in the order of their checks."""
