# SPDX-License-Identifier: Apache-2.0
"""Compile row filters and masks to expressions of Spark SQL, as `pyspark.sql.functions.expr` accepts them.

The expressions do not depend on settings of the session: time zone, ANSI mode, the type behind `TIMESTAMP`, and escapes
in string literals. Spark reads a UUID as a string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gateway.obligations.compilers.sql import Dialect, mask_text, predicate_sql, quoted
from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import ListType, MapType, StructType, Type, type_name
from lakegate.restrictions.predicates import Predicate

_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.,:@/+-]*")
_MICROSECONDS_OF_DAY: Final = "86400000000L"
_SWAP: Final = "'" + "(..)" * 8 + "', '$8$7$6$5$4$3$2$1'"


def _quote(name: str) -> str:
    """Quote a column name. A name with `${` is refused, because Spark substitutes variables even inside of quotes."""
    if "${" in name:
        raise RestrictionNotExpressible("Spark cannot refer to a column whose name contains '${'")
    return quoted("`", name)


def _text(text: str) -> str:
    """Return a string literal.

    Texts with escapes or variables are written as bytes, because a setting determines their meaning.
    """
    return f"'{text}'" if _PLAIN.fullmatch(text) else f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


DIALECT: Final = Dialect(
    name="Spark",
    quote=_quote,
    text=_text,
    binary=lambda digits: f"X'{digits}'",
    types={
        "boolean": "BOOLEAN",
        "int": "INT",
        "long": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "date": "DATE",
        "timestamp": "TIMESTAMP_NTZ",
        "timestamptz": "TIMESTAMP_LTZ",
        "string": "STRING",
        "uuid": "STRING",
        "binary": "BINARY",
        "fixed": "BINARY",
    },
    zone="+00:00",
    is_nan="isnan",
    starts_with="startswith",
    substring="substring",
    concat="concat({}, {})",
    replace="regexp_replace({}, '{}', '{}')",
    type_of=lambda kind: _type(kind),
    fixed_of=lambda kind: _fixed_value(kind),
    truncated=lambda unit, column, kind: _truncated(unit.upper(), column, kind),
    hashed=lambda column, kind, salt: _hashed(column, kind, salt),
)


def row_filter_sql(predicate: Predicate, names: Mapping[int, str]) -> str:
    """Return the condition of a row filter. `names` maps field ids to the column names of the schema that is read.

    Raises RestrictionNotExpressible for a column without a name, and for a type that Spark does not have.
    """
    return predicate_sql(predicate, names, DIALECT)


def mask_sql(action: Action, name: str, kind: Type, *, required: bool, salt: bytes | None = None) -> str:
    """Return the expression that replaces the column `name` of the type.

    `salt` has at least 16 random bytes that are made for one query; only `sha-256-query-local` uses them.
    Raises RestrictionNotExpressible if the action does not apply to the type, Spark does not have the type, or the salt
    is missing.
    """
    return mask_text(action, DIALECT.quote(name), kind, DIALECT, required=required, salt=salt)


def _truncated(unit: str, column: str, kind: Type) -> str:
    """Return the truncation of a column in UTC. `date_trunc` would use the time zone of the session."""
    _type(kind)
    match type_name(kind):
        case "date":
            return f"trunc({column}, '{unit}')"
        case "timestamp":
            return f"CAST(trunc(CAST({column} AS DATE), '{unit}') AS TIMESTAMP_NTZ)"
        case _:
            days = f"CAST((unix_micros({column}) - pmod(unix_micros({column}), {_MICROSECONDS_OF_DAY})) DIV "
            days += f"{_MICROSECONDS_OF_DAY} AS INT)"
            day = f"trunc(date_from_unix_date({days}), '{unit}')"
            return f"timestamp_micros(CAST(unix_date({day}) AS BIGINT) * {_MICROSECONDS_OF_DAY})"


def _hashed(column: str, kind: Type, salt: bytes) -> str:
    def digest(canonical: str) -> str:
        salted = f"concat(X'{salt.hex().upper()}', {canonical})" if salt else canonical
        return f"sha2({salted}, 256)"

    little_endian = f"regexp_replace(lpad(hex(CAST({column} AS BIGINT)), 16, '0'), {_SWAP})"
    match type_name(kind):
        case "string":
            return digest(f"CAST({column} AS BINARY)")
        case "binary":
            return f"unhex({digest(column)})"
        case "int":
            # The four bytes become the upper half of a 64-bit number, so that the right shift extends the sign.
            first = f"substring({digest(f'unhex(substring({little_endian}, 1, 8))')}, 1, 8)"
            value = _signed(f"concat('00000000', {first})")
            return f"CAST(shiftright({value}, 32) AS INT)"
        case "long":
            return _signed(f"substring({digest(f'unhex({little_endian})')}, 1, 16)")
        case other:
            raise RestrictionNotExpressible(f"Spark cannot hash columns of the type {other}")


def _signed(little_endian: str) -> str:
    """Return the signed 64-bit integer that 16 hexadecimal digits in little-endian order represent."""
    return f"CAST(conv(regexp_replace({little_endian}, {_SWAP}), 16, -10) AS BIGINT)"


def _type(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            return f"STRUCT<{', '.join(f'{DIALECT.quote(field.name)}: {_type(field.type)}' for field in fields)}>"
        case ListType(element=element):
            return f"ARRAY<{_type(element)}>"
        case MapType(key=key, value=value):
            return f"MAP<{_type(key)}, {_type(value)}>"
        case "variant":
            return "VARIANT"
        case _:
            return DIALECT.primitive(kind)


def _fixed_value(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            members = (f"{DIALECT.text(field.name)}, {_fixed_value(field.type)}" for field in fields)
            return f"named_struct({', '.join(members)})"
        case ListType():
            return f"CAST(array() AS {_type(kind)})"
        case MapType():
            return f"CAST(map() AS {_type(kind)})"
        case "variant":
            return "parse_json('{}')"
        case _:
            return DIALECT.fixed_value(kind)
