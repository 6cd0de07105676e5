# SPDX-License-Identifier: Apache-2.0
"""Commits: check the requirements, apply the updates in order, validate the result. Pure; the input is not changed.

The rules and their order (requirements, updates, build) are those of the Java reference implementation. The docstring
of a function with a stricter rule gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.iceberg.applying import content, structure, view_builder
from gateway.iceberg.applying.builder import TableBuilder
from gateway.iceberg.applying.view_builder import ViewBuilder
from gateway.iceberg.errors import TooManyUpdatesInCommit
from gateway.iceberg.limits import MAX_COMPARISONS, Limits, refuse_growth
from gateway.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from gateway.iceberg.properties import DELETE_AFTER_COMMIT, flag
from gateway.iceberg.requirements import (
    TableRequirement,
    ViewRequirement,
    check_create_requirements,
    check_requirements,
)
from gateway.iceberg.updates import (
    AddEncryptionKey,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AddSpec,
    AddViewVersion,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetCurrentViewVersion,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
    ViewUpdate,
)
from gateway.iceberg.views import ViewMetadata

MAX_UPDATES: Final = 10_000
"""Maximum number of updates in one commit. Engines send few; some clients send one update per expired snapshot."""

DEFAULT_CREATE_FORMAT_VERSION: Final = 2

_LOOKS_AT: Final[Mapping[type, str]] = {
    AddSchema: "schemas",
    RemoveSchemas: "schemas",
    AddSpec: "specs",
    RemovePartitionSpecs: "specs",
    AddSortOrder: "orders",
    RemoveSnapshots: "snapshots",
    SetStatistics: "statistics",
    RemoveStatistics: "statistics",
    SetPartitionStatistics: "partition_statistics",
    RemovePartitionStatistics: "partition_statistics",
    AddEncryptionKey: "encryption_keys",
    RemoveEncryptionKey: "encryption_keys",
    AddViewVersion: "versions",
}
"""The array of the builder that each kind of update scans completely."""

# Any: the parameter type of each function depends on its key, which Mapping cannot express. Tests check every pair.
_TABLE_UPDATES: Final[Mapping[type, Callable[[TableBuilder, Any, str], None]]] = {
    AssignUuid: structure.assign_uuid,
    UpgradeFormatVersion: structure.upgrade_format_version,
    SetLocation: structure.set_location,
    AddSchema: structure.add_schema,
    SetCurrentSchema: structure.set_current_schema,
    AddSpec: structure.add_spec,
    SetDefaultSpec: structure.set_default_spec,
    AddSortOrder: structure.add_sort_order,
    SetDefaultSortOrder: structure.set_default_sort_order,
    RemovePartitionSpecs: structure.remove_partition_specs,
    RemoveSchemas: structure.remove_schemas,
    AddSnapshot: content.add_snapshot,
    SetSnapshotRef: content.set_snapshot_ref,
    RemoveSnapshots: content.remove_snapshots,
    RemoveSnapshotRef: content.remove_snapshot_ref,
    SetStatistics: content.set_statistics,
    RemoveStatistics: content.remove_statistics,
    SetPartitionStatistics: content.set_partition_statistics,
    RemovePartitionStatistics: content.remove_partition_statistics,
    SetProperties: content.set_properties,
    RemoveProperties: content.remove_properties,
    AddEncryptionKey: content.add_encryption_key,
    RemoveEncryptionKey: content.remove_encryption_key,
}

_VIEW_UPDATES: Final[Mapping[type, Callable[[ViewBuilder, Any, str], None]]] = {
    AssignUuid: view_builder.assign_uuid,
    UpgradeFormatVersion: view_builder.upgrade_format_version,
    SetLocation: view_builder.set_location,
    SetProperties: view_builder.set_properties,
    RemoveProperties: view_builder.remove_properties,
    AddSchema: view_builder.add_schema,
    AddViewVersion: view_builder.add_view_version,
    SetCurrentViewVersion: view_builder.set_current_view_version,
}


class CommitOutcome(Struct, frozen=True, kw_only=True):
    """The result of a table commit.

    If nothing changed, `changed` is False, `metadata` is the base object, and no file must be written.
    `expired_metadata_files` are the metadata files that the log no longer names, oldest first. The list is empty if
    `write.metadata.delete-after-commit.enabled` is false. The default of this property is true here, because nothing
    refers to such a file any more and the catalog deletes it. Engines have the default false, because they do not
    delete it.
    """

    metadata: TableMetadata
    changed: bool
    expired_metadata_files: tuple[str, ...] = ()


def commit_table(
    base: TableMetadata | None,
    base_location: str | None,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    *,
    now_ms: int,
    allowed_format_versions: frozenset[int] = SUPPORTED_FORMAT_VERSIONS,
    default_format_version: int = DEFAULT_CREATE_FORMAT_VERSION,
    limits: Limits | None = None,
) -> CommitOutcome:
    """Apply a commit to a table, or create the table if `base` is None.

    A create commit must have the requirement `assert-create` and no other kind. `base_location` is the metadata file of
    `base`. `now_ms` is in milliseconds since the epoch.

    Raises `CommitFailedException` (409) if a requirement does not hold, and `RetryableValidation` (409) if a concurrent
    commit made the updates invalid. Raises `FailedToSetProperties` (409) for unsupported properties. Raises errors of
    status 400 for updates that are not allowed, among them `MetadataTooLarge` and `TooManyUpdatesInCommit`. The caller
    must check the location, UUID and properties of a create commit: they come from the client.
    """
    _refuse_too_many(updates)
    if base is None:
        check_create_requirements(requirements)
        version = next((u.format_version for u in updates if isinstance(u, UpgradeFormatVersion)), None)
        version = default_format_version if version is None else version
        structure.check_format_version(version, allowed_format_versions)
        builder = TableBuilder.empty(format_version=version, now_ms=now_ms, allowed=allowed_format_versions)
    else:
        check_requirements(base, requirements)
        builder = TableBuilder.on(base, now_ms=now_ms, allowed=allowed_format_versions)
    for at, update in _steps(updates, builder):
        _TABLE_UPDATES[type(update)](builder, update, at)
    if base is not None and not builder.changed:
        return CommitOutcome(metadata=base, changed=False)
    metadata, trimmed = builder.finish(base_location)
    refuse_growth(limits or Limits(), metadata.measured, None if base is None else base.measured)
    delete = flag(metadata.properties, DELETE_AFTER_COMMIT, default=True)
    return CommitOutcome(metadata=metadata, changed=True, expired_metadata_files=trimmed if delete else ())


class ViewCommitOutcome(Struct, frozen=True, kw_only=True):
    """The result of a view commit. If nothing changed, `metadata` is the base object."""

    metadata: ViewMetadata
    changed: bool


def commit_view(
    base: ViewMetadata,
    requirements: Sequence[ViewRequirement],
    updates: Sequence[ViewUpdate],
    *,
    now_ms: int,
    limits: Limits | None = None,
) -> ViewCommitOutcome:
    """Apply a commit to a view. `now_ms` is in milliseconds since the epoch.

    Raises `CommitFailedException` (409) if the UUID in a requirement is not that of the view. Raises errors of status
    400 for updates that are not allowed. The caller must check a new location: it comes from the client.
    """
    _refuse_too_many(updates)
    for requirement in requirements:
        requirement.check_view(base.view_uuid)
    builder = ViewBuilder.on(base, now_ms=now_ms)
    for at, update in _steps(updates, builder):
        _VIEW_UPDATES[type(update)](builder, update, at)
    if not builder.changed:
        return ViewCommitOutcome(metadata=base, changed=False)
    metadata = builder.finish()
    refuse_growth(limits or Limits(), metadata.measured, base.measured)
    return ViewCommitOutcome(metadata=metadata, changed=True)


def _steps(
    updates: Sequence[TableUpdate | ViewUpdate], builder: TableBuilder | ViewBuilder
) -> Iterator[tuple[str, TableUpdate | ViewUpdate]]:
    """Yield each update with its JSON path in the request. The caller applies an update before it takes the next one.

    Older clients send one update per expired snapshot. Consecutive ones are merged, because each would scan all
    snapshots. Raises `TooManyUpdatesInCommit` if the updates together would scan more than `MAX_COMPARISONS` entries.
    """
    looked_at = index = 0
    while index < len(updates):
        update, at = updates[index], f"$.updates[{index}]"
        index += 1
        if isinstance(update, RemoveSnapshots):
            ids = [*update.snapshot_ids]
            while index < len(updates) and isinstance(following := updates[index], RemoveSnapshots):
                ids.extend(following.snapshot_ids)
                index += 1
            update = RemoveSnapshots(snapshot_ids=tuple(ids))
        if (array := _LOOKS_AT.get(type(update))) is not None:
            looked_at += len(getattr(builder, array))
            if looked_at > MAX_COMPARISONS:
                raise TooManyUpdatesInCommit(
                    f"The updates up to {at} would compare more than {MAX_COMPARISONS} entries. Send them in several "
                    "commits."
                )
        yield at, update


def _refuse_too_many(updates: Sequence[TableUpdate | ViewUpdate]) -> None:
    if len(updates) > MAX_UPDATES:
        raise TooManyUpdatesInCommit(
            f"A commit must have at most {MAX_UPDATES} updates; this one has {len(updates)}. Send them in several "
            "commits."
        )
