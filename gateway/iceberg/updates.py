# SPDX-License-Identifier: Apache-2.0
"""Updates of a commit: one struct per `action`, for tables and views.

Unknown members of an update are ignored, as in the reference implementation; an unknown action is rejected. The
documents inside (schemas, snapshots, …) stay JSON with their unknown members. The package `applying` parses them.
"""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

import msgspec
from msgspec import Raw, Struct

from gateway.iceberg.codec import Long
from gateway.iceberg.snapshots import Positive, RefType
from lakegate.restrictions.literals import Int

LAST_ADDED: Final = -1
"""The id -1: the object of this kind that the same commit added last."""


class _Update(
    Struct,
    frozen=True,
    rename="kebab",
    kw_only=True,
    omit_defaults=True,
    tag_field="action",
):
    """Base of all updates. Unknown members are ignored."""


class AssignUuid(_Update, frozen=True, tag="assign-uuid"):
    """Set the UUID, at creation only."""

    uuid: str


class UpgradeFormatVersion(_Update, frozen=True, tag="upgrade-format-version"):
    """Set a later format version."""

    format_version: Int


class AddSchema(_Update, frozen=True, tag="add-schema"):
    """Add a schema. The client's `schema-id` and `last-column-id` are ignored."""

    schema: Raw
    last_column_id: Int | None = None


class SetCurrentSchema(_Update, frozen=True, tag="set-current-schema"):
    """Make a schema the current one."""

    schema_id: Int


class AddSpec(_Update, frozen=True, tag="add-spec"):
    """Add a partition spec."""

    spec: Raw


class SetDefaultSpec(_Update, frozen=True, tag="set-default-spec"):
    """Make a spec the default one."""

    spec_id: Int


class AddSortOrder(_Update, frozen=True, tag="add-sort-order"):
    """Add a sort order."""

    sort_order: Raw


class SetDefaultSortOrder(_Update, frozen=True, tag="set-default-sort-order"):
    """Make a sort order the default one."""

    sort_order_id: Int


class AddSnapshot(_Update, frozen=True, tag="add-snapshot"):
    """Add a snapshot. It becomes visible when a ref names it."""

    snapshot: Raw


class SetSnapshotRef(_Update, frozen=True, tag="set-snapshot-ref"):
    """Create or move a branch or tag."""

    ref_name: str
    snapshot_id: Long
    type: RefType
    max_ref_age_ms: Positive | None = None
    max_snapshot_age_ms: Positive | None = None
    min_snapshots_to_keep: Positive | None = None


class RemoveSnapshots(_Update, frozen=True, tag="remove-snapshots"):
    """Remove snapshots from the metadata."""

    snapshot_ids: tuple[Long, ...]


class RemoveSnapshotRef(_Update, frozen=True, tag="remove-snapshot-ref"):
    """Delete a branch or tag."""

    ref_name: str


class SetLocation(_Update, frozen=True, tag="set-location"):
    """Set the base location."""

    location: str


# Sentinels. They are compared by identity, because clients may send an empty value.
_NOT_SENT: Final[dict[str, str]] = {}
_NO_KEYS_SENT: Final = ("not sent",)


class SetProperties(_Update, frozen=True, tag="set-properties"):
    """Set properties. Old clients name the member `updated`; its value is copied to `updates`."""

    updates: dict[str, str] = msgspec.field(default_factory=lambda: _NOT_SENT)
    updated: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if self.updates is not _NOT_SENT:
            return
        if self.updated is None:
            raise ValueError("Object missing required field `updates`")
        msgspec.structs.force_setattr(self, "updates", self.updated)


class RemoveProperties(_Update, frozen=True, tag="remove-properties"):
    """Remove properties. Old clients name the member `removed`; its value is copied to `removals`."""

    removals: tuple[str, ...] = msgspec.field(default_factory=lambda: _NO_KEYS_SENT)
    removed: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.removals is not _NO_KEYS_SENT:
            return
        if self.removed is None:
            raise ValueError("Object missing required field `removals`")
        msgspec.structs.force_setattr(self, "removals", self.removed)


class SetStatistics(_Update, frozen=True, tag="set-statistics"):
    """Set the statistics file of a snapshot."""

    statistics: Raw
    snapshot_id: Long | None = None


class RemoveStatistics(_Update, frozen=True, tag="remove-statistics"):
    """Remove the statistics file of a snapshot."""

    snapshot_id: Long


class SetPartitionStatistics(_Update, frozen=True, tag="set-partition-statistics"):
    """Set the partition statistics file of a snapshot."""

    partition_statistics: Raw


class RemovePartitionStatistics(_Update, frozen=True, tag="remove-partition-statistics"):
    """Remove the partition statistics file of a snapshot."""

    snapshot_id: Long


class RemovePartitionSpecs(_Update, frozen=True, tag="remove-partition-specs"):
    """Remove partition specs. The default spec cannot be removed."""

    spec_ids: tuple[Int, ...]


class RemoveSchemas(_Update, frozen=True, tag="remove-schemas"):
    """Remove schemas. The current schema cannot be removed."""

    schema_ids: tuple[Int, ...]


class AddEncryptionKey(_Update, frozen=True, tag="add-encryption-key"):
    """Add a wrapped encryption key."""

    encryption_key: Raw


class RemoveEncryptionKey(_Update, frozen=True, tag="remove-encryption-key"):
    """Remove a wrapped encryption key."""

    key_id: str


class AddViewVersion(_Update, frozen=True, tag="add-view-version"):
    """Add a version of a view."""

    view_version: Raw


class SetCurrentViewVersion(_Update, frozen=True, tag="set-current-view-version"):
    """Make a version of a view the current one."""

    view_version_id: Int


TableUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)
ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)

TABLE_ACTIONS: Final[tuple[str, ...]] = tuple(str(u.__struct_config__.tag) for u in get_args(TableUpdate))
VIEW_ACTIONS: Final[tuple[str, ...]] = tuple(str(u.__struct_config__.tag) for u in get_args(ViewUpdate))
