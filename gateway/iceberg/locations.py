# SPDX-License-Identifier: Apache-2.0
"""Collect all locations in a document or commit. Callers check that they are inside of the table's own prefix.

Vended credentials, and the catalog's own writes and purges, follow these locations. An unchecked one would give access
outside of the prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gateway.iceberg import codec
from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.snapshots import PartitionStatisticsFile, Snapshot, StatisticsFile
from gateway.iceberg.updates import (
    AddSnapshot,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
    TableUpdate,
    ViewUpdate,
)

PATH_PROPERTIES: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties with a location for new files. The last two are old names that engines still use."""


class LocationSource(NamedTuple):
    """A location and its source for messages: the name of a property or a path in the document."""

    source: str
    location: str


def location_properties(
    source: TableMetadata | Mapping[str, str] | Sequence[TableUpdate | ViewUpdate],
) -> tuple[LocationSource, ...]:
    """Return the path properties of a document, of plain properties, or of a commit's `set-properties` updates."""
    if isinstance(source, TableMetadata):
        return tuple(_path_properties(source.properties))
    if isinstance(source, Mapping):
        return tuple(_path_properties(source))
    return tuple(location for u in source if isinstance(u, SetProperties) for location in _path_properties(u.updates))


def inner_locations(metadata: TableMetadata) -> tuple[LocationSource, ...]:
    """Return all locations inside a document, without the document's own `location`.

    They are in the metadata log, manifest lists, manifests, statistics and path properties. Raises
    `BadRequestException` for a malformed part.
    """
    locations = [*_path_properties(metadata.properties)]
    for i, entry in enumerate(metadata.metadata_log):
        locations.append(LocationSource(f"metadata-log[{i}].metadata-file", entry.metadata_file))
    for i, snapshot in enumerate(metadata.snapshots):
        locations.extend(_snapshot_places(snapshot, f"snapshots[{i}]"))
    for i, file in enumerate(metadata.statistics):
        locations.append(LocationSource(f"statistics[{i}].statistics-path", file.statistics_path))
    for i, partition_file in enumerate(metadata.partition_statistics):
        locations.append(LocationSource(f"partition-statistics[{i}].statistics-path", partition_file.statistics_path))
    return tuple(locations)


def update_locations(updates: Sequence[TableUpdate | ViewUpdate]) -> tuple[LocationSource, ...]:
    """Return all locations that a commit adds.

    They are in `set-location`, path properties, manifest lists, manifests and statistics files. Raises
    `BadRequestException` if a document inside an update is malformed.
    """
    locations: list[LocationSource] = []
    for i, update in enumerate(updates):
        at = f"updates[{i}]"
        match update:
            case SetLocation():
                locations.append(LocationSource(f"{at}.location", update.location))
            case SetProperties():
                locations.extend(_path_properties(update.updates))
            case AddSnapshot():
                snapshot = Snapshot.of(codec.canonical_object(update.snapshot), at=f"$.{at}.snapshot")
                locations.extend(_snapshot_places(snapshot, f"{at}.snapshot"))
            case SetStatistics():
                file = StatisticsFile.of(codec.canonical_object(update.statistics), at=f"$.{at}.statistics")
                locations.append(LocationSource(f"{at}.statistics.statistics-path", file.statistics_path))
            case SetPartitionStatistics():
                where = f"{at}.partition-statistics"
                partition = PartitionStatisticsFile.of(
                    codec.canonical_object(update.partition_statistics), at=f"$.{where}"
                )
                locations.append(LocationSource(f"{where}.statistics-path", partition.statistics_path))
            case _:
                pass
    return tuple(locations)


def _path_properties(properties: Mapping[str, str]) -> Iterator[LocationSource]:
    for name in PATH_PROPERTIES:
        if name in properties:
            yield LocationSource(name, properties[name])


def _snapshot_places(snapshot: Snapshot, at: str) -> Iterator[LocationSource]:
    if snapshot.manifest_list is not None:
        yield LocationSource(f"{at}.manifest-list", snapshot.manifest_list)
    for i, manifest in enumerate(snapshot.manifests or ()):
        yield LocationSource(f"{at}.manifests[{i}]", manifest)
