# SPDX-License-Identifier: Apache-2.0
"""Delete the files of a governed copy that its readers must not read any more, and decide when a copy must change.

A governed copy is a table with the rows and values that one user or role may see. Its readers have keys for the whole
location of the copy, and can list it. So they can also read a file that no snapshot contains. The files of outdated
snapshots are deleted first, and the snapshots last. If a run is killed in between, the next run finds the remaining
files by these snapshots. It finds the files of killed writes by a list of the location.

The records of a copy are in its properties and snapshots. Functions about them, and about the decisions that depend on
them, are pure.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence, Set
from typing import Any, Final

import msgspec
from pyspark.sql import SparkSession

from lakegate.restrictions.actions import Projection, without_salt
from lakegate.restrictions.literals import NestedField
from lakegate.spark.catalog_client import NO_NAMESPACE, NO_TABLE, Metadata, Snapshot
from lakegate.spark.config import CopyConfig, OnBehalfOf
from lakegate.spark.errors import GovernedReadRefused, PipelineError, RequestRefused
from lakegate.spark.governed import GovernedTable
from lakegate.spark.restrictions import Restrictions

_BATCH: Final = 500
_METADATA: Final = (".metadata.json", ".metadata.json.gz")


class Files(msgspec.Struct, frozen=True):
    """Locations of files by kind. They are deleted in this order, because only later kinds refer to a deleted file."""

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
    """The copy as a table of Iceberg's Java library. It is loaded when this object is created."""

    def __init__(self, session: SparkSession, name: str) -> None:
        """Load the table. `name` is its quoted name in Spark SQL, in a catalog without a cache of tables."""
        # `table` binds the catalog to this session. Otherwise the Java library would look for the catalog in the
        # session that ran last.
        session.table(name)
        self._iceberg: Any = session.sparkContext._jvm.org.apache.iceberg  # type: ignore[union-attr]  # it is running
        self._table: Any = self._iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)

    def remove(self, outdated: Sequence[int], *, written_before: float) -> None:
        """Delete the files that only the snapshots `outdated` contain, and stray files. Then remove these snapshots.

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
        # Only files that still exist: an earlier run may have deleted some files of these snapshots.
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
        """Return the files of snapshots. A manifest list or manifest that is not in `existing` is returned, but not
        read.
        """
        io = self._table.io()
        lists = {each.manifestListLocation(): each for each in snapshots}
        found = [manifest for path, each in lists.items() if path in existing for manifest in _manifests(each, io)]
        manifests = {each.path(): each for each in found}
        data = [file for path, each in manifests.items() if path in existing for file in self._paths(each, io)]
        return Files(frozenset(data), frozenset(manifests), frozenset(lists))

    def _paths(self, manifest: Any, io: Any) -> list[Any]:
        """Return the locations of the files that a manifest contains. Files that it lists as deleted are left out."""
        opened = self._iceberg.ManifestFiles.readPaths(manifest, io, self._table.specs())
        try:
            return _elements(opened)
        finally:
            opened.close()

    def _statistics(self, outdated: set[int]) -> frozenset[str]:
        files = [*self._table.statisticsFiles(), *self._table.partitionStatisticsFiles()]
        return frozenset(each.path() for each in files if each.snapshotId() not in outdated)

    def _listed(self) -> dict[str, float]:
        """Return {location: time of change in seconds} of the files below the location of the copy, without metadata
        files.

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


_FORM: Final = 1
"""The version of the compilers. A higher one rewrites all copies."""
_PREFIX: Final = "lakegate.copy."
SOURCE_ID, SOURCE, READER = f"{_PREFIX}source-table-id", f"{_PREFIX}source", f"{_PREFIX}reader"
SOURCE_SNAPSHOT, FINGERPRINT = f"{_PREFIX}source-snapshot", f"{_PREFIX}fingerprint"
PREVIOUS: Final = f"{_PREFIX}previous"
"""The snapshot of the copy that an append continues; `none` in a snapshot that replaces the whole copy."""
NONE: Final = "none"
REWRITING: Final = f"{_PREFIX}rewriting"
"""A property that a copy has from the beginning of a rewrite until the files before it are deleted."""
_KEEPS_ROWS: Final = frozenset({"append", "replace"})
#: Errors by which the gateway says that this user or role may not read the table: it is absent or invisible, the action
#: is forbidden, the user is deactivated, or the user may not act as the role. Outages, errors about the service, and
#: `ForbiddenException` (the service is not trusted to read a table with restrictions) have other types.
_ACCESS_ENDED: Final = frozenset(
    {
        NO_TABLE,
        NO_NAMESPACE,
        "NoSuchWarehouseException",
        "TableActionForbidden",
        "NamespaceActionForbidden",
        "WarehouseActionForbidden",
        "UserDeactivated",
        "AssumeRoleForbidden",
        "InvalidAssumeRoleId",
    }
)


