# SPDX-License-Identifier: Apache-2.0
"""Compile row filters and masks to expressions of DuckDB.

The expressions do not depend on the time zone of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.obligations.compilers.sql import Dialect, mask_text, predicate_sql, quoted
from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import ListType, MapType, StructType, Type, type_name
from lakegate.restrictions.predicates import Predicate

_SWAP: Final = "'" + "(..)" * 8 + r"', '\8\7\6\5\4\3\2\1'"

DIALECT: Final = Dialect(
    name="DuckDB",
    quote=lambda name: quoted('"', name),
    text=lambda text: quoted("'", text),
    binary=lambda digits: f"unhex('{digits}')",
    types={
        "boolean": "BOOLEAN",
        "int": "INTEGER",
        "long": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "date": "DATE",
        "time": "TIME",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMP WITH TIME ZONE",
        "timestamp_ns": "TIMESTAMP_NS",
        "string": "VARCHAR",
        "uuid": "UUID",
        "binary": "BLOB",
        "fixed": "BLOB",
    },
    zone="+00:00",
    is_nan="isnan",
    starts_with="starts_with",
    substring="substring",
    concat="({} || {})",
    replace="regexp_replace({}, '{}', '{}', 'g')",
    type_of=lambda kind: _type(kind),
    fixed_of=lambda kind: _fixed_value(kind),
    truncated=lambda unit, column, kind: _truncated(unit, column, kind),
    hashed=lambda column, kind, salt: _hashed(column, kind, salt),
)


def row_filter_sql(predicate: Predicate, names: Mapping[int, str]) -> str:
    """Return the condition of a row filter. `names` maps field ids to column names."""
    return predicate_sql(predicate, names, DIALECT)


def mask_sql(action: Action, name: str, kind: Type, *, required: bool, salt: bytes | None = None) -> str:
    """Return the expression that replaces the column `name` of the type.

    `salt` has at least 16 random bytes; only `sha-256-query-local` uses them. Two masked copies with the same salt can
    be joined. Raises RestrictionNotExpressible if the action does not apply to the type, DuckDB does not have the type,
    or the salt is missing.
    """
    return mask_text(action, DIALECT.quote(name), kind, DIALECT, required=required, salt=salt)


def _truncated(unit: str, column: str, kind: Type) -> str:
    sql_type = _type(kind)
    if type_name(kind) == "timestamptz":
        return f"(date_trunc('{unit}', {column} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"
    if type_name(kind) == "timestamp_ns":
        # `date_trunc` would round to microseconds first, which gives the next year for the last nanoseconds of a year.
        column = f"make_timestamp((epoch_ns({column}) - (epoch_ns({column}) % 1000 + 1000) % 1000) // 1000)"
    return f"CAST(date_trunc('{unit}', {column}) AS {sql_type})"


def _hashed(column: str, kind: Type, salt: bytes) -> str:
    def digest(canonical: str) -> str:
        return f"sha256(unhex('{salt.hex()}') || {canonical})"

    little_endian = f"regexp_replace(lpad(hex(CAST({column} AS BIGINT)), 16, '0'), {_SWAP})"
    match type_name(kind):
        case "string":
            return digest(f"encode({column})")
        case "binary":
            return f"unhex({digest(column)})"
        case "int":
            first = f"substring({digest(f'unhex(substring({little_endian}, 1, 8))')}, 1, 8)"
            value = _signed(f"('00000000' || {first})")
            return f"CAST({value} >> 32 AS INTEGER)"
        case "long":
            return _signed(f"substring({digest(f'unhex({little_endian})')}, 1, 16)")
        case other:
            raise RestrictionNotExpressible(f"DuckDB cannot hash columns of the type {other}")


def _signed(little_endian: str) -> str:
    """Return the signed 64-bit integer that 16 hexadecimal digits in little-endian order represent."""
    unsigned = f"CAST('0x' || regexp_replace({little_endian}, {_SWAP}) AS UBIGINT)"
    return f"CAST(CAST({unsigned} AS BIT) AS BIGINT)"


def _type(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            if not fields:
                raise RestrictionNotExpressible("DuckDB has no structs without fields")
            return f"STRUCT({', '.join(f'{DIALECT.quote(field.name)} {_type(field.type)}' for field in fields)})"
        case ListType(element=element):
            return f"{_type(element)}[]"
        case MapType(key=key, value=value):
            return f"MAP({_type(key)}, {_type(value)})"
        case _:
            return DIALECT.primitive(kind)


def _fixed_value(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            members = (f"{DIALECT.quote(field.name)} := {_fixed_value(field.type)}" for field in fields)
            return f"CAST(struct_pack({', '.join(members)}) AS {_type(kind)})"
        case ListType():
            return f"CAST([] AS {_type(kind)})"
        case MapType():
            return f"CAST(MAP {{}} AS {_type(kind)})"
        case _:
            return DIALECT.fixed_value(kind)
