# SPDX-License-Identifier: Apache-2.0
"""The files of a governed copy: delete those that its readers must not read any more.

Readers of a copy have keys for the whole location of the copy, and can list it. So a file that no snapshot contains is
readable too. The files of outdated snapshots are deleted first and the snapshots last: a run that is killed in between
leaves snapshots by which the next run finds the remaining files. Files of killed writes are found by listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any, Final

import msgspec
from pyspark.sql import SparkSession

from lakegate.spark.errors import PipelineError

_BATCH: Final = 500
_METADATA: Final = (".metadata.json", ".metadata.json.gz")


class Files(msgspec.Struct, frozen=True):
    """Locations of files by kind. They are deleted in this order: a deleted file is named only by later kinds."""

    data: frozenset[str] = frozenset()
    manifests: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Return the locations of all kinds."""
        return self.data | self.manifests | self.lists


class FilesMissing(PipelineError):
    """Files of the copy were deleted, so it cannot be read. A rewrite repairs it."""


class CopyFiles:
    """The table of a copy in Iceberg's Java library, loaded at the creation of the object."""

    def __init__(self, session: SparkSession, name: str) -> None:
        """Load the table. `name` is its quoted name in Spark SQL, in a catalog without a cache of tables."""
        # This binds the catalog to the session. The Java library would look for it in the session that ran last.
        session.table(name)
        self._iceberg: Any = session.sparkContext._jvm.org.apache.iceberg  # type: ignore[union-attr]  # it is running
        self._table: Any = self._iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)

    def remove(self, outdated: Sequence[int], *, written_before: float) -> None:
        """Delete the files that only the snapshots `outdated` contain, and stray files; then remove the snapshots.

        Stray files are those below the location of the copy that no snapshot contains. Those written after
        `written_before`, in seconds since 1970, are left: another run may be writing them.

        Raises:
            FilesMissing: a file of a snapshot that stays does not exist. Nothing was deleted.
            Py4JJavaError: a file cannot be read or deleted.
        """
        ids = set(outdated)
        listed = self._listed()
        snapshots = _elements(self._table.snapshots())
        kept = self._of([each for each in snapshots if each.snapshotId() not in ids], listed.keys())
        if not kept.all <= listed.keys():
            raise FilesMissing(f"files of the copy {self._table.name()} do not exist; run the copy again")
        # An earlier run may have deleted some of these files.
        old = self._of([each for each in snapshots if each.snapshotId() in ids], listed.keys())
        needed = kept.all | self._statistics(ids)
        strays = {each for each, written in listed.items() if written < written_before} - old.all
        for files in (strays, old.data, old.manifests, old.lists):
            self._delete((files & listed.keys()) - needed)
        self._remove_snapshots(ids)

    def _remove_snapshots(self, ids: set[int]) -> None:
        if ids:
            removal = self._table.expireSnapshots().cleanExpiredFiles(False)
            for id in ids:
                removal = removal.expireSnapshotId(id)
            removal.commit()

    def _of(self, snapshots: Sequence[Any], existing: Set[str]) -> Files:
        """Return the files of snapshots. Lists and manifests that are not among `existing` are named, and not read."""
        io = self._table.io()
        lists = {each.manifestListLocation(): each for each in snapshots}
        found = [manifest for path, each in lists.items() if path in existing for manifest in _manifests(each, io)]
        manifests = {each.path(): each for each in found}
        data = [file for path, each in manifests.items() if path in existing for file in self._paths(each, io)]
        return Files(frozenset(data), frozenset(manifests), frozenset(lists))

    def _paths(self, manifest: Any, io: Any) -> list[Any]:
        """Return the locations of the files that a manifest contains, without those that it only lists as deleted."""
        opened = self._iceberg.ManifestFiles.readPaths(manifest, io, self._table.specs())
        try:
            return _elements(opened)
        finally:
            opened.close()

    def _statistics(self, outdated: set[int]) -> frozenset[str]:
        files = [*self._table.statisticsFiles(), *self._table.partitionStatisticsFiles()]
        return frozenset(each.path() for each in files if each.snapshotId() not in outdated)

    def _listed(self) -> dict[str, float]:
        """Return the files below the location of the copy, except for its metadata files, with their time in seconds.

        Metadata files contain no rows, and the catalog needs them.
        """
        listed = self._table.io().listPrefix(self._table.location().rstrip("/") + "/")
        found = {each.location(): each.createdAtMillis() / 1000 for each in _elements(listed)}
        return {location: written for location, written in found.items() if not location.endswith(_METADATA)}

    def _delete(self, locations: Iterable[str]) -> None:
        ordered = sorted(locations)
        for first in range(0, len(ordered), _BATCH):
            self._table.io().deleteFiles(ordered[first : first + _BATCH])


def _manifests(snapshot: Any, io: Any) -> list[Any]:
    return _elements(snapshot.allManifests(io))


def _elements(iterable: Any) -> list[Any]:
    """Return the elements of a Java iterable."""
    return list(iterable.iterator())
