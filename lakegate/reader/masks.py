# SPDX-License-Identifier: Apache-2.0
"""Mask the values of arrow arrays by the nine actions of read-restrictions.

Each mask keeps the arrow type. Texts are masked by code point on the bytes of a whole array. Digests are computed once
for each distinct value of an array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types as iceberg

from lakegate.restrictions.actions import Action, applies
from lakegate.restrictions.wire import RestrictionNotSupported

Mask: TypeAlias = Callable[[Any], Any]
"""Return an array of the same type and length in which each value is replaced."""

#: The minimum length of a salt of `sha-256-query-local`, in bytes.
SALT_BYTES: Final = 16
#: The number of values that `_once` examines for repeated values.
_SAMPLE: Final = 1024
_KEPT: Final = b"(),.-@"
_INSTANTS: Final = (
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.TimestampNanoType,
    iceberg.TimestamptzNanoType,
)
#: Actions that every type supports. `_fixed` refuses types without a fixed value, and null in a required column has its
#: own message.
_OF_ALL_TYPES: Final = frozenset({Action.REPLACE_WITH_NULL, Action.MASK_TO_FIXED_VALUE})
_FIXED: Final[Mapping[type[iceberg.IcebergType], object]] = {
    iceberg.BooleanType: False,
    **dict.fromkeys((iceberg.IntegerType, iceberg.LongType, iceberg.DateType, iceberg.TimeType, *_INSTANTS), 0),
    **dict.fromkeys((iceberg.FloatType, iceberg.DoubleType), 0.0),
    iceberg.DecimalType: Decimal(0),
    iceberg.StringType: "XXXXXXXX",
    iceberg.UUIDType: bytes(16),
    iceberg.BinaryType: b"",
}


def _masked_bytes() -> np.ndarray[Any, np.dtype[np.uint8]]:
    table = np.full(256, ord("x"), np.uint8)
    table[ord("0") : ord("9") + 1] = ord("n")
    table[list(_KEPT)] = list(_KEPT)
    return table


_TABLE: Final = _masked_bytes()


def mask(field: iceberg.NestedField, action: Action, salt: bytes) -> Mask:
    """Return the mask of a column. `salt` is random for each scan, with at least 16 bytes.

    Raises RestrictionNotSupported if the action does not apply to the type, and for null in a required column.
    """
    if action not in _OF_ALL_TYPES and not applies(action, str(field.field_type), required=field.required):
        raise RestrictionNotSupported(f"{action} of field {field.field_id} does not apply to {field.field_type}")
    match action:
        case Action.MASK_ALPHANUM:
            return on_values(mask_alphanum)
        case Action.SHOW_FIRST_4:
            return on_values(show_first_4)
        case Action.SHOW_LAST_4:
            return on_values(show_last_4)
        case Action.REPLACE_WITH_NULL:
            if field.required:
                raise RestrictionNotSupported(f"field {field.field_id} is required and cannot be replaced with null")
            return lambda values: pa.nulls(len(values), values.type)
        case Action.MASK_TO_FIXED_VALUE:
            return _fixed(field)
        case Action.TRUNCATE_TO_YEAR | Action.TRUNCATE_TO_MONTH:
            unit = "year" if action is Action.TRUNCATE_TO_YEAR else "month"
            return on_values(lambda values: truncate(values, unit))
        case Action.SHA_256_GLOBAL:
            return on_values(lambda values: sha_256(values, b""))
        case Action.SHA_256_QUERY_LOCAL:
            if len(salt) < SALT_BYTES:
                raise RestrictionNotSupported(f"the salt of a scan needs at least {SALT_BYTES} bytes")
            return on_values(lambda values: sha_256(values, salt))


def on_values(function: Mask) -> Mask:
    """Return a mask that, for a dictionary-encoded array, changes only the dictionary."""

    def masked(values: Any) -> Any:
        if not isinstance(values, pa.DictionaryArray):
            return function(values)
        # Two values can have the same mask, but a dictionary must not contain a value twice. So `take` decodes first.
        return function(values.dictionary).take(values.indices).dictionary_encode().cast(values.type)

    return masked


def mask_alphanum(values: Any) -> Any:
    """Mask each code point: ASCII digits become `n`, all others `x`, except `( ) , . - @`."""
    kind = values.type
    values = values.cast(pa.large_string())
    offsets, text = _bytes_of(values)
    continuation = (text & 0xC0) == 0x80  # the second and later bytes of a code point in UTF-8
    if continuation.any():
        kept = np.concatenate((np.zeros(1, np.int64), np.cumsum(~continuation, dtype=np.int64)))
        offsets, text = kept[offsets], text[~continuation]
    buffers = [_validity(values), pa.py_buffer(offsets), pa.py_buffer(_TABLE[text])]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers).cast(kind)


def _bytes_of(values: Any) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return (offsets that start at 0, bytes) of an array of large texts or large binaries."""
    if len(values) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], text


def _validity(values: Any) -> Any:
    """Return the validity bitmap, starting at bit 0; None if no value is null."""
    if values.null_count == 0:
        return None
    return pa.py_buffer(np.packbits(values.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))


def show_first_4(values: Any) -> Any:
    """Keep the first four code points and mask the rest."""
    shown = pc.utf8_slice_codeunits(values, 0, 4)
    rest = mask_alphanum(pc.utf8_slice_codeunits(values, 4))
    return pc.binary_join_element_wise(shown, rest, pa.scalar("", values.type)).cast(values.type)


