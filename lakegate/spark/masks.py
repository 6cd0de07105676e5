# SPDX-License-Identifier: Apache-2.0
"""Compile the nine actions of `read-restrictions` to Spark columns, without Python functions.

Source: `Action` in the Iceberg REST catalog specification. Each mask keeps the type of its column. No mask depends on
the time zone of the session or on ANSI mode: timestamps are truncated by arithmetic on seconds since 1970 in UTC.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as f

from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import ListType, MapType, StructType, Type, type_name
from lakegate.spark.errors import RestrictionsRefused

SALT_BYTES: Final = 32
_SHOWN: Final = 4
_DAY_SECONDS: Final = 86_400
_INT_RANGE: Final = 2**32

#: The fixed values by Iceberg type, as (text, Spark type). Values of `fixed` and of nested types are computed.
_FIXED: Final = {
    "boolean": ("false", "boolean"),
    "int": ("0", "int"),
    "long": ("0", "bigint"),
    "float": ("0", "float"),
    "double": ("0", "double"),
    "string": ("XXXXXXXX", "string"),
    "date": ("1970-01-01", "date"),
    "timestamp": ("1970-01-01T00:00:00", "timestamp_ntz"),
    "timestamptz": ("1970-01-01T00:00:00+00:00", "timestamp"),
    "uuid": ("00000000-0000-0000-0000-000000000000", "string"),
}
#: Iceberg types with another name in Spark. The others have the same name, or no counterpart.
_SPARK_TYPES: Final = {
    **{"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "uuid": "string"},
    **{"fixed": "binary", "unknown": "void"},
}
_SAME_TYPES: Final = frozenset({"boolean", "int", "float", "double", "string", "date", "binary", "variant"})


def spark_type(kind: Type) -> str:
    """Return the Spark type of an Iceberg type, as in `DataType.simpleString()` with quoted names of fields.

    Raises:
        RestrictionsRefused: Spark has no such type.
    """
    match kind:
        case StructType(fields=fields):
            return f"struct<{','.join(f'{_quoted(each.name)}:{spark_type(each.type)}' for each in fields)}>"
        case ListType(element=element):
            return f"array<{spark_type(element)}>"
        case MapType(key=key, value=value):
            return f"map<{spark_type(key)},{spark_type(value)}>"
    name = type_name(kind)
    if name == "decimal":
        return kind
    if name in _SAME_TYPES:
        return name
    if name in _SPARK_TYPES:
        return _SPARK_TYPES[name]
    raise RestrictionsRefused(f"Spark has no type for the Iceberg type {kind}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def masked(action: Action, column: Column, kind: Type, *, salt: bytes) -> Column:
    """Return the column with `action` applied. The decoder has checked that the action applies to the Iceberg type
    `kind`.

    `salt`: at least 16 random bytes, the same for all tables of one query; only `sha-256-query-local` uses it.
    """
    match action:
        case Action.REPLACE_WITH_NULL:
            return f.lit(None).cast(spark_type(kind))
        case Action.MASK_TO_FIXED_VALUE:
            return fixed_value(kind)
        case Action.MASK_ALPHANUM:
            return _alphanum(column)
        case Action.SHOW_FIRST_4:
            return f.concat(f.substring(column, 1, _SHOWN), _alphanum(column.substr(_SHOWN + 1, 2**31 - 1)))
        case Action.SHOW_LAST_4:
            hidden = f.char_length(column) - _SHOWN
            shown = f.concat(_alphanum(column.substr(f.lit(1), hidden)), column.substr(hidden + 1, f.lit(_SHOWN)))
            return f.when(hidden <= 0, column).otherwise(shown)
        case Action.TRUNCATE_TO_YEAR:
            return _truncated(column, kind, "year")
        case Action.TRUNCATE_TO_MONTH:
            return _truncated(column, kind, "month")
        case Action.SHA_256_GLOBAL:
            return _hashed(_canonical_bytes(column, kind), kind)
        case Action.SHA_256_QUERY_LOCAL:
            return _hashed(f.concat(f.lit(bytearray(salt)), _canonical_bytes(column, kind)), kind)


def fixed_value(kind: Type) -> Column:
    """Return the fixed value of an Iceberg type. The fields of a struct have their own fixed values.

    Raises:
        RestrictionsRefused: Spark has no such type, or the type has no fixed value.
    """
    match kind:
        case StructType(fields=fields):
            struct = f.struct(*(fixed_value(each.type).alias(each.name) for each in fields))
            return struct.cast(spark_type(kind))
        case ListType():
            return f.array().cast(spark_type(kind))
        case MapType():
            return f.create_map().cast(spark_type(kind))
    name = type_name(kind)
    if name in _FIXED:
        text, spark = _FIXED[name]
        return f.lit(text).cast(spark)
    match name:
        case "decimal":
            return f.lit("0").cast(kind)
        case "binary":
            return f.lit(bytearray())
        case "fixed":
            return f.lit(bytearray(_width(kind)))
        case "variant":
            return f.parse_json(f.lit("{}"))
    raise RestrictionsRefused(f"Spark has no fixed value for the Iceberg type {kind}")


def _width(kind: str) -> int:
    shape = re.fullmatch(r"fixed\[(\d+)\]", kind)
    if shape is None:
        raise RestrictionsRefused(f"the Iceberg type {kind} has no width")
    return int(shape[1])


def _alphanum(column: Column) -> Column:
    """Return the text in which ASCII digits are `n` and all other characters except `( ) , . - @` are `x`.

    Java's regular expressions work on code points. After the first replacement only ASCII characters are left.
    """
    return f.regexp_replace(f.regexp_replace(column, r"[^0-9(),.\-@]", "x"), "[0-9]", "n")


def _truncated(column: Column, kind: Type, unit: str) -> Column:
    match kind:
        case "date":
            return f.trunc(column, unit)
        case "timestamp":
            # For a timestamp without time zone, `date_trunc` would convert to the time zone of the session and back.
            return f.trunc(column.cast("date"), unit).cast("timestamp_ntz")
        case "timestamptz":
            seconds = f.unix_seconds(column)
            days = f.call_function("div", seconds - f.pmod(seconds, f.lit(_DAY_SECONDS)), f.lit(_DAY_SECONDS))
            first = f.unix_date(f.trunc(f.date_from_unix_date(days.cast("int")), unit))
            return f.timestamp_seconds(first.cast("bigint") * f.lit(_DAY_SECONDS).cast("bigint"))
    raise RestrictionsRefused(f"Spark cannot truncate values of the Iceberg type {type_name(kind)}")


def _canonical_bytes(column: Column, kind: Type) -> Column:
    """Return the bytes to hash: UTF-8 of a text, 4 or 8 little-endian bytes of an integer, and binary values
    unchanged.
    """
    match kind:
        case "string":
            return column.cast("binary")
        case "binary":
            return column
        case "int":
            unsigned = column.cast("bigint").bitwiseAND(f.lit(_INT_RANGE - 1))
            return f.unhex(_reversed(f.lpad(f.hex(unsigned), 8, "0"), 4))
        case "long":
            return f.unhex(_reversed(f.lpad(f.hex(column), 16, "0"), 8))
    raise RestrictionsRefused(f"there is no SHA-256 of values of the Iceberg type {type_name(kind)}")


def _hashed(data: Column, kind: Type) -> Column:
    """Return the digest in the type of the column: hexadecimal text, all bytes, or an integer from the first bytes."""
    digest = f.sha2(data, 256)
    match kind:
        case "string":
            return digest
        case "binary":
            return f.unhex(digest)
        case "int":
            unsigned = f.conv(_reversed(digest, 4), 16, 10).cast("bigint")
            signed = f.when(unsigned >= _INT_RANGE // 2, unsigned - _INT_RANGE).otherwise(unsigned)
            return signed.cast("int")
        case _:
            # A negative base makes the result of `conv` signed.
            return f.conv(_reversed(digest, 8), 16, -10).cast("bigint")


def _reversed(digits: Column, size: int) -> Column:
    """Return the first `size` bytes of a hexadecimal text in reverse order, as hexadecimal text."""
    return f.concat(*(f.substring(digits, 2 * at + 1, 2) for at in reversed(range(size))))