class _Claims(msgspec.Struct):
    iss: str = ""
    sub: str = ""


def fingerprint(table: GovernedTable, user: OnBehalfOf) -> str:
    """Return a digest of everything on which the copy of a snapshot depends. Equal digests mean equal copies."""
    parts = (
        _FORM,
        table.metadata.table_uuid,
        table.metadata.schema.fields,
        table.restrictions.canonical(),
        reader_of(user),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def empty_fingerprint(config: CopyConfig) -> str:
    """Return the fingerprint of a copy whose reader may no longer read the source."""
    parts = (_FORM, "empty", config.source, reader_of(config.on_behalf_of))
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def access_ended(refused: RequestRefused) -> bool:
    """Return True if the refused load means that the reader may not read the table."""
    return refused.kind in _ACCESS_ENDED


def reader_of(user: OnBehalfOf) -> str:
    """Return a text that identifies the reader: the role, the user's name, or issuer and subject of a token."""
    if user.role is not None:
        return f"role:{user.role}"
    return f"user:{user.user}" if user.user else f"token:{_subject(user.token or '')}"


def _subject(token: str) -> str:
    """Return issuer and subject of a JWT, which the gateway has verified. Return an empty text for other tokens."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError):
        return ""
    return f"{claims.iss}~{claims.sub}"


def check_target(copy: Metadata, source: Metadata | None, config: CopyConfig) -> None:
    """Raise `GovernedReadRefused` unless the existing target is a copy of this source for this reader.

    The source counts as the same if its id or its name is equal: if another table took its name, the rows of that table
    replace those of the copy. `source` is None if the reader may not load it. The reader must be the same, because
    grants on the copy stay: their holders would see the rows of another principal.
    """
    same = source is not None and copy.properties.get(SOURCE_ID) == source.table_uuid
    if not same and copy.properties.get(SOURCE) != config.source:
        raise GovernedReadRefused(f"{config.target} exists and is no copy of {config.source}; choose another target")
    if copy.properties.get(READER) != reader_of(config.on_behalf_of):
        raise GovernedReadRefused(
            f"{config.target} is a copy for another user or role, whose readers keep their grants; choose another "
            "target, or drop the copy"
        )


def storable(restrictions: Restrictions, fields: tuple[NestedField, ...]) -> Restrictions:
    """Return the restrictions in the form for stored rows, for which there is no salt of one query."""
    required = {each.id for each in fields if each.required}
    masks = tuple(
        Projection(each.field_id, without_salt(each.action, required=each.field_id in required))
        for each in restrictions.masks
    )
    return Restrictions(row_filter=restrictions.row_filter, masks=masks)


def continued(copy: Metadata, mark: str) -> Snapshot | None:
    """Return the snapshot that wrote the copy's current rows. Return None if the copy must be rewritten.

    Snapshots of maintenance (`replace`) are skipped, because they keep the rows. The result is None if another writer
    changed the copy, if two runs appended at the same time, or if the fingerprint is not `mark`.
    """
    newest = _without_maintenance(copy, copy.current())
    if newest is None or newest.summary.get(FINGERPRINT) != mark:
        return None
    previous = newest.summary.get(PREVIOUS)
    if previous == NONE:
        return newest
    before = _without_maintenance(copy, copy.snapshot(newest.parent_snapshot_id))
    return newest if before is not None and previous == str(before.snapshot_id) else None


def _without_maintenance(table: Metadata, snapshot: Snapshot | None) -> Snapshot | None:
    while snapshot is not None and snapshot.operation == "replace" and FINGERPRINT not in snapshot.summary:
        snapshot = table.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def appended_since(source: Metadata, snapshot_id: str | None) -> Snapshot | None:
    """Return the snapshot with this id if all later snapshots of the source only append rows. Otherwise return None."""
    snapshot = source.current()
    while snapshot is not None and str(snapshot.snapshot_id) != snapshot_id:
        if snapshot.operation not in _KEEPS_ROWS:
            return None
        snapshot = source.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def outdated(copy: Metadata) -> list[int]:
    """Return the ids of all snapshots of the copy, except the last rewrite and later ones that lead to the current
    snapshot.
    """
    kept: set[int] = set()
    snapshot = copy.current()
    while snapshot is not None:
        kept.add(snapshot.snapshot_id)
        if snapshot.summary.get(PREVIOUS) == NONE:
            break
        snapshot = copy.snapshot(snapshot.parent_snapshot_id)
    return [each.snapshot_id for each in copy.snapshots if each.snapshot_id not in kept]
