# SPDX-License-Identifier: Apache-2.0
"""Read data files with PyIceberg. Unlike in PyIceberg, null lists and maps stay null.

PyIceberg 0.12 rebuilds a list or map that contains structs from its offsets alone, so null becomes an empty list
(https://github.com/apache/iceberg-python/issues/3833). A row filter with `is-null` would then keep other rows than in
other engines. PyIceberg has no parameter for its projection, so this module uses copies of its functions with another
projection. PyIceberg itself is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.io import pyarrow as original
from pyiceberg.io.pyarrow import ArrowProjectionVisitor, ArrowScan
from pyiceberg.table import FileScanTask

from lakegate.reader.failures import ReadFailed


class Projection(ArrowProjectionVisitor):
    """Converts a record batch of a file to the schema of a scan. Null lists and maps stay null."""

    def list(self, list_type: iceberg.ListType, list_array: Any, value_array: Any) -> Any:
        """Return the list with projected elements, or None if the file does not have it."""
        found = super().list(list_type, list_array, value_array)
        if found is None or found.null_count == list_array.null_count:
            return found
        kind = pa.LargeListArray if pa.types.is_large_list(found.type) else pa.ListArray
        return kind.from_arrays(offsets(found), found.values, type=found.type, mask=list_array.is_null())

    def map(self, map_type: iceberg.MapType, map_array: Any, key_result: Any, value_result: Any) -> Any:
        """Return the map with projected keys and values, or None if the file does not have it."""
        found = super().map(map_type, map_array, key_result, value_result)
        if found is None or found.null_count == map_array.null_count:
            return found
        nulls = map_array.is_null()
        return pa.MapArray.from_arrays(offsets(found), found.keys, found.items, type=found.type, mask=nulls)


def readable(tasks: Iterable[FileScanTask]) -> list[FileScanTask]:
    """Return the files of a scan. Raises ReadFailed if PyArrow cannot read the format of one of them."""
    found = list(tasks)
    if others := sorted({each.file.file_format.value for each in found} - {"PARQUET", "ORC"}):
        raise ReadFailed(
            f"the table has data files of the format {others[0]}: PyIceberg reads Parquet and ORC only. Read the table "
            "with Spark or Trino, or rewrite its files as Parquet"
        )
    return found


def offsets(values: Any) -> Any:
    """Return a copy of the offsets of a list or map. Arrow does not accept a slice of offsets together with nulls."""
    return pa.array(np.array(values.offsets))


_NAMES: dict[str, Any] = {**vars(original), "ArrowProjectionVisitor": Projection}


def _bound(function: Any) -> Any:
    """Return a copy of a PyIceberg function that looks up names in the table of this module."""
    return FunctionType(function.__code__, _NAMES, function.__name__, function.__defaults__, function.__closure__)


for _name in ("_to_requested_schema", "_task_to_record_batches"):
    _NAMES[_name] = _bound(_NAMES[_name])


class FileScan(ArrowScan):
    """PyIceberg's scan of the files of a table, with the projection of this module."""

    _record_batches_from_scan_tasks_and_deletes = _bound(ArrowScan._record_batches_from_scan_tasks_and_deletes)
