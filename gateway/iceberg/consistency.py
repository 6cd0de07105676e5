# SPDX-License-Identifier: Apache-2.0
"""Check that one metadata document is consistent, whichever client wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.partition import check_bindable, check_default_spec, check_order, check_partition_names
from gateway.iceberg.schema import check_structure
from gateway.iceberg.snapshots import MAIN, check_complete, check_log_times, check_retention
from gateway.iceberg.types import check_transform

if TYPE_CHECKING:
    from gateway.iceberg.metadata import TableMetadata


def check_consistency(metadata: TableMetadata) -> None:
    """Raise `BadRequestException` unless every part is readable, ids are unique, and every referenced id exists."""
    _check_uuid(metadata.table_uuid)
    check_unique("schema-id", (schema.schema_id for schema in metadata.schemas))
    check_unique("spec-id", (spec.spec_id for spec in metadata.partition_specs))
    check_unique("order-id", (order.order_id for order in metadata.sort_orders))
    for schema in metadata.schemas:
        check_structure(schema)
        if schema.highest_field_id > metadata.last_column_id:
            raise _inconsistent(
                f"last-column-id is {metadata.last_column_id}, but schema {schema.schema_id} has the higher field id "
                f"{schema.highest_field_id}"
            )
    # These properties raise an error if the default schema, spec or order does not exist.
    schema, spec, order = (metadata.schema, metadata.default_spec, metadata.default_sort_order)
    for each in metadata.partition_specs:
        for field in each.fields:
            check_transform(field.transform)
        check_partition_names(each)
    for found in metadata.sort_orders:
        for sorted_by in found.fields:
            check_transform(sorted_by.transform)
        if bool(found.fields) != bool(found.order_id):
            raise _inconsistent(f"sort order {found.order_id} is wrong: order 0, and no other, has no fields")
    check_default_spec(spec, schema)
    check_order(order, schema)
    check_bindable(metadata.partition_specs, schema)
    _check_snapshots(metadata)
    check_log_times(metadata)
    _ = (metadata.statistics.items, metadata.partition_statistics.items)
    for key in metadata.encryption_keys:
        key.require_base64(at="$.encryption-keys")


def _check_snapshots(metadata: TableMetadata) -> None:
    ids = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    check_unique("snapshot-id", (snapshot.snapshot_id for snapshot in metadata.snapshots))
    for name, ref in metadata.refs.items():
        check_retention(ref)
        if ref.snapshot_id not in ids:
            raise _inconsistent(f"the {ref.type} {name} refers to the unknown snapshot {ref.snapshot_id}")
    main = metadata.refs.get(MAIN)
    if main is not None and main.type != "branch":
        raise _inconsistent("the ref main is a tag; it must be a branch")
    if (main.snapshot_id if main is not None else None) != metadata.current_snapshot_id:
        raise _inconsistent(
            f"Current snapshot ID does not match main branch ({metadata.current_snapshot_id} != "
            f"{main.snapshot_id if main is not None else None})"
        )
    for snapshot in metadata.snapshots:
        check_complete(snapshot, at="$.snapshots")
    newest = max((snapshot.sequence_number for snapshot in metadata.snapshots), default=0)
    if newest > (metadata.last_sequence_number if metadata.format_version > 1 else 0):
        raise _inconsistent(
            f"last-sequence-number is {metadata.last_sequence_number}, but a snapshot has the higher sequence number "
            f"{newest}"
        )


def _check_uuid(text: str) -> None:
    try:
        UUID(text)
    except ValueError:
        raise _inconsistent(f"table-uuid {text[:80]!r} is not a UUID") from None


def check_unique(name: str, ids: Iterable[int]) -> None:
    """Raise `BadRequestException` if an id occurs twice.

    The message contains `name`, the name of the array's member.
    """
    seen: set[int] = set()
    for value in ids:
        if value in seen:
            raise BadRequestException(f"Metadata is inconsistent: {name} {value} exists twice")
        seen.add(value)


def _inconsistent(reason: str) -> BadRequestException:
    return BadRequestException(f"Table metadata is inconsistent: {reason}")
