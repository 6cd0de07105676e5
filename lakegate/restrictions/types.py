# SPDX-License-Identifier: Apache-2.0
"""Define Iceberg types as they are in schema JSON.

Primitive types are strings (`"long"`, `"decimal(9,2)"`), nested types are structs. Source: Iceberg table specification,
"Schemas and Data Types" and appendix C, including format version 3.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""`integer` of the specification: 32 bits, so that every reader can represent it."""

ABSENT: Final = Raw(b"null")
"""The value of a raw JSON member that the client left out or sent as null."""


class NestedField(Struct, frozen=True, rename="kebab", kw_only=True):
    """A column, or a field of a struct at any depth. Default values stay JSON (single-value form)."""

    id: Int
    name: str
    required: bool
    type: Type
    doc: str | None = None
    initial_default: Raw = ABSENT
    write_default: Raw = ABSENT

    def __post_init__(self) -> None:
        _squeeze(self, "type")


class StructType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="struct"):
    """A struct with its fields."""

    fields: tuple[NestedField, ...]


class ListType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="list"):
    """A list. Its element is a field without a name."""

    element_id: Int
    element: Type
    element_required: bool

    def __post_init__(self) -> None:
        _squeeze(self, "element")


class MapType(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="type", tag="map"):
    """A map. Keys are always required."""

    key_id: Int
    key: Type
    value_id: Int
    value: Type
    value_required: bool

    def __post_init__(self) -> None:
        _squeeze(self, "key")
        _squeeze(self, "value")


Type: TypeAlias = str | StructType | ListType | MapType


def _squeeze(node: Struct, attribute: str) -> None:
    """Remove spaces from a primitive type. `decimal(9, 2)` and `decimal(9,2)` are the same type and must compare
    equal.
    """
    kind = getattr(node, attribute)
    if isinstance(kind, str) and " " in kind:
        msgspec.structs.force_setattr(node, attribute, kind.replace(" ", ""))


def type_name(kind: Type) -> str:
    """Return the name of the type without parameters: `decimal`, `fixed`, `geometry`, `struct`, `long`, …"""
    if isinstance(kind, str):
        return re.split(r"[\[(]", kind, maxsplit=1)[0].strip().lower()
    return {StructType: "struct", ListType: "list", MapType: "map"}[type(kind)]