def show_last_4(values: Any) -> Any:
    """Keep the last four code points and mask the rest."""
    shown = pc.utf8_slice_codeunits(values, -4)
    rest = mask_alphanum(pc.utf8_slice_codeunits(values, 0, -4))
    return pc.binary_join_element_wise(rest, shown, pa.scalar("", values.type)).cast(values.type)


def truncate(values: Any, unit: str) -> Any:
    """Set the parts of a date or time below `unit` (`year`, `month`) to their least value. Time zones are UTC.

    Raises RestrictionNotSupported if the result is outside of the type's range.
    """
    kind, raw = values.type, values
    if pa.types.is_timestamp(kind):
        raw = values.cast(pa.int64()).cast(pa.timestamp(kind.unit))  # the date and time in UTC of each instant
    found = pc.floor_temporal(raw, unit=unit)
    if pc.any(pc.greater(found, raw)).as_py() or _wrapped(found, raw):
        raise RestrictionNotSupported(f"a date cannot be truncated to the {unit}: it is outside of the type's range")
    return found.cast(pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else found.cast(kind)


def _wrapped(found: Any, raw: Any) -> bool:
    """Return True if a date was not truncated to the start of its own year, because the year overflowed.

    The kernel has years of 16 bits, and wraps around beyond them.
    """
    start, day = (each.cast(pa.date32(), safe=False).cast(pa.int32()) for each in (found, raw))
    return bool(pc.any(pc.greater(pc.subtract(day, start), 366)).as_py())


def sha_256(values: Any, salt: bytes) -> Any:
    """Return the SHA-256 digests: hexadecimal text for text, the first bytes as a number for int and long, else 32
    bytes.
    """
    kind = values.type
    if pa.types.is_int32(kind) or pa.types.is_int64(kind):
        return _once(values, lambda distinct: _hash_numbers(distinct, salt))
    as_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return _once(values.cast(pa.large_binary()), lambda distinct: _hash_bytes(distinct, salt, as_text)).cast(kind)


def _once(values: Any, function: Mask) -> Any:
    """Apply a slow function once to each distinct value. If the first values hardly repeat, apply it to all values."""
    sample = values[:_SAMPLE]
    if pc.count_distinct(sample).as_py() > len(sample) // 2:
        return function(values)
    encoded = values.dictionary_encode()
    return function(encoded.dictionary).take(encoded.indices)


def _hash_bytes(values: Any, salt: bytes, as_text: bool) -> Any:
    offsets, data = _bytes_of(values)
    raw, bounds, sha256 = data.tobytes(), offsets.tolist(), hashlib.sha256
    digests = b"".join([sha256(salt + raw[start:stop]).digest() for start, stop in pairwise(bounds)])
    if as_text:
        digests = digests.hex().encode()
    width, kind = (64, pa.large_string()) if as_text else (32, pa.large_binary())
    places = np.arange(len(values) + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(places), pa.py_buffer(digests)])


def _hash_numbers(values: Any, salt: bytes) -> Any:
    size, sha256 = values.type.bit_width // 8, hashlib.sha256
    raw = np.asarray(values.fill_null(0)).astype(f"<i{size}").tobytes()
    starts = range(0, len(raw), size)
    digests = b"".join([sha256(salt + raw[start : start + size]).digest()[:size] for start in starts])
    found = np.frombuffer(digests, f"<i{size}").astype(f"=i{size}")
    return pa.Array.from_buffers(values.type, len(values), [_validity(values), pa.py_buffer(found)])


def _fixed(field: iceberg.NestedField) -> Mask:
    value = fixed_value(field.field_type, field.field_id)
    return lambda values: _repeated(value, values.type, len(values))


def _repeated(value: Any, kind: pa.DataType, length: int) -> Any:
    """Return an array of equal values. Arrow repeats no empty list, and no value of an extension inside of a struct."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(_repeated(value, kind.storage_type, length))
    if pa.types.is_dictionary(kind):
        return pa.repeat(pa.scalar(value, kind.value_type), length).cast(kind)
    if isinstance(value, dict) and value:
        fields = [_repeated(value[each.name], each.type, length) for each in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    if isinstance(value, list):
        width = np.int64 if pa.types.is_large_list(kind) else np.int32
        parts = (kind.key_type, kind.item_type) if pa.types.is_map(kind) else (kind.value_type,)
        starts = pa.array(np.zeros(length + 1, width))
        return type(pa.nulls(0, kind)).from_arrays(starts, *(pa.nulls(0, each) for each in parts), type=kind)
    return pa.repeat(pa.scalar(value, kind), length)


def fixed_value(kind: iceberg.IcebergType, field_id: int) -> object:
    """Return the fixed value of a type, which also replaces null. Raises RestrictionNotSupported if the type has
    none.
    """
    if type(kind) in _FIXED:
        return _FIXED[type(kind)]
    match kind:
        case iceberg.FixedType():
            return bytes(len(kind))
        case iceberg.StructType(fields=fields):
            return {each.name: fixed_value(each.field_type, field_id) for each in fields}
        case iceberg.ListType(element_type=element):
            fixed_value(element, field_id)  # refuses a list of a type without a fixed value
            return []
        case iceberg.MapType(key_type=key, value_type=value):
            fixed_value(key, field_id)
            fixed_value(value, field_id)
            return []
    raise RestrictionNotSupported(f"field {field_id} has no fixed value: its type is {kind}, or contains such a type")
