# SPDX-License-Identifier: Apache-2.0
"""Find fields of a schema at any depth, and mask fields inside of structs, lists and maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyiceberg import types as iceberg

from lakegate.reader.files import offsets
from lakegate.reader.masks import Mask
from lakegate.reader.predicates import Column
from lakegate.restrictions.wire import RestrictionNotSupported


def children(kind: iceberg.IcebergType) -> tuple[iceberg.NestedField, ...]:
    """Return the fields directly inside of a type. The first one of a map is its key."""
    match kind:
        case iceberg.StructType(fields=fields):
            return fields
        case iceberg.ListType():
            return (kind.element_field,)
        case iceberg.MapType():
            return (kind.key_field, kind.value_field)
    return ()


def walk(fields: tuple[iceberg.NestedField, ...]) -> Iterator[iceberg.NestedField]:
    """Return the fields and all fields inside of them."""
    for field in fields:
        yield field
        yield from walk(children(field.field_type))


def column(fields: tuple[iceberg.NestedField, ...], field_id: int, path: tuple[int, ...] = ()) -> Column | None:
    """Return the column of a field id, through structs only, or None.

    Raise RestrictionNotSupported for a field inside of a list or map, which has several values in a row.
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
    """Return the mask of a field that applies `masks`, by field id, at each depth. None if it has no masked field."""
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
