# SPDX-License-Identifier: Apache-2.0
"""Define the types that each format version and transform accepts, and check the text of types and transforms.

Source: Iceberg table specification, "Schemas and Data Types" and appendix C, including format version 3.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.iceberg.errors import BadRequestException
from lakegate.restrictions.literals import Type, type_name

PRIMITIVES: Final = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns"}
    | {"timestamptz_ns", "string", "uuid", "binary", "variant", "unknown"}
)
MIN_FORMAT_VERSION: Final = {
    "timestamp_ns": 3,
    "timestamptz_ns": 3,
    "variant": 3,
    "unknown": 3,
    "geometry": 3,
    "geography": 3,
}
"""The first format version that has the type. Types that are not listed exist since version 1."""

_TIMESTAMPS: Final = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")
_GEOMETRY = re.compile(r"geometry(?:\(\s*([^,()]+?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(
    r"geography(?:\(\s*([^,()]+?)\s*(?:,\s*(spherical|vincenty|thomas|andoyer|karney)\s*)?\))?", re.IGNORECASE
)
_MAX_DECIMAL_PRECISION: Final = 38
_TRANSFORM = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:\[([A-Za-z0-9_., -]+)\])?")
_WIDTHS: Final = {"bucket": "number of buckets", "truncate": "truncate width"}
_BUILT_BY_TYPE: Final = frozenset({"bucket", "truncate", "year", "month", "day", "hour"})
_BARE: Final = frozenset({"identity", "year", "month", "day", "hour", "void"})


def is_primitive(kind: Type) -> bool:
    """Return True if the type is primitive. A variant is neither primitive nor nested, by the specification."""
    return isinstance(kind, str) and type_name(kind) != "variant"


def check_primitive(kind: str, column: str) -> None:
    """Raise `BadRequestException` for a primitive type that no format version has. The message contains `column`."""
    if kind in PRIMITIVES or _FIXED.fullmatch(kind) or _GEOMETRY.fullmatch(kind) or _GEOGRAPHY.fullmatch(kind):
        return
    if decimal := _DECIMAL.fullmatch(kind):
        precision, scale = int(decimal[1]), int(decimal[2])
        if 1 <= precision <= _MAX_DECIMAL_PRECISION and scale <= precision:
            return
        raise BadRequestException(
            f"Invalid type for {column}: {kind} must have a precision from 1 to {_MAX_DECIMAL_PRECISION} and a scale "
            "of at most the precision"
        )
    raise BadRequestException(f"Invalid type for {column}: cannot parse type string to primitive: {kind}")


def check_transform(transform: str) -> None:
    """Raise `BadRequestException` unless a transform is a name, optionally with one parameter in brackets.

    Unknown names are accepted, as the specification requires ("Partition Transforms"). The parameters of known
    transforms must be valid, because engines could not open the table otherwise.
    """
    shape = _TRANSFORM.fullmatch(transform)
    if shape is None:
        raise BadRequestException(f"Invalid transform: {transform!r} must have the form name or name[parameter]")
    name, parameter = shape[1].lower(), shape[2]
    if name in _WIDTHS:
        if parameter is None or not _is_width(parameter):
            raise BadRequestException(
                f"Invalid {_WIDTHS[name]}: {transform} (must be greater than 0 and fit in 32 bits)"
            )
    elif name in _BARE and parameter is not None:
        raise BadRequestException(f"Invalid transform: {name} must have no parameter: {transform}")


def stored_transform(transform: str) -> str:
    """Return a transform as all readers expect it: the name of a known transform is in lower case."""
    name, bracket, parameter = transform.partition("[")
    return name.lower() + bracket + parameter if name.lower() in _BARE | _WIDTHS.keys() else transform


def _is_width(parameter: str) -> bool:
    return parameter.isdigit() and len(parameter) <= 10 and 0 < int(parameter) < 2**31


def can_bind(transform: str, kind: Type) -> bool:
    """Return True if the Java library can build a spec with the transform for a source type.

    It builds all specs of a table when it opens the table, including those that are not the default.
    """
    if (name := type_name(transform)) == "identity":
        return type_name(kind) not in {"variant", "geometry", "geography"}
    return name not in _BUILT_BY_TYPE or can_transform(transform, kind)


def can_transform(transform: str, kind: Type) -> bool:
    """Return True if a partition or sort transform accepts a source type.

    Unknown transforms accept every primitive type, because the specification requires that readers ignore them.
    """
    name, transform_name = type_name(kind), type_name(transform)
    if transform_name == "void":
        return True
    if transform_name == "identity":
        return is_primitive(kind) and name not in {"geometry", "geography"}
    accepted = {
        "year": _TIMESTAMPS | {"date"},
        "month": _TIMESTAMPS | {"date"},
        "day": _TIMESTAMPS | {"date"},
        "hour": _TIMESTAMPS,
        "bucket": _TIMESTAMPS | {"int", "long", "decimal", "date", "time", "string", "uuid", "fixed", "binary"},
        "truncate": {"int", "long", "decimal", "string", "binary"},
    }.get(transform_name)
    return is_primitive(kind) if accepted is None else name in accepted
