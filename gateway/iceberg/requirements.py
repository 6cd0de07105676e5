# SPDX-License-Identifier: Apache-2.0
"""What a client asserts about the state its commit was built on; one struct and check per kind.

Texts are those of the reference implementation; several are asserted by the protocol's compatibility kit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from gateway.iceberg.codec import Int, Long
from gateway.iceberg.errors import BadRequestException, CommitFailedException
from gateway.iceberg.metadata import TableMetadata


class _Requirement(Struct, frozen=True, rename="kebab", kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of all requirements; strict, since an ignored member would be an ignored condition."""


class AssertCreate(_Requirement, frozen=True, tag="assert-create"):
    """The table must not exist."""

    def check(self, metadata: TableMetadata) -> None:
        """Always fails: there is metadata."""
        raise _failed("table already exists")


class AssertTableUuid(_Requirement, frozen=True, tag="assert-table-uuid"):
    """The table must still be the same one."""

    uuid: str

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` for another UUID; letter case means nothing."""
        if self.uuid.lower() != metadata.table_uuid.lower():
            raise _failed(f"UUID does not match: expected {metadata.table_uuid} != {self.uuid}")


class AssertRefSnapshotId(_Requirement, frozen=True, tag="assert-ref-snapshot-id"):
    """A branch or tag must be at this snapshot; null, or left out as some clients do, means it must not exist."""

    ref: str
    snapshot_id: Long | None = None

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` for a ref that appeared, moved or vanished."""
        found = metadata.refs.get(self.ref)
        if found is None:
            if self.snapshot_id is not None:
                raise _failed(f"branch or tag {self.ref} is missing, expected {self.snapshot_id}")
        elif self.snapshot_id is None:
            raise _failed(f"{found.type} {self.ref} was created concurrently")
        elif found.snapshot_id != self.snapshot_id:
            raise _failed(f"{found.type} {self.ref} has changed: expected id {self.snapshot_id} != {found.snapshot_id}")


class AssertLastAssignedFieldId(_Requirement, frozen=True, tag="assert-last-assigned-field-id"):
    """No column was added meanwhile."""

    last_assigned_field_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` when columns were added."""
        _equal("last assigned field id", self.last_assigned_field_id, metadata.last_column_id)


class AssertCurrentSchemaId(_Requirement, frozen=True, tag="assert-current-schema-id"):
    """The current schema is still this one."""

    current_schema_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` when another schema is current."""
        _equal("current schema", self.current_schema_id, metadata.current_schema_id)


class AssertLastAssignedPartitionId(_Requirement, frozen=True, tag="assert-last-assigned-partition-id"):
    """No partition field was added meanwhile."""

    last_assigned_partition_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` when partition fields were added."""
        _equal("last assigned partition id", self.last_assigned_partition_id, metadata.last_partition_id)


class AssertDefaultSpecId(_Requirement, frozen=True, tag="assert-default-spec-id"):
    """The default partition spec is still this one."""

    default_spec_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` when another spec is the default."""
        _equal("default partition spec", self.default_spec_id, metadata.default_spec_id)


class AssertDefaultSortOrderId(_Requirement, frozen=True, tag="assert-default-sort-order-id"):
    """The default sort order is still this one."""

    default_sort_order_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raises `CommitFailedException` when another order is the default."""
        _equal("default sort order", self.default_sort_order_id, metadata.default_sort_order_id)


class AssertViewUuid(_Requirement, frozen=True, tag="assert-view-uuid"):
    """The view must still be the same one."""

    uuid: str

    def check_view(self, view_uuid: str) -> None:
        """Raises `CommitFailedException` for another UUID; letter case means nothing."""
        if self.uuid.lower() != view_uuid.lower():
            raise _failed(f"view UUID does not match: expected {view_uuid} != {self.uuid}")


TableRequirement: TypeAlias = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
ViewRequirement: TypeAlias = AssertViewUuid

TABLE_REQUIREMENTS: Final[tuple[str, ...]] = tuple(str(r.__struct_config__.tag) for r in get_args(TableRequirement))
VIEW_REQUIREMENTS: Final[tuple[str, ...]] = (str(AssertViewUuid.__struct_config__.tag),)


def check_requirements(metadata: TableMetadata | None, requirements: Sequence[TableRequirement]) -> None:
    """Check all requirements against the current metadata; None is a table that does not exist.

    Raises `CommitFailedException` for the first that does not hold (never retried by the server), and
    `BadRequestException` when a table is to be created under anything but `assert-create`.
    """
    if metadata is None:
        check_create_requirements(requirements)
        return
    for requirement in requirements:
        requirement.check(metadata)


def check_create_requirements(requirements: Sequence[TableRequirement]) -> None:
    """A commit that creates a table asserts `assert-create` and nothing else."""
    kinds = [str(requirement.__struct_config__.tag) for requirement in requirements]
    if invalid := [kind for kind in kinds if kind != "assert-create"]:
        raise BadRequestException(f"Invalid create requirements: {', '.join(invalid)}")
    if not kinds:
        raise BadRequestException("Invalid create requirements: assert-create is missing")


def _equal(what: str, expected: int, found: int) -> None:
    if expected != found:
        raise _failed(f"{what} changed: expected id {expected} != {found}")


def _failed(reason: str) -> CommitFailedException:
    return CommitFailedException(f"Requirement failed: {reason}")
