# SPDX-License-Identifier: Apache-2.0
"""Commits: requirements, updates in order, and the rules the result must keep. Pure; never changes its input.

The order (requirements first, then updates, then build) and the rules follow the reference implementation of the
protocol; where ours are stricter the update's function says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.iceberg.applying import content, structure, view_builder
from gateway.iceberg.applying.builder import TableBuilder
from gateway.iceberg.applying.view_builder import ViewBuilder
from gateway.iceberg.errors import TooManyUpdatesInCommit
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
"""Updates one commit may hold; engines send a handful, an expiry of snapshots one per table."""

DEFAULT_CREATE_FORMAT_VERSION: Final = 2

# Any: the value type of each entry is tied to its key, which a mapping cannot say; the test suite checks every pair.
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
    """What a commit makes of a table.

    Without an effective change `metadata` is the base itself and no file is to be written. `expired_metadata_files` are
    the metadata files that fell out of the log, oldest first, unless the table's properties keep them
    (`write.metadata.delete-after-commit.enabled`: true where it is not set, as in the reference system, because nothing
    refers to such a file any more; engines assume false only because they are not the ones to delete it).
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
) -> CommitOutcome:
    """Apply a commit to a table; `base` None creates it (only `assert-create` is then allowed).

    `base_location` is the metadata file `base` was read from. Raises `CommitFailedException` (409) when a requirement
    does not hold, `RetryableValidation` (409) when the commit was overtaken, and errors of status 400 for updates that
    are not legal. A create commit's location, UUID and properties are the client's: the caller checks them.
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
    for index, update in enumerate(updates):
        _TABLE_UPDATES[type(update)](builder, update, f"$.updates[{index}]")
    if base is not None and not builder.changed:
        return CommitOutcome(metadata=base, changed=False)
    metadata, trimmed = builder.finish(base_location)
    delete = flag(metadata.properties, DELETE_AFTER_COMMIT, default=True)
    return CommitOutcome(metadata=metadata, changed=True, expired_metadata_files=trimmed if delete else ())


class ViewCommitOutcome(Struct, frozen=True, kw_only=True):
    """What a commit makes of a view; without an effective change `metadata` is the base itself."""

    metadata: ViewMetadata
    changed: bool


def commit_view(
    base: ViewMetadata,
    requirements: Sequence[ViewRequirement],
    updates: Sequence[ViewUpdate],
    *,
    now_ms: int,
) -> ViewCommitOutcome:
    """Apply a commit to a view.

    Raises `CommitFailedException` (409) when the view is not the one the client means, and errors of status 400 for
    updates that are not legal. A new location is the client's: the caller checks it.
    """
    _refuse_too_many(updates)
    for requirement in requirements:
        requirement.check_view(base.view_uuid)
    builder = ViewBuilder.on(base, now_ms=now_ms)
    for index, update in enumerate(updates):
        _VIEW_UPDATES[type(update)](builder, update, f"$.updates[{index}]")
    if not builder.changed:
        return ViewCommitOutcome(metadata=base, changed=False)
    return ViewCommitOutcome(metadata=builder.finish(), changed=True)


def _refuse_too_many(updates: Sequence[TableUpdate | ViewUpdate]) -> None:
    if len(updates) > MAX_UPDATES:
        raise TooManyUpdatesInCommit(f"A commit may hold at most {MAX_UPDATES} updates, this one has {len(updates)}")
