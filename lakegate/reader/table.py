# SPDX-License-Identifier: Apache-2.0
"""Scan a restricted table: read files with PyIceberg, and apply the restrictions before a caller gets a batch.

The protocol defines the order: first the row filter on original values, then the masks (projections), then the caller's
filter, which applies to masked values. Columns that only a filter needs are read and then dropped.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyiceberg import expressions as pyi
from pyiceberg.expressions import parser
from pyiceberg.expressions.visitors import bind as bind_expression
from pyiceberg.expressions.visitors import extract_field_ids
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import expression_to_pyarrow, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField

from lakegate.reader.apply import bind, children, filter_ids, walk
from lakegate.reader.failures import ReadFailed, failure
from lakegate.reader.files import FileScan, readable
from lakegate.reader.masks import SALT_BYTES
from lakegate.reader.pushdown import superset, unmasked_parts
from lakegate.restrictions.wire import ReadRestrictions, RestrictionNotSupported

RowFilter: TypeAlias = str | pyi.BooleanExpression


class RestrictedTable:
    """A table with the restrictions of the same load response. It is valid until its vended credentials expire."""

    def __init__(
        self, metadata: TableMetadata, io: FileIO, restrictions: ReadRestrictions, location: str | None = None
    ) -> None:
        """Check the restrictions against the schemas of the table. `location` is the location of its metadata file.

        Raises RestrictionNotSupported if one of them cannot be applied in full.
        """
        self._metadata, self._io, self._restrictions, self._location = metadata, io, restrictions, location
        self._check(self.schema)

    def __repr__(self) -> str:
        return f"RestrictedTable(uuid={self._metadata.table_uuid})"

    def restricted_by(self, restrictions: ReadRestrictions, metadata_location: str) -> RestrictedTable:
        """Return the table with these restrictions, to read it as another principal would.

        The restrictions refer to the schemas in the metadata file `metadata_location`. Raises ReadFailed if this table
        has restrictions of its own or another metadata file. Raises RestrictionNotSupported.
        """
        if self._restrictions != ReadRestrictions():
            raise ReadFailed("the table is restricted for the caller, so it cannot be read as another principal")
        if self._location != metadata_location:
            raise ReadFailed("the table was changed meanwhile; read it again")
        return RestrictedTable(self._metadata, self._io, restrictions, self._location)

    @property
    def schema(self) -> Schema:
        """Return the current schema."""
        return self._metadata.schema()

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """Return the ids of the snapshots that can be read."""
        return tuple(each.snapshot_id for each in self._metadata.snapshots)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter = "",
        snapshot_id: int | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows as batches of arrow. Each scan has a new random salt for `sha-256-query-local`.

        `columns` are names of top-level columns; None means all. `row_filter` is a PyIceberg expression or its text,
        and applies to masked values. With `snapshot_id` the columns are those of the snapshot's schema. Raises
        ValueError for arguments that do not fit the table, RestrictionNotSupported, and ReadFailed.
        """
        return self._plan(columns, row_filter, snapshot_id, limit)[1]

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        row_filter: RowFilter = "",
        snapshot_id: int | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Return the rows of `scan` as one table."""
        schema, batches = self._plan(columns, row_filter, snapshot_id, limit)
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        if not tables:
            return schema_to_pyarrow(schema, include_field_ids=False).empty_table()
        return pa.concat_tables(tables, promote_options="permissive")

    def _plan(
        self, columns: Sequence[str] | None, row_filter: RowFilter, snapshot_id: int | None, limit: int | None
    ) -> tuple[Schema, Iterator[pa.RecordBatch]]:
        """Return the schema of the result, and its batches."""
        if limit is not None and limit < 0:
            raise ValueError("limit must not be negative")
        read = self._schema_at(snapshot_id)
        asked = _selected(read, columns)
        expression = parser.parse(row_filter) if isinstance(row_filter, str) and row_filter else row_filter
        own = bind_expression(read, expression or pyi.AlwaysTrue(), case_sensitive=True)
        wanted = self._with_filters(read, asked, extract_field_ids(own))
        bound = bind(self._restrictions, wanted, self._metadata.schemas, secrets.token_bytes(SALT_BYTES))
        pushed: pyi.BooleanExpression = superset(self._restrictions.row_filter, self.schema)
        if isinstance(expression, pyi.BooleanExpression):
            masked = {each.field_id for each in self._restrictions.projections}
            pushed = pyi.And(pushed, unmasked_parts(expression, read, self.schema, masked))
        late = None if own == pyi.AlwaysTrue() else expression_to_pyarrow(own, wanted)

        def batches() -> Iterator[pa.RecordBatch]:
            for raw in self._raw(wanted, pushed, snapshot_id, one_by_one=limit is not None):
                yield from _filtered(bound.apply(raw), late, len(asked.fields))

        return asked, _limited(_without_details(batches()), limit)

    def _raw(
        self, schema: Schema, row_filter: pyi.BooleanExpression, snapshot_id: int | None, *, one_by_one: bool
    ) -> Iterator[pa.RecordBatch]:
        """Return the batches of the files. PyIceberg reads all files in advance, unless they are read one by one."""
        scan = DataScan(self._metadata, self._io, row_filter=row_filter, snapshot_id=snapshot_id)
        files = FileScan(self._metadata, self._io, schema, row_filter)
        tasks = readable(scan.plan_files())
        if not one_by_one:
            yield from files.to_record_batches(tasks)
            return
        for task in tasks:
            yield from files.to_record_batches([task])

    def _schema_at(self, snapshot_id: int | None) -> Schema:
        if snapshot_id is None:
            return self.schema
        snapshot = self._metadata.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise ValueError(f"the table has no snapshot {snapshot_id}; `snapshot_ids` lists its snapshots")
        known = {each.schema_id: each for each in self._metadata.schemas}
        return known.get(-1 if snapshot.schema_id is None else snapshot.schema_id, self.schema)

    def _check(self, schema: Schema) -> None:
        wanted = self._with_filters(schema, schema, set())
        bind(self._restrictions, wanted, self._metadata.schemas, secrets.token_bytes(SALT_BYTES))

    def _with_filters(self, read: Schema, asked: Schema, own: set[int]) -> Schema:
        """Return the schema to read: the columns `asked`, and after them the columns that only a filter needs.

        If the snapshot's schema lacks a column of the row filter, it is read by its definition in another schema. It
        gets a new name, because another column can have its name.
        """
        present = {each.field_id for field in asked.fields for each in walk((field,))}
        added: list[NestedField] = []
        for field_id in sorted(own | filter_ids(self._restrictions.row_filter)):
            if field_id in present:
                continue
            field = _top(read, field_id) or self._elsewhere(read, field_id)
            added.append(field)
            present |= {each.field_id for each in walk((field,))}
        return Schema(*asked.fields, *added)

    def _elsewhere(self, read: Schema, field_id: int) -> NestedField:
        schemas = (self.schema, *sorted(self._metadata.schemas, key=lambda each: -each.schema_id))
        found = next((field for each in schemas if (field := _top(each, field_id))), None)
        if found is None:
            raise RestrictionNotSupported(f"field {field_id} of the row filter is in no schema of the table")
        if {each.field_id for each in walk((found,))} & {each.field_id for each in walk(read.fields)}:
            raise RestrictionNotSupported(f"field {field_id} of the row filter was removed from its struct")
        name = f"__row_filter_{field_id}"
        while any(field.name == name for field in read.fields):
            name += "_"
        return found.model_copy(update={"name": name, "required": False})


def _top(schema: Schema, field_id: int) -> NestedField | None:
    """Return the top-level column that has the field id or contains the field with it."""
    for field in schema.fields:
        if field.field_id == field_id or any(each.field_id == field_id for each in walk(children(field.field_type))):
            return field
    return None


def _selected(schema: Schema, columns: Sequence[str] | None) -> Schema:
    if columns is None:
        return schema
    known = {field.name: field for field in schema.fields}
    if isinstance(columns, str) or len(set(columns)) < len(columns) or set(columns) - known.keys():
        raise ValueError(f"columns must be a list of these names, each at most once: {', '.join(known)}")
    return Schema(*(known[name] for name in columns))


def _filtered(batch: pa.RecordBatch, late: Any, width: int) -> Iterator[pa.RecordBatch]:
    """Return the first `width` columns of those rows for which the expression `late` is true."""
    if late is None:
        yield batch.select(range(width))
        return
    for part in pa.Table.from_batches([batch]).filter(late).to_batches():
        yield part.select(range(width))


def _without_details(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches that have at least one row. Replace errors by ReadFailed."""
    while True:
        failed: str | None = None
        try:
            batch = next(batches, None)
        except (RestrictionNotSupported, ReadFailed):
            raise
        except Exception as error:
            failed = failure(error)
        # Raised outside of the handler: a traceback also shows the text of an error that was being handled.
        if failed is not None:
            raise ReadFailed(failed)
        if batch is None:
            return
        if batch.num_rows:
            yield batch


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if limit is not None:
            batch = batch.slice(0, limit)
            limit -= batch.num_rows
        if batch.num_rows:
            yield batch
        if limit == 0:
            return
