# SPDX-License-Identifier: Apache-2.0
"""Build the first metadata of a table or view from a create request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gateway.iceberg.applying import view_builder
from gateway.iceberg.applying.builder import TableBuilder
from gateway.iceberg.applying.content import persisted_properties
from gateway.iceberg.applying.structure import check_format_version, strip_trailing_slash
from gateway.iceberg.applying.view_builder import ViewBuilder
from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import BadRequestException, InvalidTableUpdate
from gateway.iceberg.limits import Limits, refuse_growth
from gateway.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from gateway.iceberg.partition import (
    FIRST_PARTITION_FIELD_ID,
    UNPARTITIONED,
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortOrder,
    check_spec,
    order_with,
    read_order,
    read_spec,
    spec_with,
)
from gateway.iceberg.properties import check_settable, check_settable_on_view
from gateway.iceberg.schema import Schema, assign_fresh_ids, check_compatibility, read_schema
from gateway.iceberg.updates import LAST_ADDED, AddSchema, AddViewVersion, SetCurrentViewVersion
from gateway.iceberg.views import ViewMetadata, read_version
from gateway.iceberg.wire import CreateTableRequest, CreateViewRequest
from lakegate.restrictions.literals import ABSENT

FORMAT_VERSION_PROPERTY: Final = "format-version"
DEFAULT_PROPERTIES: Final[Mapping[str, str]] = {"write.parquet.compression-codec": "zstd"}
"""Properties of every new table, as in the Java reference implementation."""


def new_table_metadata(
    request: CreateTableRequest,
    *,
    table_uuid: UUID,
    location: str,
    now_ms: int,
    default_format_version: int = 2,
    allowed: frozenset[int] = SUPPORTED_FORMAT_VERSIONS,
    limits: Limits | None = None,
) -> TableMetadata:
    """Return the metadata of a new table.

    All column ids are assigned again, and the partition spec and sort order refer to the new ids. The client's ids have
    no meaning before the table exists. The property `format-version` selects the version and is not stored. Raises
    errors of status 400, and `FailedToSetProperties` (409) for unsupported properties.
    """
    version = _format_version(request.properties, default_format_version)
    check_format_version(version, allowed)
    requested = read_schema(request.schema, at="$.schema")
    check_compatibility(requested, version)
    schema, last_column_id = assign_fresh_ids(requested)
    properties = {**DEFAULT_PROPERTIES, **persisted_properties(request.properties)}
    check_settable({}, properties)
    builder = TableBuilder.empty(format_version=version, now_ms=now_ms, allowed=allowed)
    builder.table_uuid = str(table_uuid)
    builder.location = strip_trailing_slash(location)
    builder.schemas = Parts.of(Schema, [schema])
    builder.schema_id = schema.schema_id
    builder.last_column_id = last_column_id
    builder.properties = properties
    if request.partition_spec != ABSENT:
        spec = _rebound_spec(read_spec(request.partition_spec, at="$.partition-spec"), requested, schema)
        check_spec(spec, schema)
        builder.specs = Parts.of(PartitionSpec, [spec])
        builder.spec_id = spec.spec_id
        builder.last_partition_id = spec.last_field_id
    if request.write_order != ABSENT:
        order = _rebound_order(read_order(request.write_order, at="$.write-order"), requested, schema)
        builder.orders = Parts.of(SortOrder, [order])
        builder.order_id = order.order_id
    metadata, _ = builder.finish(None)
    refuse_growth(limits or Limits(), metadata.measured, None)
    return metadata


def new_view_metadata(
    request: CreateViewRequest, *, view_uuid: UUID, location: str, now_ms: int, limits: Limits | None = None
) -> ViewMetadata:
    """Return the metadata of a new view, with schema 0 and version 1. The ids in the request are ignored.

    Raises errors of status 400, among them `IllegalArgumentException` for two representations of one dialect.
    """
    builder = ViewBuilder(base=None, now_ms=now_ms)
    builder.view_uuid = str(view_uuid)
    builder.location = strip_trailing_slash(location)
    check_settable_on_view({}, request.properties)
    builder.properties = dict(request.properties)
    version = read_version(request.view_version, at="$.view-version").with_ids(version_id=1, schema_id=LAST_ADDED)
    view_builder.add_schema(builder, AddSchema(schema=request.schema), "$")
    view_builder.add_view_version(builder, AddViewVersion(view_version=version.text), "$")
    view_builder.set_current_view_version(builder, SetCurrentViewVersion(view_version_id=LAST_ADDED), "$")
    metadata = builder.finish()
    refuse_growth(limits or Limits(), metadata.measured, None)
    return metadata


def _format_version(properties: Mapping[str, str], default: int) -> int:
    text = properties.get(FORMAT_VERSION_PROPERTY)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise BadRequestException(f"Property {FORMAT_VERSION_PROPERTY} must be 1, 2 or 3, not {text!r}")
    return int(text)


def _rebound_spec(spec: PartitionSpec, requested: Schema, schema: Schema) -> PartitionSpec:
    if not spec.fields:
        return UNPARTITIONED
    fields = (
        PartitionField(
            source_id=_moved(field.source_id, requested, schema, "partition"),
            field_id=FIRST_PARTITION_FIELD_ID + position,
            name=field.name,
            transform=field.transform,
        )
        for position, field in enumerate(spec.fields)
    )
    return spec_with(spec, spec_id=UNPARTITIONED.spec_id, fields=fields)


def _rebound_order(order: SortOrder, requested: Schema, schema: Schema) -> SortOrder:
    if not order.fields:
        return UNSORTED
    source_ids = [_moved(field.source_id, requested, schema, "sort") for field in order.fields]
    return order_with(order, order_id=UNSORTED.order_id + 1, source_ids=source_ids)


def _moved(source_id: int, requested: Schema, schema: Schema, noun: str) -> int:
    """Return the new id of the column that has the id `source_id` in the request.

    Raises `InvalidTableUpdate` if there is no such column.
    """
    name = requested.name_of(source_id)
    column = schema.named(name) if name is not None else None
    if column is None:
        raise InvalidTableUpdate(f"Cannot find source column for {noun} field: source id {source_id}")
    return column.field.id
