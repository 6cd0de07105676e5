# SPDX-License-Identifier: Apache-2.0
"""Files of warehouses in a real HDFS, through the file client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hdfs_native import Client, WriteOptions

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
from gateway.storage.hdfs.profile import HdfsAccess, HdfsProfile
from gateway.storage.provider import ClientOptions, StorageClients
from gateway.storage.registry import open_clients
from tests.support.servers.hdfs_servers import Hdfs, running
from tests.support.stack.world import unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

SECRET = b"of another warehouse"


class Lake:
    """Two warehouses in an allowed directory; a secret lies in the second one and in a directory beside the first."""

    def __init__(self, server: Hdfs) -> None:
        self.server, self.client = server, Client(server.url())
        self.listed = f"/{unique('listed')}"
        self.mine, self.other, self.outside = f"{self.listed}/mine", f"{self.listed}/other", f"{self.listed}2"
        for folder in (self.other, self.outside):
            self.plant(f"{folder}/secret", SECRET)
        self.client.set_permission(self.listed, 0o750)
        self.profile = HdfsProfile(location=server.url(self.mine))
        self.access = HdfsAccess()
        self.opened: list[StorageClients] = []
        self.files = self.open(server.url(self.listed))

    def open(self, *roots: str, seconds: float = 20) -> Files:
        self.opened.append(open_clients(ClientOptions(rules=StorageRules(roots=roots), total_seconds=seconds)))
        return Files(self.opened[-1])

    def plant(self, path: str, data: bytes = b"planted") -> None:
        with self.client.create(path, WriteOptions(create_parent=True)) as file:
            file.write(data)

    def text(self, path: str) -> str:
        return self.server.url(f"{self.mine}/{path}")

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

    def everything(self) -> dict[str, int]:
        """Return the permissions of everything in the first warehouse by its path."""
        found = self.client.list_status(self.listed, True)
        return {each.path.removeprefix(self.mine): each.permission for each in found if each.path.startswith(self.mine)}

    def untouched(self) -> bool:
        secrets = [self.client.read(f"{folder}/secret").read() for folder in (self.other, self.outside)]
        return secrets == [SECRET, SECRET]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def lake(server: Hdfs) -> Iterator[Lake]:
    lake = Lake(server)
    yield lake
    for each in lake.opened:
        each.close()


async def test_written_files_are_read_listed_and_deleted_with_empty_directories(lake: Lake) -> None:
    await lake.write("ns/t/metadata/1.json", b"one" * 100_000)
    await lake.write("ns/t/data/part%201", b"")
    assert await lake.read("ns/t/metadata/1.json", max_bytes=300_000) == b"one" * 100_000
    assert await lake.read("ns/t/data/part%201") == b""
    assert await lake.keys("ns/t") == ["data/part%201", "metadata/1.json"]
    assert await lake.keys("ns/other") == []
    await lake.delete("ns/t/metadata/1.json", "ns/t/metadata/1.json", "ns/t/absent/2.json")
    assert await lake.keys("ns/t") == ["data/part%201"]
    assert "/ns/t/metadata" not in lake.everything()
    await lake.purge("ns/t")
    assert lake.everything().keys() == {""}
    for path in ("ns/t/metadata/1.json", "ns/t", "ns"):
        with pytest.raises(FileMissing):
            await lake.read(path)


async def test_new_files_have_the_permissions_of_the_allowed_directory(lake: Lake) -> None:
    await lake.write("t/1.json")
    assert lake.everything() == {"": 0o750, "/t": 0o750, "/t/1.json": 0o640}


async def test_a_file_is_never_overwritten(lake: Lake) -> None:
    await lake.write("t/1.json", b"first")
    for path in ("t/1.json", "t/1.json/below"):
        with pytest.raises(FileExists):
            await lake.write(path, b"second")
    assert await lake.read("t/1.json") == b"first"
    results = await asyncio.gather(*(lake.write("t/2.json", b"%d" % each) for each in range(8)), return_exceptions=True)
    assert [type(each) for each in results if each is not None] == [FileExists] * 7


async def test_a_file_above_the_size_limit_is_refused(lake: Lake) -> None:
    await lake.write("t/1.json", b"12345")
    assert await lake.read("t/1.json", max_bytes=5) == b"12345"
    with pytest.raises(FileTooLarge):
        await lake.read("t/1.json", max_bytes=4)


async def test_a_listing_returns_no_more_than_its_limit_and_no_directories(lake: Lake) -> None:
    for number in range(5):
        await lake.write(f"t/{number % 2}/{number}")
    lake.client.mkdirs(f"{lake.mine}/empty/deep", 0o755, True)
    assert len(await lake.keys("t", limit=3)) == 3
    assert not await lake.files.is_empty(lake.profile, lake.access, lake.location("t"))
    assert await lake.files.is_empty(lake.profile, lake.access, lake.location("empty"))


async def test_names_that_no_location_allows_are_listed_and_deleted(lake: Lake) -> None:
    for name in ("a b", "a*", "100%", "a\\b", "é?#"):
        lake.plant(f"{lake.mine}/t/{name}")
    assert len(await lake.keys("t")) == 5
    await lake.purge("t")
    assert await lake.keys("t") == []


@pytest.mark.threat("LG-LOC-31")
async def test_only_files_below_the_warehouse_are_touched(lake: Lake) -> None:
    for path in ("../other/secret", "t/../../other/secret", "%2e%2e/other/secret"):
        with pytest.raises(InvalidLocation):
            await lake.read(path)
    foreign = (lake.server.url(f"{lake.other}/secret"), lake.server.url(f"{lake.mine}2/x"), f"hdfs://nn{lake.mine}/x")
    for text in (*foreign, lake.server.url("/.reserved/.inodes/16385"), f"file://{lake.mine}/x"):
        with pytest.raises(InvalidLocation):
            await lake.files.delete(lake.profile, lake.access, [text])
    prefix = lake.location("t").key_prefix
    with pytest.raises(InvalidLocation):
        await lake.files.delete_below(lake.profile, lake.access, lake.location("t"), [f"{lake.other[1:]}/secret"])
    for crooked in (f"{prefix}../../other/secret", f"{prefix}/x", f"{prefix}.reserved/x"):
        with pytest.raises(StorageDenied):
            await lake.files.delete_below(lake.profile, lake.access, lake.location("t"), [crooked])
    assert lake.untouched()


@pytest.mark.threat("LG-LOC-31")
async def test_a_file_is_not_reached_by_its_number(lake: Lake) -> None:
    """HDFS itself resolves `/.reserved/.inodes/<number>` to any file, so no location may contain it."""
    lake.plant(f"{lake.mine}/x")
    numbered = [f"/.reserved/.inodes/{number}" for number in range(16385, 16700)]
    assert any(_read(lake.client, path) == SECRET for path in numbered)
    with pytest.raises(InvalidLocation, match="special meaning"):
        HdfsProfile(location=lake.server.url("/.reserved/.inodes/16385"))


def _read(client: Client, path: str) -> bytes | None:
    try:
        return client.read(path).read()
    except OSError:
        return None


@pytest.mark.threat("LG-LOC-31")
async def test_a_warehouse_in_a_directory_no_longer_allowed_is_unusable(lake: Lake) -> None:
    await lake.write("t/1.json")
    url = lake.server.url
    for roots in ((), (url(lake.outside),), (url(lake.mine),), (f"hdfs://localhost{lake.listed}",)):
        with pytest.raises(StorageEndpointRefused, match="LAKEGATE__STORAGE_HDFS_ROOTS"):
            await lake.open(*roots).read(lake.profile, lake.access, lake.text("t/1.json"), max_bytes=9)


async def test_a_missing_allowed_directory_is_unavailable_and_not_empty(lake: Lake) -> None:
    await lake.write("t/1.json")
    lake.client.rename(lake.listed, f"{lake.listed}-away", False)
    for attempt in (lake.keys("t"), lake.delete("t/1.json"), lake.read("t/1.json"), lake.write("t/2.json")):
        with pytest.raises(StorageUnavailable, match="does not exist"):
            await attempt
    assert lake.client.get_file_info(f"{lake.listed}-away/mine/t/1.json").length == 4


@pytest.mark.threat("LG-LOC-31")
async def test_names_with_a_meaning_in_hdfs_reach_no_snapshot(lake: Lake) -> None:
    for name in (".snapshot", ".Trash", ".reserved"):
        with pytest.raises(InvalidLocation, match="special meaning"):
            await lake.read(f"t/{name}/x")


async def test_a_directory_deleted_during_a_listing_does_not_look_empty(lake: Lake) -> None:
    for number in range(5):
        await lake.write(f"t/{number}/1")

    async def replace() -> None:
        for number in range(20):
            await lake.write(f"t/a{number}/1")
            await lake.delete(f"t/a{number}/1")

    replacing = asyncio.create_task(replace())
    while not replacing.done():
        try:
            assert not await lake.files.is_empty(lake.profile, lake.access, lake.location("t"))
        except StorageUnavailable:
            continue
    await replacing


async def test_concurrent_deletions_of_a_directory_do_not_fail_writes_into_it(lake: Lake) -> None:
    async def replace_repeatedly(name: str) -> None:
        for number in range(5):
            await lake.write(f"t/deep/{name}-{number}")
            await lake.delete(f"t/deep/{name}-{number}")

    await asyncio.gather(*(replace_repeatedly(name) for name in "abcd"))
    assert await lake.keys("t") == []
