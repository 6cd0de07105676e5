# SPDX-License-Identifier: Apache-2.0
"""Updates of a table's structure: UUID, format version, location, schemas, specs, sort orders."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from gateway.iceberg.applying.builder import TableBuilder
from gateway.iceberg.errors import (
    AssignUuidNotAllowed,
    BadRequestException,
    FormatVersionNotAllowed,
    InvalidTableUpdate,
    SetLocationNotAllowed,
)
from gateway.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS
from gateway.iceberg.partition import (
    UNSORTED,
    UNSORTED_ORDER_ID,
    assign_field_ids,
    check_order,
    check_sequential_ids,
    check_spec,
    order_with,
    read_order,
    read_spec,
    spec_with,
)
from gateway.iceberg.schema import check_compatibility, read_schema
from gateway.iceberg.updates import (
    LAST_ADDED,
    AddSchema,
    AddSortOrder,
    AddSpec,
    AssignUuid,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    UpgradeFormatVersion,
)


def assign_uuid(builder: TableBuilder, update: AssignUuid, at: str) -> None:
    """Set the UUID of a new table. Setting the UUID that the table already has changes nothing.

    Raises `AssignUuidNotAllowed` for another UUID on an existing table.
    """
    try:
        UUID(update.uuid)
    except ValueError:
        raise BadRequestException(f"Malformed request: {update.uuid!r} is not a UUID at `{at}.uuid`") from None
    if builder.base is not None and update.uuid.lower() != builder.base.table_uuid.lower():
        raise AssignUuidNotAllowed("Cannot assign a new UUID to an existing table")
    if builder.table_uuid is None or update.uuid.lower() != builder.table_uuid.lower():
        builder.table_uuid = update.uuid
        builder.changed = True


def upgrade_format_version(builder: TableBuilder, update: UpgradeFormatVersion, at: str) -> None:
    """Set a later format version. Existing snapshots are not changed.

    Raises `InvalidTableUpdate` for a downgrade, and the errors of `check_format_version`.
    """
    requested = update.format_version
    check_format_version(requested, builder.allowed_format_versions, current=builder.format_version)
    if requested < builder.format_version:
        raise InvalidTableUpdate(f"Cannot downgrade v{builder.format_version} table to v{requested}")
    if requested != builder.format_version:
        builder.format_version = requested
        builder.changed = True


def check_format_version(requested: int, allowed: frozenset[int], *, current: int | None = None) -> None:
    """Raise an error of status 400 if a table must not get the format version `requested`.

    Raises `InvalidTableUpdate` for an unknown version, and `FormatVersionNotAllowed` for one that the warehouse does
    not permit. A table that already has the version (`current`) keeps it.
    """
    highest = max(SUPPORTED_FORMAT_VERSIONS)
    if requested > highest:
        raise InvalidTableUpdate(
            f"Cannot upgrade table to unsupported format version: v{requested} (supported: v{highest})"
        )
    if requested not in allowed and requested in SUPPORTED_FORMAT_VERSIONS and requested != current:
        permitted = ", ".join(f"v{version}" for version in sorted(allowed))
        raise FormatVersionNotAllowed(
            f"Format version v{requested} is not allowed in this warehouse. Allowed versions: {permitted}"
        )
    if requested < 1:
        raise InvalidTableUpdate(f"Cannot use format version {requested}: it must be at least 1")


def set_location(builder: TableBuilder, update: SetLocation, at: str) -> None:
    """Set the location of a new table. A trailing slash is ignored.

    Raises `SetLocationNotAllowed` for another location on an existing table.
    """
    location = strip_trailing_slash(update.location)
    if builder.base is not None and location != strip_trailing_slash(builder.base.location):
        raise SetLocationNotAllowed(f"Cannot change table location: it must remain {builder.base.location}")
    if builder.base is None and location != builder.location:
        builder.location = location
        builder.changed = True


def strip_trailing_slash(location: str) -> str:
    """Return the location without slashes at its end: `scheme://b/t` for `scheme://b/t//`.

    `scheme://` alone is kept.
    """
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


_LARGEST_GAP: Final = 1000
"""Most field ids that one commit may skip. Writers use the next ones. An id near 2**31 would leave none to them."""


def _require_ids_left(noun: str, highest: int, last: int, fields: int) -> None:
    """Raise `InvalidTableUpdate` if new fields skip so many ids that too few are left for other writers."""
    if highest - last > fields + _LARGEST_GAP:
        raise InvalidTableUpdate(
            f"The {noun} id {highest} leaves too few for other writers. Use {last + 1}, the next one of the table"
        )


def add_schema(builder: TableBuilder, update: AddSchema, at: str) -> None:
    """Add a schema. An equal schema keeps its id; a new one gets the highest id plus one. The client's id is ignored.

    The deprecated `last-column-id` of the update is ignored too. Java clients since 1.8 send the highest id of the
    schema there, which is below the table's own value after a column was dropped. The table's value never decreases.
    Raises `BadRequestException` for an invalid schema, and `InvalidTableUpdate` for ids that skip too many others.
    """
    schema = read_schema(update.schema, at=f"{at}.schema")
    check_compatibility(schema, builder.format_version)
    if builder.schemas:  # The first schema may have any ids, such as those of a copied table.
        _require_ids_left("field", schema.highest_field_id, builder.last_column_id, len(schema.columns))
    highest = max(builder.last_column_id, schema.highest_field_id)
    found = next((known.schema_id for known in builder.schemas if known.same_as(schema)), None)
    if found is not None and highest == builder.last_column_id:
        builder.last_added_schema = found if found in builder.added_schemas else None
        return
    schema_id = found if found is not None else max((s.schema_id for s in builder.schemas), default=-1) + 1
    if found is None:
        builder.schemas = builder.schemas.append(schema.with_id(schema_id))
    builder.last_column_id = highest
    builder.added_schemas.add(schema_id)
    builder.last_added_schema = schema_id
    builder.changed = True


def set_current_schema(builder: TableBuilder, update: SetCurrentSchema, at: str) -> None:
    """Make a schema the current one. The id -1 is the schema that this commit added last.

    `TableBuilder.finish` checks the default spec and sort order against the schema.
    """
    schema_id = or_last_added(
        update.schema_id, builder.last_added_schema, "Cannot set last added schema: no schema has been added"
    )
    if schema_id == builder.schema_id:
        return
    if not any(schema.schema_id == schema_id for schema in builder.schemas):
        raise InvalidTableUpdate(f"Cannot set current schema to unknown schema: {schema_id}")
    builder.schema_id = schema_id
    builder.changed = True


def add_spec(builder: TableBuilder, update: AddSpec, at: str) -> None:
    """Add a partition spec. A spec with equal fields keeps its id; a new one gets the highest id plus one.

    Missing field ids are assigned. Raises `BadRequestException` for a spec that does not fit the current schema, and
    `InvalidTableUpdate` for ids that skip too many others.
    """
    spec = read_spec(update.spec, at=f"{at}.spec")
    found = next((known.spec_id for known in builder.specs if known.compatible_with(spec)), None)
    if found is not None:
        builder.last_added_spec = found if builder.last_added_spec is not None else None
        return
    fields = assign_field_ids(
        spec, builder.specs, last_id=builder.last_partition_id, format_version=builder.format_version
    )
    spec_id = max((known.spec_id for known in builder.specs), default=-1) + 1
    bound = spec_with(spec, spec_id=spec_id, fields=fields)
    if bound.fields:  # Some clients set the current schema last. An unpartitioned spec needs no schema.
        check_spec(bound, builder.schema())
    if builder.format_version == 1:
        check_sequential_ids(bound)
    if builder.specs:
        _require_ids_left("partition field", bound.last_field_id, builder.last_partition_id, len(bound.fields))
    builder.specs = builder.specs.append(bound)
    builder.last_partition_id = max(builder.last_partition_id, bound.last_field_id)
    builder.added_specs.add(spec_id)
    builder.last_added_spec = spec_id
    builder.changed = True


def set_default_spec(builder: TableBuilder, update: SetDefaultSpec, at: str) -> None:
    """Make a partition spec the default. The id -1 is the spec that this commit added last."""
    spec_id = or_last_added(
        update.spec_id, builder.last_added_spec, "Cannot set last added spec: no spec has been added"
    )
    if spec_id == builder.spec_id:
        return
    if not any(spec.spec_id == spec_id for spec in builder.specs):
        raise InvalidTableUpdate(f"Cannot set default partition spec to unknown spec: {spec_id}")
    builder.spec_id = spec_id
    builder.changed = True


def add_sort_order(builder: TableBuilder, update: AddSortOrder, at: str) -> None:
    """Add a sort order. Order 0 is always unsorted.

    An order with equal fields keeps its id; a new one gets the highest id plus one, beginning with 1.
    """
    order = read_order(update.sort_order, at=f"{at}.sort-order")
    if not order.fields:
        order = UNSORTED
    found = next((known.order_id for known in builder.orders if known.fields == order.fields), None)
    if found is not None:
        builder.last_added_order = found if builder.last_added_order is not None else None
        return
    if order.fields:
        check_order(order, builder.schema())
    order_id = UNSORTED_ORDER_ID
    if order.fields:
        order_id = max((known.order_id for known in builder.orders), default=UNSORTED_ORDER_ID) + 1
    builder.orders = builder.orders.append(order_with(order, order_id=order_id))
    builder.added_orders.add(order_id)
    builder.last_added_order = order_id
    builder.changed = True


def set_default_sort_order(builder: TableBuilder, update: SetDefaultSortOrder, at: str) -> None:
    """Make a sort order the default. The id -1 is the order that this commit added last."""
    order_id = or_last_added(
        update.sort_order_id, builder.last_added_order, "Cannot set last added sort order: no sort order has been added"
    )
    if order_id == builder.order_id:
        return
    if not any(order.order_id == order_id for order in builder.orders):
        raise InvalidTableUpdate(f"Cannot set default sort order to unknown order: {order_id}")
    builder.order_id = order_id
    builder.changed = True


def or_last_added(requested: int, last_added: int | None, otherwise: str) -> int:
    """Return the requested id. If it is -1, return the id that this commit added last.

    Raises `InvalidTableUpdate` with the message `otherwise` if -1 was requested and nothing was added.
    """
    if requested != LAST_ADDED:
        return requested
    if last_added is None:
        raise InvalidTableUpdate(otherwise)
    return last_added


def remove_partition_specs(builder: TableBuilder, update: RemovePartitionSpecs, at: str) -> None:
    """Remove partition specs. Unknown ids are ignored. Raises `InvalidTableUpdate` for the default spec."""
    if builder.spec_id in update.spec_ids:
        raise InvalidTableUpdate("Cannot remove the default partition spec")
    kept = builder.specs.only(lambda spec: spec.spec_id not in update.spec_ids)
    builder.changed = builder.changed or kept is not builder.specs
    builder.specs = kept


def remove_schemas(builder: TableBuilder, update: RemoveSchemas, at: str) -> None:
    """Remove schemas. Unknown ids are ignored. Raises `InvalidTableUpdate` for the current schema."""
    if builder.schema_id in update.schema_ids:
        raise InvalidTableUpdate("Cannot remove the current schema")
    kept = builder.schemas.only(lambda schema: schema.schema_id not in update.schema_ids)
    builder.changed = builder.changed or kept is not builder.schemas
    builder.schemas = kept
