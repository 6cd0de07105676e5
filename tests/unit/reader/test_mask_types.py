# SPDX-License-Identifier: Apache-2.0
"""Every mask of each type, at the top of a table and inside of other types, on batches of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from lakegate.reader import Action, RestrictionNotSupported, bind
from lakegate.reader.masks import mask
from lakegate.restrictions.actions import Projection
from lakegate.restrictions.wire import Compare, Literal, Predicate, ReadRestrictions, Reference

SALT = bytes(range(16))
ID, ROW = 50, 99


def _field(id: int, kind: iceberg.IcebergType) -> iceberg.NestedField:
    return iceberg.NestedField(id, f"f{id}", kind, required=False)


LIST = iceberg.ListType(60, iceberg.IntegerType(), element_required=False)
STRUCT = iceberg.StructType(_field(61, iceberg.StringType()), _field(62, LIST))
TYPES: tuple[iceberg.IcebergType, ...] = (
    *(iceberg.BooleanType(), iceberg.IntegerType(), iceberg.LongType(), iceberg.FloatType(), iceberg.DoubleType()),
    *(iceberg.DecimalType(9, 2), iceberg.DateType(), iceberg.TimeType(), iceberg.TimestampType()),
    *(iceberg.TimestamptzType(), iceberg.TimestampNanoType(), iceberg.TimestamptzNanoType()),
    *(iceberg.StringType(), iceberg.UUIDType(), iceberg.BinaryType(), iceberg.FixedType(3)),
    LIST,
    iceberg.ListType(63, STRUCT, element_required=False),
    iceberg.MapType(64, iceberg.StringType(), 65, STRUCT, value_required=False),
    iceberg.StructType(_field(66, iceberg.LongType())),
    STRUCT,
    iceberg.StructType(_field(71, iceberg.UUIDType())),
    iceberg.ListType(72, iceberg.UUIDType(), element_required=False),
    iceberg.StructType(_field(67, iceberg.MapType(68, iceberg.StringType(), 69, STRUCT, value_required=False))),
)
#: The types that contain the masked field: none, and one of each nested type.
PLACES = ("column", "field", "element", "value")
VALUES: dict[type[iceberg.IcebergType], Any] = {
    iceberg.StringType: "Łódź 7",
    iceberg.UUIDType: bytes(range(16)),
    iceberg.BinaryType: b"x",
    iceberg.FixedType: b"xyz",
    iceberg.ListType: [],
    iceberg.MapType: [],
    iceberg.StructType: {},
    iceberg.BooleanType: True,
}


def _pairs() -> Iterator[Any]:
    for kind in TYPES:
        for action in Action:
            try:
                mask(_field(ID, kind), action, SALT)
            except RestrictionNotSupported:
                continue
            yield pytest.param(action, kind, id=f"{action} of {kind}"[:60])


def _within(place: str, kind: iceberg.IcebergType) -> iceberg.IcebergType:
    match place:
        case "field":
            return iceberg.StructType(_field(70, iceberg.IntegerType()), _field(ID, kind))
        case "element":
            return iceberg.ListType(ID, kind, element_required=False)
        case "value":
            return iceberg.MapType(70, iceberg.StringType(), ID, kind, value_required=False)
    return kind


def _values(place: str, kind: iceberg.IcebergType, rows: int) -> list[Any]:
    one = VALUES.get(type(kind), 0)
    around = {"column": one, "field": {f"f{ID}": one}, "element": [one, None], "value": [("k", one), ("l", None)]}
    return [(around[place], None, [] if place in ("element", "value") else None)[at % 3] for at in range(rows)]


def _array(values: list[Any], kind: pa.DataType) -> Any:
    """Return an array. Arrow makes no UUID inside of another type from Python values, but casts to one."""
    if not pa.types.is_nested(kind):
        return pa.array(values, kind)
    return pa.array(values, _storage(kind)).cast(kind)


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_storage(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_storage(kind.item_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_storage(kind.value_type)))
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("action", "kind"), list(_pairs()))
def test_mask_of_each_type_applies_to_batches_of_any_size(
    action: Action, kind: iceberg.IcebergType, place: str
) -> None:
    """A filter can leave no row, one row or all rows. Lists without elements leave no value to mask."""
    schema = Schema(_field(1 if place != "column" else ID, _within(place, kind)), _field(ROW, iceberg.LongType()))
    masked = (Projection(ID, action),)
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    batch = pa.RecordBatch.from_arrays(
        [_array(_values(place, kind, 3), arrow.types[0]), pa.array(range(3), pa.int64())], schema=arrow
    )
    # The predicate of a filter is evaluated, a constant one is not.
    filters: tuple[tuple[Predicate, int], ...] = tuple(
        (Compare("lt", Reference(ROW), Literal(limit)), limit) for limit in (0, 1, 2, 3)
    )
    for row_filter, rows in filters:
        for given in (batch, batch.slice(2), batch.slice(1, 1), batch.slice(0, 0)):
            found = bind(ReadRestrictions(masked, row_filter), schema, (), SALT).apply(given)
            found.validate(full=True)
            kept = [each for each in given.column(1).to_pylist() if each < rows]
            assert found.schema == arrow and found.column(1).to_pylist() == kept
            whole = bind(ReadRestrictions(masked), schema, (), SALT).apply(batch).column(0).to_pylist()
            assert found.column(0).to_pylist() == [whole[each] for each in kept]
