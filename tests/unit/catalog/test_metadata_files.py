# SPDX-License-Identifier: Apache-2.0
"""Metadata files that stay: those that a pointer names or may name, and no others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from gateway.access.dependency_errors import CommitUnknown
from gateway.features.metadata.metadata_files import MetadataFiles, own_files
from gateway.features.tables.commit_retry import CommitConflict
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.errors import CommitStateUnknownException, NotFoundException
from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.wire import CreateTableRequest, decode
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.errors import FileMissing, StorageUnavailable
from gateway.storage.s3.profile import SCHEME
from tests.support.door import world
from tests.support.kits import kit_of

PROFILE = b'{"type": "s3", "bucket": "lake", "region": "us-east-1"}'
WAREHOUSE = type(world.warehouse_row)(
    **{
        **{name: getattr(world.warehouse_row, name) for name in world.warehouse_row.__struct_fields__},
        "profile": PROFILE,
    }
)


def table(number: int) -> TableMetadata:
    """Return the metadata of a new table."""
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    return new_table_metadata(
        decode(json.dumps(body).encode(), CreateTableRequest),
        table_uuid=UUID(int=number),
        location=f"s3://lake/t{number}",
        now_ms=1,
    )


class Store:
    """Files in memory; writing the `fails_at`th of them fails."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.files: dict[str, bytes] = {}
        self.read_with: list[object] = []
        self._writes = 0
        self._fails_at = fails_at

    async def write(self, profile: Any, credential: Any, location: str, data: bytes) -> None:
        self._writes += 1
        if self._writes == self._fails_at:
            raise StorageUnavailable("away")
        self.files[location] = data

    async def read(self, profile: Any, credential: Any, location: str, *, max_bytes: int) -> bytes:
        self.read_with.append(credential)
        if location not in self.files:
            raise FileMissing("none")
        return self.files[location]

    async def delete(self, profile: Any, credential: Any, locations: Sequence[str]) -> None:
        for location in locations:
            self.files.pop(location, None)


class Pending:
    """Cleanup records in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.noted: set[str] = set()

    async def note(self, warehouse_id: UUID, locations: Sequence[str]) -> None:
        assert not set(locations) & set(self._store.files), (
            "cleanup records must be stored before the files are written"
        )
        self.noted |= set(locations)

    async def forget(self, locations: Sequence[str]) -> None:
        assert not set(locations) & set(self._store.files), "cleanup records must be deleted after the files"
        self.noted -= set(locations)


class Keys:
    """The warehouse's own credential."""

    async def of(self, warehouse: Any) -> object:
        return "own"


class Narrowing:
    """A vendor that records the location of each credential."""

    async def narrowed(self, *, location: Location, level: AccessLevel, credential: object, **_: Any) -> str:
        assert credential == "own"
        return f"{level.value} {location.prefix_text}"


def files(store: Store, pending: Pending | None = None) -> MetadataFiles:
    return MetadataFiles(
        kit_of(files=store, storage=Keys(), vendor=Narrowing(), pending_files=pending or Pending(store))
    )


async def test_files_of_a_successful_commit_stay_in_document_order() -> None:
    store = Store()
    async with files(store).write_all(WAREHOUSE, [(table(1), None), (table(2), "s3://lake/t2/00004-x.json")]) as done:
        locations = [location for location, _ in done]
    assert locations[0].startswith("s3://lake/t1/metadata/00000-")
    assert locations[1].startswith("s3://lake/t2/metadata/00005-")
    assert store.files == dict(done)


@pytest.mark.parametrize("failure", [CommitConflict(), ValueError("an arbitrary error"), KeyboardInterrupt()])
async def test_a_failed_commit_leaves_no_metadata_file(failure: BaseException) -> None:
    store = Store()
    pending = Pending(store)
    with pytest.raises(type(failure)):
        async with files(store, pending).write_all(WAREHOUSE, [(table(1), None), (table(2), None)]):
            assert pending.noted == set(store.files)
            raise failure
    assert store.files == {}
    assert pending.noted == set()


async def test_a_file_that_could_not_be_deleted_stays_recorded_for_cleanup() -> None:
    store = Store()
    pending = Pending(store)

    async def away(profile: Any, credential: Any, locations: Sequence[str]) -> None:
        raise StorageUnavailable("away")

    store.delete = away  # type: ignore[method-assign]  # the one answer this test is about
    with pytest.raises(CommitConflict):
        async with files(store, pending).write_one(WAREHOUSE, table(1), None):
            raise CommitConflict
    assert pending.noted == set(store.files) != set()


def test_only_files_below_the_table_location_belong_to_it() -> None:
    own, other = "s3://lake/t1/metadata/1.metadata.json", "s3://lake/t11/metadata/1.metadata.json"
    assert own_files(SCHEME.parse("s3://lake/t1", escapes_known=True), [own, other, "nonsense"]) == [own]


async def test_the_cleanup_record_of_a_deleted_file_is_removed() -> None:
    store = Store()
    pending = Pending(store)
    old = "s3://lake/t1/metadata/1.metadata.json"
    store.files, pending.noted = {old: b""}, {old}
    await files(store, pending).delete_unnamed(WAREHOUSE, [old])
    assert store.files == {}
    assert pending.noted == set()


async def test_a_failed_write_deletes_the_other_files_of_the_commit() -> None:
    store = Store(fails_at=2)
    with pytest.raises(StorageUnavailable):
        async with files(store).write_all(WAREHOUSE, [(table(number), None) for number in (1, 2, 3)]):
            raise AssertionError("the body must not run")
    assert store.files == {}


@pytest.mark.parametrize("unknown", [CommitUnknown("?"), CommitStateUnknownException("?")])
async def test_files_that_a_metadata_pointer_may_name_stay(unknown: Exception) -> None:
    store = Store()
    with pytest.raises(type(unknown)):
        async with files(store).write_one(WAREHOUSE, table(1), None):
            raise unknown
    assert len(store.files) == 1


FILE = SCHEME.parse("s3://lake/t1/metadata/1.metadata.json")
FOLDER = SCHEME.parse("s3://lake/t1/metadata")


async def test_the_error_of_a_missing_file_names_its_location() -> None:
    with pytest.raises(NotFoundException, match=f"Failed to open input stream for file: {FILE.text}"):
        await files(Store()).read(WAREHOUSE, FILE, FOLDER)


@pytest.mark.threat("LG-LOC-24")
async def test_a_client_supplied_file_is_read_with_a_credential_for_its_folder() -> None:
    """The credential bounds the files that one read can reach (LG-LOC-24)."""
    store = Store()
    store.files[FILE.text] = b"{}"
    assert await files(store).read(WAREHOUSE, FILE, FOLDER) == b"{}"
    assert store.read_with == ["read s3://lake/t1/metadata/"]
