# SPDX-License-Identifier: Apache-2.0
"""The files that are deleted after a rewrite of a governed copy, with a table in place of Iceberg's Java library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from lakegate.spark.jobs.copy_files import CopyFiles, FilesMissing

AT = "s3://lake/copy/"
#: The data files of each manifest. Snapshot 2 replaced snapshot 1; they share no file. Snapshot 3 appended to 2.
MANIFESTS: Mapping[str, Sequence[str]] = {"m1": ["a", "b"], "m2": ["c"], "m3": ["d"]}
SNAPSHOTS: Mapping[int, Sequence[str]] = {1: ["m1"], 2: ["m2"], 3: ["m2", "m3"]}


class Elements(list[Any]):
    """A Java iterable."""

    def iterator(self) -> Iterator[Any]:
        return iter(self)

    def close(self) -> None:
        """Close nothing."""


@dataclass
class Table:
    """A table with its files and their ages. It records what is deleted, in order, and reads only existing files."""

    files: dict[str, float] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    committed: bool = False

    def name(self) -> str:
        return "copy"

    def location(self) -> str:
        return AT

    def io(self) -> Table:
        return self

    def specs(self) -> dict[int, object]:
        return {}

    def snapshots(self) -> Elements:
        return Elements(
            SimpleNamespace(
                snapshotId=lambda id=id: id,
                manifestListLocation=lambda id=id: f"{AT}l{id}",
                allManifests=lambda _, id=id: self.manifests(id),
            )
            for id in SNAPSHOTS
        )

    def manifests(self, id: int) -> Elements:
        assert f"{AT}l{id}" in self.files
        return Elements(SimpleNamespace(path=lambda each=each: AT + each) for each in SNAPSHOTS[id])

    def readPaths(self, manifest: Any, io: Table, specs: object) -> Elements:
        assert manifest.path() in self.files
        return Elements(AT + each for each in MANIFESTS[manifest.path().removeprefix(AT)])

    def statisticsFiles(self) -> list[Any]:
        return [SimpleNamespace(path=lambda id=id: f"{AT}s{id}", snapshotId=lambda id=id: id) for id in SNAPSHOTS]

    def partitionStatisticsFiles(self) -> list[Any]:
        return []

    def listPrefix(self, prefix: str) -> Elements:
        assert prefix == AT
        return Elements(
            SimpleNamespace(location=lambda path=path: path, createdAtMillis=lambda written=written: written * 1000)
            for path, written in self.files.items()
        )

    def deleteFiles(self, paths: Sequence[str]) -> None:
        self.deleted.extend(path.removeprefix(AT) for path in paths)

    def expireSnapshots(self) -> Table:
        return self

    def cleanExpiredFiles(self, clean: bool) -> Table:
        assert not clean
        return self

    def expireSnapshotId(self, id: int) -> Table:
        self.removed.append(id)
        return self

    def commit(self) -> None:
        assert self.deleted, "files are deleted before their snapshots are removed"
        self.committed = True


NAMES = ("l1", "l2", "l3", "m1", "m2", "m3", "a", "b", "c", "d", "s1", "s2", "s3", "x.metadata.json")


def table(*without: str, **more: float) -> tuple[Table, CopyFiles]:
    """Return a table with all files, written at second 10, except for some, and with further ones."""
    files = {AT + each: 10.0 for each in NAMES if each not in without}
    found = Table(files | {AT + name: written for name, written in more.items()})
    copy = object.__new__(CopyFiles)
    copy._table, copy._iceberg = found, SimpleNamespace(ManifestFiles=found)
    return found, copy


def test_files_of_outdated_snapshots_and_strays_are_deleted_in_order() -> None:
    found, copy = table(stray=5.0, newer=30.0)
    copy.remove([1], written_before=20.0)
    assert found.deleted == ["s1", "stray", "a", "b", "m1", "l1"]
    assert (found.removed, found.committed) == ([1], True)


@pytest.mark.parametrize("gone", [["a"], ["a", "b", "m1"], ["a", "b", "m1", "l1"]])
def test_a_killed_removal_is_continued(gone: list[str]) -> None:
    found, copy = table(*gone)
    copy.remove([1], written_before=20.0)
    assert found.deleted == [each for each in ("s1", "a", "b", "m1", "l1") if each not in gone]
    assert found.committed


@pytest.mark.parametrize("gone", ["c", "m2", "l2", "d", "m3", "l3"])
def test_nothing_is_deleted_if_a_file_of_the_copy_is_missing(gone: str) -> None:
    found, copy = table(gone)
    with pytest.raises(FilesMissing):
        copy.remove([1], written_before=20.0)
    assert not found.deleted and not found.committed


def test_strays_are_deleted_without_outdated_snapshots() -> None:
    found, copy = table(stray=5.0)
    copy.remove([], written_before=20.0)
    assert (found.deleted, found.removed, found.committed) == (["stray"], [], False)
