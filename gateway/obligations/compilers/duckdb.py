# SPDX-License-Identifier: Apache-2.0
"""Compile restrictions to the text of a view of DuckDB, and of other dialects that are close to PostgreSQL.

The text does not depend on the time zone of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from gateway.iceberg.predicates import ALWAYS, Predicate
from gateway.iceberg.types import ListType, MapType, StructType, Type, type_name
from gateway.obligations.columns import Columns, RestrictionNotExpressible
from gateway.obligations.compilers.sql import Dialect, predicate_sql, quoted, require_applicable
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.masks import Action

_RAW: Final = '"unrestricted"'
_SWAP: Final = "'" + "(..)" * 8 + r"', '\8\7\6\5\4\3\2\1'"

_DIALECT: Final = Dialect(
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
)


def view_sql(columns: Columns, restrictions: TableRestrictions, source: str, *, salt: bytes | None = None) -> str:
    """Return a SELECT of the current columns of `source`, a table or subquery in SQL, with the restrictions applied.

    The filter reads original values. `salt` is that of `mask_sql`. Raises RestrictionNotExpressible for what DuckDB
    cannot express.
    """
    masks = {each.field_id: each.action for each in restrictions.masks}
    selected = []
    for field in columns.current:
        column = f"{_RAW}.{_DIALECT.quote(field.name)}"
        if field.id in masks:
            column = _mask(masks[field.id], column, field.type, required=field.required, salt=salt)
        selected.append(f"{column} AS {_DIALECT.quote(field.name)}")
    names = {field.id: field.name for field in columns.current}
    text = f"SELECT {', '.join(selected)} FROM {source} AS {_RAW}"  # noqa: S608 - `source` is SQL, the rest is quoted
    if restrictions.row_filter == ALWAYS:
        return text
    return f"{text} WHERE {predicate_sql(restrictions.row_filter, names, _DIALECT, f'{_RAW}.')}"


def row_filter_sql(predicate: Predicate, names: Mapping[int, str]) -> str:
    """Return the condition of a row filter. `names` maps field ids to column names."""
    return predicate_sql(predicate, names, _DIALECT)


def mask_sql(action: Action, name: str, kind: Type, *, required: bool, salt: bytes | None = None) -> str:
    """Return the expression that replaces the column `name` of the type.

    `salt` has at least 16 random bytes; only `sha-256-query-local` uses them. A copy with the same salt can be joined
    with another one. Raises RestrictionNotExpressible if the action does not apply to the type, DuckDB does not have
    the type, or the salt is missing.
    """
    return _mask(action, _DIALECT.quote(name), kind, required=required, salt=salt)


def _mask(action: Action, column: str, kind: Type, *, required: bool, salt: bytes | None) -> str:
    require_applicable(action, kind, required=required)
    match action:
        case Action.REPLACE_WITH_NULL:
            return f"CAST(NULL AS {_type(kind)})"
        case Action.MASK_TO_FIXED_VALUE:
            return _fixed_value(kind)
        case Action.MASK_ALPHANUM:
            return _alphanum(column)
        case Action.SHOW_FIRST_4:
            return f"(substring({column}, 1, 4) || {_alphanum(f'substring({column}, 5)')})"
        case Action.SHOW_LAST_4:
            hidden = f"greatest(length({column}) - 4, 0)"
            return f"({_alphanum(f'substring({column}, 1, {hidden})')} || substring({column}, {hidden} + 1))"
        case Action.TRUNCATE_TO_YEAR:
            return _truncated("year", column, kind)
        case Action.TRUNCATE_TO_MONTH:
            return _truncated("month", column, kind)
        case Action.SHA_256_GLOBAL:
            return _hashed(column, kind, b"")
        case Action.SHA_256_QUERY_LOCAL:
            if salt is None or len(salt) < 16:
                raise RestrictionNotExpressible("sha-256-query-local needs a salt of at least 16 bytes for the query")
            return _hashed(column, kind, salt)
        case _:
            assert_never(action)


def _alphanum(text: str) -> str:
    """Replace all characters but digits and the six that are kept with `x`, then digits with `n`."""
    return f"regexp_replace(regexp_replace({text}, '[^0-9(),.@-]', 'x', 'g'), '[0-9]', 'n', 'g')"


def _truncated(unit: str, column: str, kind: Type) -> str:
    sql_type = _type(kind)
    if type_name(kind) == "timestamptz":
        return f"(date_trunc('{unit}', {column} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"
    if type_name(kind) == "timestamp_ns":
        # `date_trunc` would round to microseconds first, and so to the next year at its end.
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
    """Return the signed 64-bit integer of 16 hexadecimal digits in little-endian order."""
    unsigned = f"CAST('0x' || regexp_replace({little_endian}, {_SWAP}) AS UBIGINT)"
    return f"CAST(CAST({unsigned} AS BIT) AS BIGINT)"


def _type(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            if not fields:
                raise RestrictionNotExpressible("DuckDB has no structs without fields")
            return f"STRUCT({', '.join(f'{_DIALECT.quote(field.name)} {_type(field.type)}' for field in fields)})"
        case ListType(element=element):
            return f"{_type(element)}[]"
        case MapType(key=key, value=value):
            return f"MAP({_type(key)}, {_type(value)})"
        case _:
            return _DIALECT.primitive(kind)


def _fixed_value(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            members = (f"{_DIALECT.quote(field.name)} := {_fixed_value(field.type)}" for field in fields)
            return f"CAST(struct_pack({', '.join(members)}) AS {_type(kind)})"
        case ListType():
            return f"CAST([] AS {_type(kind)})"
        case MapType():
            return f"CAST(MAP {{}} AS {_type(kind)})"
        case _:
            return _DIALECT.fixed_value(kind)
