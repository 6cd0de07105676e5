# SPDX-License-Identifier: Apache-2.0
"""Compile row filters and masks to expressions of Trino.

Trino applies them as row filters and column masks of a table. A mask must have exactly the type of the column. Trino
shows the text of both to users in query plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.obligations.compilers.sql import Dialect, mask_text, predicate_sql, quoted
from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action
from lakegate.restrictions.literals import ListType, MapType, StructType, Type, type_name
from lakegate.restrictions.predicates import Predicate

DIALECT: Final = Dialect(
    name="Trino",
    # Trino converts all column names to lower case.
    quote=lambda name: quoted('"', name.lower()),
    text=lambda text: quoted("'", text),
    binary=lambda digits: f"X'{digits}'",
    types={
        "boolean": "BOOLEAN",
        "int": "INTEGER",
        "long": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE",
        "date": "DATE",
        "time": "TIME(6)",
        "timestamp": "TIMESTAMP(6)",
        "timestamptz": "TIMESTAMP(6) WITH TIME ZONE",
        "string": "VARCHAR",
        "uuid": "UUID",
        "binary": "VARBINARY",
        "fixed": "VARBINARY",
    },
    zone=" UTC",
    is_nan="is_nan",
    starts_with="starts_with",
    substring="substr",
    concat="concat({}, {})",
    replace="regexp_replace({}, '{}', '{}')",
    type_of=lambda kind: _type(kind),
    fixed_of=lambda kind: _fixed_value(kind),
    truncated=lambda unit, column, kind: _truncated(unit, column, kind),
    hashed=lambda column, kind, salt: _hashed(column, kind),
    salted=False,
)


def row_filter_sql(predicate: Predicate, names: Mapping[int, str]) -> str:
    """Return the condition of a row filter. `names` maps field ids to the column names of the current schema.

    Raises RestrictionNotExpressible for a column without a name, and for a type that Trino does not have.
    """
    return predicate_sql(predicate, names, DIALECT)


def mask_sql(action: Action, name: str, kind: Type, *, required: bool) -> str:
    """Return the expression that replaces the column `name` of the type.

    Users can read the text, and so could read a salt in it. `sha-256-query-local` therefore gives null, or the fixed
    value of a required column. Raises RestrictionNotExpressible if the action does not apply to the type, or Trino does
    not have the type.
    """
    return mask_text(action, DIALECT.quote(name), kind, DIALECT, required=required)


def _truncated(unit: str, column: str, kind: Type) -> str:
    _type(kind)
    if type_name(kind) == "timestamptz":
        column = f"{column} AT TIME ZONE 'UTC'"
    return f"date_trunc('{unit}', {column})"


def _hashed(column: str, kind: Type) -> str:
    match type_name(kind):
        case "string":
            return f"lower(to_hex(sha256(to_utf8({column}))))"
        case "binary":
            return f"sha256({column})"
        case "int":
            return f"from_big_endian_32(reverse(substr(sha256(reverse(to_big_endian_32({column}))), 1, 4)))"
        case "long":
            return f"from_big_endian_64(reverse(substr(sha256(reverse(to_big_endian_64({column}))), 1, 8)))"
        case other:
            raise RestrictionNotExpressible(f"Trino cannot hash columns of the type {other}")


def _type(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            if not fields:
                raise RestrictionNotExpressible("Trino has no structs without fields")
            return f"ROW({', '.join(f'{DIALECT.quote(field.name)} {_type(field.type)}' for field in fields)})"
        case ListType(element=element):
            return f"ARRAY({_type(element)})"
        case MapType(key=key, value=value):
            return f"MAP({_type(key)}, {_type(value)})"
        case _:
            return DIALECT.primitive(kind)


def _fixed_value(kind: Type) -> str:
    match kind:
        case StructType(fields=fields):
            return f"CAST(ROW({', '.join(_fixed_value(field.type) for field in fields)}) AS {_type(kind)})"
        case ListType():
            return f"CAST(ARRAY[] AS {_type(kind)})"
        case MapType():
            return f"CAST(MAP() AS {_type(kind)})"
        case "string":
            # Without the cast, the type would be `varchar(n)` with the length of the text.
            return f"CAST({DIALECT.fixed_value(kind)} AS VARCHAR)"
        case _:
            return DIALECT.fixed_value(kind)
