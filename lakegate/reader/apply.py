# SPDX-License-Identifier: Apache-2.0
"""Apply read-restrictions to arrow record batches: first the row filter on original values, then the masks.

The protocol calls masks projections. `bind` checks the restrictions against the schemas of a table once for each scan.
If one of them cannot be applied in full, none is applied. Fields are masked at any depth of a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema

from lakegate.reader.files import offsets
from lakegate.reader.masks import Mask, mask
from lakegate.reader.predicates import Column, Test, compiled, rows
from lakegate.restrictions.wire import (
    Both,
    Compare,
    Constant,
    Either,
    Membership,
    Not,
    Predicate,
    ReadRestrictions,
    Reference,
    RestrictionNotSupported,
    Unary,
)


def children(kind: iceberg.IcebergType) -> tuple[iceberg.NestedField, ...]:
    """Return the fields directly inside a type. For a map, the first one is its key."""
    match kind:
        case iceberg.StructType(fields=fields):
            return fields
        case iceberg.ListType():
            return (kind.element_field,)
        case iceberg.MapType():
            return (kind.key_field, kind.value_field)
    return ()


def walk(fields: tuple[iceberg.NestedField, ...]) -> Iterator[iceberg.NestedField]:
    """Return the fields and all fields inside them, at any depth."""
    for field in fields:
        yield field
        yield from walk(children(field.field_type))


def column(fields: tuple[iceberg.NestedField, ...], field_id: int, path: tuple[int, ...] = ()) -> Column | None:
    """Return the column with a field id, which may be inside structs; None if there is none.

    Raises RestrictionNotSupported for a field inside a list or map, because it has several values in one row.
    """
    for index, field in enumerate(fields):
        if field.field_id == field_id:
            return Column((*path, index), field.field_type)
        inside = children(field.field_type)
        if isinstance(field.field_type, iceberg.StructType):
            if found := column(inside, field_id, (*path, index)):
                return found
        elif any(each.field_id == field_id for each in walk(inside)):
            raise RestrictionNotSupported(f"the row filter tests field {field_id}, which is inside of a list or map")
    return None


def mask_within(field: iceberg.NestedField, masks: Mapping[int, Mask]) -> Mask | None:
    """Return the mask of a field that applies `masks`, by field id, to it and to fields inside it. None if nothing is
    masked.
    """
    if field.field_id in masks:
        return masks[field.field_id]
    below = [mask_within(each, masks) for each in children(field.field_type)]
    if not any(below):
        return None
    match field.field_type:
        case iceberg.StructType():
            return lambda values: _struct(values, below)
        case iceberg.ListType():
            return lambda values: _list(values, below[0])
        case iceberg.MapType() if below[0] is None:
            return lambda values: _map(values, below[1])
    raise RestrictionNotSupported(f"field {field.field_id} contains a masked field that this reader cannot replace")


def _applied(mask: Mask | None, values: Any) -> Any:
    return values if mask is None else mask(values)


def _struct(values: Any, masks: list[Mask | None]) -> Any:
    fields = [_applied(mask, values.field(index)) for index, mask in enumerate(masks)]
    return pa.StructArray.from_arrays(fields, fields=list(values.type), mask=values.is_null())


def _list(values: Any, mask: Mask | None) -> Any:
    kind = pa.LargeListArray if pa.types.is_large_list(values.type) else pa.ListArray
    nulls = values.is_null() if values.null_count else None
    return kind.from_arrays(offsets(values), _applied(mask, values.values), type=values.type, mask=nulls)


def _map(values: Any, mask: Mask | None) -> Any:
    nulls = values.is_null() if values.null_count else None
    items = _applied(mask, values.items)
    return pa.MapArray.from_arrays(offsets(values), values.keys, items, type=values.type, mask=nulls)


@dataclass(frozen=True)
class BoundRestrictions:
    """Restrictions that are bound to the schema of the batches. `masks` has the masks by index of the top-level
    column.
    """

    names: tuple[str, ...]
    row_filter: Test | None
    masks: Mapping[int, Mask]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the batch that pass the filter, with masks applied. The schema stays the same.

        Raises RestrictionNotSupported if the batch has other columns than the bound schema.
        """
        if tuple(batch.schema.names) != self.names:
            raise RestrictionNotSupported("a record batch has other columns than the schema of the scan")
        if self.row_filter is not None:
            batch = rows(self.row_filter, batch)
        if not self.masks:
            return batch
        columns = [
            self.masks[index](column) if index in self.masks else column for index, column in enumerate(batch.columns)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def apply(
    batch: pa.RecordBatch, restrictions: ReadRestrictions, schema: Schema, salt: bytes, schemas: Sequence[Schema] = ()
) -> pa.RecordBatch:
    """Return the batch with the restrictions applied.

    `schema` describes its columns, `schemas` are all schemas that the table has had. `salt` is random for each scan.
    """
    return bind(restrictions, schema, schemas or (schema,), salt).apply(batch)


def bind(restrictions: ReadRestrictions, schema: Schema, schemas: Iterable[Schema], salt: bytes) -> BoundRestrictions:
    """Return the restrictions for batches of `schema`. `salt` is random for each scan, with at least 16 bytes.

    A projection is ignored if its field is not in `schema`, but in another of `schemas`. The fields of the row filter
    must be in `schema`; `filter_ids` returns them. Raises RestrictionNotSupported if a restriction cannot be applied.
    """
    known = (schema, *schemas)
    _check(restrictions, known)
    actions = {each.field_id: each.action for each in restrictions.projections}
    places = {
        field.field_id: mask(field, actions[field.field_id], salt)
        for field in walk(schema.fields)
        if field.field_id in actions
    }
    masks = {
        index: found for index, field in enumerate(schema.fields) if (found := mask_within(field, places)) is not None
    }
    test = None
    if restrictions.row_filter != Constant(True):
        test = compiled(restrictions.row_filter, partial(_column, schema))
    return BoundRestrictions(tuple(field.name for field in schema.fields), test, masks)


def filter_ids(predicate: Predicate) -> frozenset[int]:
    """Return the field ids of the columns in a row filter."""
    match predicate:
        case Constant():
            return frozenset()
        case Both(left=left, right=right) | Either(left=left, right=right):
            return filter_ids(left) | filter_ids(right)
        case Not(child=child):
            return filter_ids(child)
        case Unary(child=value) | Membership(child=value):
            return frozenset({value.field_id} if isinstance(value, Reference) else ())
        case Compare(left=first, right=second):
            return frozenset(each.field_id for each in (first, second) if isinstance(each, Reference))


def _column(schema: Schema, field_id: int) -> Column:
    found = column(schema.fields, field_id)
    if found is None:
        raise RestrictionNotSupported(f"field {field_id} of the row filter is not in the schema of the scan")
    return found


def _check(restrictions: ReadRestrictions, schemas: Iterable[Schema]) -> None:
    """Raise RestrictionNotSupported for an id that no schema has, for a key of a map, and for a projection inside
    another.
    """
    wanted = {each.field_id for each in restrictions.projections}
    seen: set[int] = set()
    for schema in schemas:
        seen.update(field.field_id for field in walk(schema.fields))
        for field in schema.fields:
            _check_field(field, wanted, None)
    if missing := sorted((wanted | filter_ids(restrictions.row_filter)) - seen):
        raise RestrictionNotSupported(f"field {missing[0]} of the restrictions is in no schema of the table")


def _check_field(field: iceberg.NestedField, wanted: set[int], above: int | None) -> None:
    if field.field_id in wanted:
        if above is not None:
            raise RestrictionNotSupported(f"field {field.field_id} and field {above}, which contains it, are masked")
        above = field.field_id
    inside = children(field.field_type)
    if isinstance(field.field_type, iceberg.MapType) and any(each.field_id in wanted for each in walk(inside[:1])):
        raise RestrictionNotSupported(f"field {inside[0].field_id} is the key of a map and cannot be masked")
    for each in inside:
        _check_field(each, wanted, above)
