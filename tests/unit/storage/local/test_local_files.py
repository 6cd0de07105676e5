# SPDX-License-Identifier: Apache-2.0
"""Files of local warehouses, in directories with arbitrary content from clients."""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location
from gateway.scope.profile import StorageRules
from gateway.storage.errors import (
    FileExists,
    FileMissing,
    FileTooLarge,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.files import Files
from gateway.storage.local import client as local_files
from gateway.storage.local.profile import LocalAccess, LocalProfile
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import open_clients
from gateway.storage.s3.credential import S3AccessKey

SECRET = b"of another warehouse"

# renameat2(2) exchanges both names atomically.
_HERE, _EXCHANGE = -100, 2


class Lake:
    """Two warehouses in an allowed directory; a secret lies in the second one and in a directory beside the first."""

    def __init__(self, root: Path) -> None:
        self.listed = root / "listed"
        self.mine, self.other, self.outside = self.listed / "mine", self.listed / "other", root / "outside"
        for folder in (self.mine, self.other, self.outside):
            folder.mkdir(parents=True)
            (folder / "secret").write_bytes(SECRET)
        (self.mine / "secret").unlink()
        self.profile = LocalProfile(directory=str(self.mine))
        self.access = LocalAccess()
        self.files = self.opened(str(self.listed))

    def opened(self, *directories: str) -> Files:
        return Files(open_clients(ClientOptions(rules=StorageRules(directories=directories), total_seconds=20)))

    def text(self, path: str) -> str:
        return f"file://{self.mine}/{path}"

    def location(self, path: str) -> Location:
        return self.profile.parse_location(self.text(path))

    async def write(self, path: str, data: bytes = b"data") -> None:
        await self.files.write(self.profile, self.access, self.text(path), data)

    async def read(self, path: str, *, max_bytes: int = 1000) -> bytes:
        return await self.files.read(self.profile, self.access, self.text(path), max_bytes=max_bytes)

    async def delete(self, *paths: str) -> None:
        await self.files.delete(self.profile, self.access, [self.text(path) for path in paths])

    async def keys(self, path: str, limit: int = 100) -> list[str]:
        found = await self.files.list_keys(self.profile, self.access, self.location(path), limit)
        prefix = self.location(path).key_prefix
        assert all(key.startswith(prefix) for key in found)
        return sorted(key.removeprefix(prefix) for key in found)

    async def purge(self, path: str) -> None:
        location = self.location(path)
        while found := await self.files.list_keys(self.profile, self.access, location, 3):
            await self.files.delete_below(self.profile, self.access, location, found)

    def untouched(self) -> bool:
        secrets = [self.other / "secret", self.outside / "secret"]
        return [each.read_bytes() for each in secrets] == [SECRET, SECRET]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    # The temporary directory of the machine may be a symlink, and symlinks are not followed here.
    yield Lake(Path(os.path.realpath(tmp_path)))


async def test_written_files_are_read_listed_and_deleted_with_empty_directories(lake: Lake) -> None:
    await lake.write("ns/t/metadata/1.json", b"one")
    await lake.write("ns/t/data/part 1".replace(" ", "%20"), b"two")
    assert await lake.read("ns/t/metadata/1.json") == b"one"
    assert await lake.keys("ns/t") == ["data/part%201", "metadata/1.json"]
    assert await lake.keys("ns/other") == []
    await lake.delete("ns/t/metadata/1.json", "ns/t/metadata/1.json", "ns/t/absent/2.json")
    assert await lake.keys("ns/t") == ["data/part%201"]
    assert not (lake.mine / "ns/t/metadata").exists()
    await lake.purge("ns/t")
    assert list(lake.mine.iterdir()) == []
    with pytest.raises(FileMissing):
        await lake.read("ns/t/metadata/1.json")


async def test_a_file_is_never_overwritten(lake: Lake) -> None:
    await lake.write("t/1.json", b"first")
    with pytest.raises(FileExists):
        await lake.write("t/1.json", b"second")
    assert await lake.read("t/1.json") == b"first"


async def test_a_file_above_the_size_limit_is_refused(lake: Lake) -> None:
    await lake.write("t/1.json", b"12345")
    assert await lake.read("t/1.json", max_bytes=5) == b"12345"
    with pytest.raises(FileTooLarge):
        await lake.read("t/1.json", max_bytes=4)


async def test_a_listing_returns_no_more_than_its_limit(lake: Lake) -> None:
    for number in range(5):
        await lake.write(f"t/{number % 2}/{number}")
    assert len(await lake.keys("t", limit=3)) == 3
    assert not await lake.files.is_empty(lake.profile, lake.access, lake.location("t"))


@pytest.mark.threat("LG-LOC-26")
@pytest.mark.parametrize("target", ["other", "outside", "."])
async def test_a_symlink_in_place_of_a_directory_is_not_followed(lake: Lake, target: str) -> None:
    aim = {"other": lake.other, "outside": lake.outside, ".": lake.mine / "t"}[target]
    await lake.write("t/secret", SECRET)
    (lake.mine / "link").symlink_to(aim)
    for attempt in (
        lake.read("link/secret"),
        lake.write("link/new"),
        lake.write("link/deep/new"),
        lake.delete("link/secret"),
        lake.keys("link"),
    ):
        with pytest.raises(StorageDenied, match="symbolic link"):
            await attempt
    assert lake.untouched() and [each.name for each in aim.iterdir()] == ["secret"]


@pytest.mark.threat("LG-LOC-26")
async def test_a_symlinked_file_is_not_read_and_a_purge_removes_only_the_link(lake: Lake) -> None:
    (lake.mine / "t/deep").mkdir(parents=True)
    (lake.mine / "t/file").symlink_to(lake.other / "secret")
    (lake.mine / "t/folder").symlink_to(lake.other)
    (lake.mine / "t/deep/loop").symlink_to(lake.mine)
    (lake.mine / "t/dangling").symlink_to(lake.other / "new")
    with pytest.raises(StorageDenied):
        await lake.read("t/file")
    with pytest.raises(FileExists):
        await lake.write("t/dangling")
    assert await lake.keys("t") == ["dangling", "deep/loop", "file", "folder"]
    await lake.purge("t")
    assert lake.untouched() and sorted(os.listdir(lake.other)) == ["secret"]
    assert await lake.keys("t") == []


@pytest.mark.threat("LG-LOC-26")
async def test_a_hard_link_is_not_read_and_a_purge_removes_only_the_link(lake: Lake) -> None:
    (lake.mine / "t").mkdir()
    os.link(lake.other / "secret", lake.mine / "t/file")
    with pytest.raises(StorageDenied, match="additional hard links"):
        await lake.read("t/file")
    await lake.purge("t")
    assert lake.untouched()


@pytest.mark.threat("LG-LOC-26")
async def test_a_special_file_is_not_read_and_does_not_block(lake: Lake) -> None:
    (lake.mine / "t/folder").mkdir(parents=True)
    os.mkfifo(lake.mine / "t/pipe")
    for name in ("pipe", "folder"):
        with pytest.raises(StorageDenied, match="regular file"):
            async with asyncio.timeout(5):
                await lake.read(f"t/{name}")
    with pytest.raises(StorageDenied, match="must be a directory"):
        await lake.read("t/pipe/x")


@pytest.mark.threat("LG-LOC-26")
async def test_an_allowed_directory_behind_a_symlink_is_refused(lake: Lake) -> None:
    alias = lake.listed.parent / "alias"
    alias.symlink_to(lake.listed)
    profile, files = LocalProfile(directory=str(alias / "mine")), lake.opened(str(alias))
    with pytest.raises(StorageDenied, match="symbolic link"):
        await files.write(profile, lake.access, f"file://{alias}/mine/t/1.json", b"x")
    with pytest.raises(StorageDenied, match="symbolic link"):
        await files.list_keys(profile, lake.access, profile.base_location(), 1)


@pytest.mark.threat("LG-LOC-26")
async def test_only_files_below_the_warehouse_are_touched(lake: Lake) -> None:
    for path in ("../other/secret", "t/../../other/secret", "%2e%2e/other/secret"):
        with pytest.raises(InvalidLocation):
            await lake.read(path)
    for text in (f"file://{lake.other}/secret", f"file://{lake.mine}2/x", "s3://mine/x", "file:///etc/passwd"):
        with pytest.raises(InvalidLocation):
            await lake.files.delete(lake.profile, lake.access, [text])
    foreign = "/".join(lake.other.parts[1:]) + "/secret"
    with pytest.raises(InvalidLocation):
        await lake.files.delete_below(lake.profile, lake.access, lake.location("t"), [foreign])
    crooked = lake.location("t").key_prefix + "../../other/secret"
    with pytest.raises(StorageDenied, match="'..'"):
        await lake.files.delete_below(lake.profile, lake.access, lake.location("t"), [crooked])
    assert lake.untouched()


@pytest.mark.threat("LG-LOC-26")
async def test_a_directory_replaced_by_a_symlink_during_use_is_not_followed(lake: Lake) -> None:
    folder, aside = lake.mine / "t", lake.mine / "aside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"own")
    aside.symlink_to(lake.other)
    drawn = random.Random(7)
    over, exchange = threading.Event(), ctypes.CDLL(None, use_errno=True).renameat2

    def swap() -> None:
        while not over.is_set():
            assert exchange(_HERE, os.fsencode(folder), _HERE, os.fsencode(aside), _EXCHANGE) == 0
            time.sleep(drawn.random() / 1000)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: list[Any] = []
    try:
        for number in range(400):
            for attempt in (lake.read("t/secret"), lake.write(f"t/new-{number}"), lake.keys("t", limit=1)):
                try:
                    seen.append(await attempt)
                except (StorageDenied, FileMissing, StorageUnavailable, FileExists) as refused:
                    seen.append(type(refused))
    finally:
        over.set()
        swapping.join()
    assert b"own" in seen and StorageDenied in seen
    assert SECRET not in seen
    assert lake.untouched() and os.listdir(lake.other) == ["secret"]


@pytest.mark.threat("LG-LOC-26")
async def test_random_trees_of_links_never_expose_or_change_outside_files(lake: Lake) -> None:
    """Random trees, with every operation at every path of them."""
    drawn = random.Random(20261121)
    for _ in range(30):
        paths = _tree(lake, drawn)
        for path in paths:
            for operation in (lake.read, lake.write, lake.delete, lake.keys):
                try:
                    result = await operation(path)
                except (StorageDenied, FileMissing, FileExists, StorageUnavailable):
                    continue
                assert result != SECRET
        await lake.purge("t")
        assert lake.untouched()
        assert sorted(os.listdir(lake.other)) == sorted(os.listdir(lake.outside)) == ["secret"]


def _tree(lake: Lake, drawn: random.Random) -> list[str]:
    """Fill `t` with files, directories, links and pipes. Return some paths in it, including paths through the links."""
    top = lake.mine / "t"
    folders = [top]
    top.mkdir(exist_ok=True)
    paths: list[str] = []
    for number in range(drawn.randint(5, 15)):
        at = drawn.choice(folders) / f"{number}"
        match drawn.randrange(5):
            case 0:
                at.mkdir()
                folders.append(at)
            case 1:
                at.write_bytes(b"own")
            case 2:
                at.symlink_to(drawn.choice([lake.other, lake.outside, lake.mine, top, Path("..")]))
            case 3:
                at.symlink_to(drawn.choice([lake.other / "secret", lake.outside / "secret", lake.other / "new"]))
            case _:
                os.link(drawn.choice([lake.other, lake.outside]) / "secret", at)
        path = str(at.relative_to(lake.mine))
        paths += [path, f"{path}/secret", f"{path}/other/secret", f"{path}/new/file"]
    drawn.shuffle(paths)
    return paths


@pytest.mark.threat("LG-LOC-26")
async def test_a_warehouse_in_a_directory_no_longer_allowed_is_unusable(lake: Lake) -> None:
    await lake.write("t/1.json")
    for directories in ((), (str(lake.outside),), (str(lake.mine),)):
        with pytest.raises(StorageEndpointRefused, match="LAKEGATE__STORAGE_LOCAL_DIRECTORIES"):
            await lake.opened(*directories).read(lake.profile, lake.access, lake.text("t/1.json"), max_bytes=9)


async def test_a_missing_allowed_directory_is_unavailable_and_not_empty(lake: Lake) -> None:
    await lake.write("t/1.json")
    away = lake.listed.with_name("away")
    lake.listed.rename(away)
    for attempt in (lake.keys("t"), lake.delete("t/1.json"), lake.read("t/1.json"), lake.write("t/2.json")):
        with pytest.raises(StorageUnavailable, match="does not exist"):
            await attempt
    assert not lake.listed.exists() and (away / "mine/t/1.json").exists()


async def test_overly_nested_directories_fail_a_listing_and_are_not_empty(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "MAX_DEPTH", 3)
    await lake.write("t/1/2/3/file")
    assert await lake.keys("t") == ["1/2/3/file"]
    await lake.write("t/1/2/3/4/file")
    with pytest.raises(StorageUnavailable, match="more than 3 levels deep"):
        await lake.keys("t")


async def test_file_names_that_are_not_text_are_listed_and_deleted(lake: Lake) -> None:
    (lake.mine / "t").mkdir()
    (lake.mine / "t" / os.fsdecode(b"\xff\n x")).write_bytes(b"")
    assert len(await lake.keys("t")) == 1
    await lake.purge("t")
    assert await lake.keys("t") == []


async def test_a_failed_write_leaves_no_partial_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageUnavailable):
        await lake.write("t/1.json")
    assert await lake.keys("t") == []


async def test_concurrent_deletions_of_a_directory_do_not_fail_writes_into_it(lake: Lake) -> None:
    async def replace_repeatedly(name: str) -> None:
        for number in range(60):
            await lake.write(f"t/deep/{name}-{number}")
            await lake.delete(f"t/deep/{name}-{number}")

    await asyncio.gather(*(replace_repeatedly(name) for name in "abcd"))
    assert await lake.keys("t") == []


async def test_a_credential_of_another_provider_opens_no_local_file(lake: Lake) -> None:
    keys = S3AccessKey(access_key_id="AK", secret_access_key="secret")
    with pytest.raises(TypeError):
        await lake.files.read(lake.profile, keys, lake.text("t/1.json"), max_bytes=9)
