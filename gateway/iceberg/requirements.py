# SPDX-License-Identifier: Apache-2.0
"""Requirements of a commit: the client's assertions about the current metadata. Each kind is a struct with a check.

The messages are those of the Java reference implementation. The compatibility kit of the protocol asserts several of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from gateway.iceberg.codec import Long
from gateway.iceberg.errors import BadRequestException, CommitFailedException
from gateway.iceberg.metadata import TableMetadata
from lakegate.restrictions.literals import Int


class _Requirement(Struct, frozen=True, rename="kebab", kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of all requirements. Unknown members are rejected, because an ignored member would be an unchecked
    condition.
    """


class AssertCreate(_Requirement, frozen=True, tag="assert-create"):
    """The table must not exist."""

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException`, because the table has metadata and so exists."""
        raise _failed("table already exists")


class AssertTableUuid(_Requirement, frozen=True, tag="assert-table-uuid"):
    """The UUID of the table must be this one."""

    uuid: str

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if the UUID differs. Letter case is ignored."""
        if self.uuid.lower() != metadata.table_uuid.lower():
            raise _failed(f"UUID does not match: expected {metadata.table_uuid} != {self.uuid}")


class AssertRefSnapshotId(_Requirement, frozen=True, tag="assert-ref-snapshot-id"):
    """A branch or tag must name this snapshot.

    If the id is null or missing, the ref must not exist. Some clients leave the member out.
    """

    ref: str
    snapshot_id: Long | None = None

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if the ref was created, moved or removed since the client read it."""
        found = metadata.refs.get(self.ref)
        if found is None:
            if self.snapshot_id is not None:
                raise _failed(f"branch or tag {self.ref} is missing, expected {self.snapshot_id}")
        elif self.snapshot_id is None:
            raise _failed(f"{found.type} {self.ref} was created concurrently")
        elif found.snapshot_id != self.snapshot_id:
            raise _failed(f"{found.type} {self.ref} has changed: expected id {self.snapshot_id} != {found.snapshot_id}")


class AssertLastAssignedFieldId(_Requirement, frozen=True, tag="assert-last-assigned-field-id"):
    """The highest column id must be this one: no column was added concurrently."""

    last_assigned_field_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if the highest column id differs."""
        _equal("last assigned field id", self.last_assigned_field_id, metadata.last_column_id)


class AssertCurrentSchemaId(_Requirement, frozen=True, tag="assert-current-schema-id"):
    """The current schema must be this one."""

    current_schema_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if another schema is current."""
        _equal("current schema", self.current_schema_id, metadata.current_schema_id)


class AssertLastAssignedPartitionId(_Requirement, frozen=True, tag="assert-last-assigned-partition-id"):
    """The highest partition field id must be this one: no partition field was added concurrently."""

    last_assigned_partition_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if the highest partition field id differs."""
        _equal("last assigned partition id", self.last_assigned_partition_id, metadata.last_partition_id)


class AssertDefaultSpecId(_Requirement, frozen=True, tag="assert-default-spec-id"):
    """The default partition spec must be this one."""

    default_spec_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if another spec is the default."""
        _equal("default partition spec", self.default_spec_id, metadata.default_spec_id)


class AssertDefaultSortOrderId(_Requirement, frozen=True, tag="assert-default-sort-order-id"):
    """The default sort order must be this one."""

    default_sort_order_id: Int

    def check(self, metadata: TableMetadata) -> None:
        """Raise `CommitFailedException` if another sort order is the default."""
        _equal("default sort order", self.default_sort_order_id, metadata.default_sort_order_id)


class AssertViewUuid(_Requirement, frozen=True, tag="assert-view-uuid"):
    """The UUID of the view must be this one."""

    uuid: str

    def check_view(self, view_uuid: str) -> None:
        """Raise `CommitFailedException` if the UUID differs. Letter case is ignored."""
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
    """Check all requirements against the current metadata. None means that the table does not exist.

    Raises `CommitFailedException` for the first requirement that does not hold; the server does not retry. Raises
    `BadRequestException` if the table does not exist and the requirements are not only `assert-create`.
    """
    if metadata is None:
        check_create_requirements(requirements)
        return
    for requirement in requirements:
        requirement.check(metadata)


def check_create_requirements(requirements: Sequence[TableRequirement]) -> None:
    """Raise `BadRequestException` unless the requirements contain `assert-create` and no other kind."""
    kinds = [str(requirement.__struct_config__.tag) for requirement in requirements]
    if invalid := [kind for kind in kinds if kind != "assert-create"]:
        raise BadRequestException(f"Invalid create requirements: {', '.join(invalid)}")
    if not kinds:
        raise BadRequestException("Invalid create requirements: assert-create is missing")


def _equal(subject: str, expected: int, found: int) -> None:
    if expected != found:
        raise _failed(f"{subject} changed: expected id {expected} != {found}")


def _failed(reason: str) -> CommitFailedException:
    return CommitFailedException(f"Requirement failed: {reason}")
