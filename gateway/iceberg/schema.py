# SPDX-License-Identifier: Apache-2.0
"""Table and view schemas: parsing, validation, comparison, and assignment of new column ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Raw

from gateway.iceberg import codec
from gateway.iceberg.codec import Part
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.types import MIN_FORMAT_VERSION, check_primitive, is_primitive
from lakegate.restrictions.literals import (
    ABSENT,
    Int,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    is_value_of,
    type_name,
)

DEFAULT_VALUES_MIN_FORMAT_VERSION: Final = 3
MAX_FIELD_ID: Final = 2_147_483_447
"""Highest allowed field id. Higher ids are reserved for metadata columns (table specification, "Reserved Field
IDs").
"""

MAX_TYPE_DEPTH: Final = 60
"""Maximum nesting depth of column types. It keeps recursion over types within the interpreter's stack."""


class Column(msgspec.Struct, frozen=True):
    """A field at any depth and its position in the schema.

    `path` has the names from the top level, with `element`, `key` and `value` inside lists and maps. `parents` are the
    enclosing types from the outermost inwards, each as (type, is required).
    """

    field: NestedField
    path: tuple[str, ...]
    parents: tuple[tuple[Type, bool], ...] = ()

    @property
    def dotted(self) -> str:
        """Return the full name, for example `address.street`."""
        return ".".join(self.path)

    @property
    def short(self) -> str:
        """Return the name without `element` and `value` where they are structs in a list or map, for example
        `points.x`.

        The Java library finds columns by both names.
        """
        outer = [kind for kind, _ in self.parents]
        inner = [*outer[1:], self.field.type]
        kept = [
            name
            for name, parent, kind in zip(self.path, outer, inner, strict=True)
            if isinstance(parent, StructType) or name == "key" or not isinstance(kind, StructType)
        ]
        return ".".join(kept)


class Schema(Part, frozen=True, dict=True, kw_only=True):
    """One schema of a table or view. The columns are parsed on first access."""

    schema_id: Int = 0
    identifier_field_ids: tuple[Int, ...] | None = None
    fields_json: Raw = msgspec.field(name="fields")

    @cached_property
    def struct(self) -> StructType:
        """Return the top-level struct. Raises `BadRequestException` if the columns are malformed."""
        fields = codec.decode(self.fields_json, tuple[NestedField, ...], at="$.schema.fields")
        return StructType(fields=fields)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """Return the top-level columns."""
        return self.struct.fields

    @cached_property
    def columns(self) -> Mapping[int, Column]:
        """Return all fields at any depth by id. Raises `BadRequestException` for a duplicate or invalid id."""
        columns: dict[int, Column] = {}
        for column in _walk(self.struct):
            if (other := columns.get(column.field.id)) is not None:
                raise BadRequestException(
                    f"Invalid schema: field id {column.field.id} is used by {other.dotted} and {column.dotted}"
                )
            if not 0 <= column.field.id <= MAX_FIELD_ID:
                raise BadRequestException(
                    f"Invalid schema: field id {column.field.id} of {column.dotted} must be from 0 to {MAX_FIELD_ID}"
                )
            columns[column.field.id] = column
        return columns

    @property
    def identifiers(self) -> frozenset[int]:
        """Return the ids of the identifier fields."""
        return frozenset(self.identifier_field_ids or ())

    @property
    def highest_field_id(self) -> int:
        """Return the highest field id at any depth, or 0 if there are no columns."""
        return max(self.columns, default=0)

    def name_of(self, field_id: int) -> str | None:
        """Return the full dotted name of a field, or None if the schema does not have the id."""
        column = self.columns.get(field_id)
        return column.dotted if column else None

    def named(self, name: str) -> Column | None:
        """Return the field with this full dotted name, or None. Letter case matters."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Column]:
        names = {column.short: column for column in self.columns.values()}
        return names | {column.dotted: column for column in self.columns.values()}

    def with_id(self, schema_id: int) -> Schema:
        """Return the schema with another id. Unknown members are kept."""
        if self.schema_id == schema_id and "schema-id" in self.members():
            return self
        members = self.members()
        members.pop("schema-id", None)
        return Schema.of({"type": "struct", "schema-id": schema_id, **members})

    def same_as(self, other: Schema) -> bool:
        """Return True if the columns and identifier fields are equal. The schema id is ignored.

        A new schema that is the same as an existing one reuses its id.
        """
        return self.struct == other.struct and self.identifiers == other.identifiers


def read_schema(text: Raw | bytes, *, at: str) -> Schema:
    """Parse a schema from a client and check the rules that do not depend on the format version.

    Raises `BadRequestException`.
    """
    members = codec.canonical_object(text, at=at)
    schema = Schema.of(stored_type({"type": "struct", **members}), at=at)
    check_structure(schema)
    return schema


def stored_type(node: Any) -> Any:
    """Return the JSON of a type as all readers expect it. The input is not changed.

    Names of primitive types are written in lower case, except for the parameters of geometry and geography. Only the
    Java library reads every letter case. Whole numbers as defaults of `float` and `double` get a decimal point, without
    which the Java library does not read them.
    """
    if isinstance(node, str):
        name, bracket, parameters = node.partition("(")
        return name.lower() + bracket + parameters
    if not isinstance(node, dict):
        return node
    changed = {name: stored_type(node[name]) for name in ("element", "key", "value") if name in node}
    if isinstance(fields := node.get("fields"), list):
        changed["fields"] = [_stored_field(field) if isinstance(field, dict) else field for field in fields]
    return {**node, **changed}


def _stored_field(field: dict[str, Any]) -> dict[str, Any]:
    stored = {**field, "type": stored_type(field["type"])} if "type" in field else dict(field)
    if stored.get("type") in ("float", "double"):
        for name in ("initial-default", "write-default"):
            if type(value := stored.get(name)) is int and abs(value) < 2**64:
                stored[name] = float(value)
    return stored


def check_structure(schema: Schema) -> None:
    """Check the rules that do not depend on the format version.

    They are about unique ids and names, known types and valid identifier fields. Raises `BadRequestException`.
    """
    names: dict[str, int] = {}
    for column in schema.columns.values():
        if (other := names.setdefault(column.dotted, column.field.id)) != column.field.id:
            raise BadRequestException(
                f"Invalid schema: multiple fields for name {column.dotted}: {other} and {column.field.id}"
            )
        if isinstance(column.field.type, str):
            check_primitive(column.field.type, column.dotted)
        if column.field.required and column.field.type == "unknown":
            raise BadRequestException(f"Cannot create required field with unknown type: {column.dotted}")
        _check_defaults(column)
    for field_id in sorted(schema.identifiers):
        _check_identifier(schema, field_id)
    if schema.members().get("type") != "struct":
        raise BadRequestException('Invalid schema: the member type must be "struct"')


def check_compatibility(schema: Schema, format_version: int) -> None:
    """Raise `BadRequestException` if a format version does not support the schema's types and default values.

    The message has one line per problem, for example "v: variant is not supported until v3".
    """
    problems: list[str] = []
    for column in schema.columns.values():
        kind = type_name(column.field.type)
        needed = MIN_FORMAT_VERSION.get(kind, 1)
        if format_version < needed:
            shown = column.field.type if isinstance(column.field.type, str) else kind
            problems.append(f"Invalid type for {column.dotted}: {shown} is not supported until v{needed}")
        if column.field.initial_default != ABSENT and format_version < DEFAULT_VALUES_MIN_FORMAT_VERSION:
            problems.append(
                f"Invalid initial default for {column.dotted}: non-null default "
                f"({bytes(column.field.initial_default).decode()}) is not supported until "
                f"v{DEFAULT_VALUES_MIN_FORMAT_VERSION}"
            )
    if problems:
        raise BadRequestException(f"Invalid schema for v{format_version}:\n- " + "\n- ".join(problems))


def assign_fresh_ids(schema: Schema, *, schema_id: int = 0) -> tuple[Schema, int]:
    """Return the schema with new column ids, and the highest new id.

    Ids count from 1. All fields of a struct are numbered before the fields inside them, as in the Java reference
    implementation. The identifier fields refer to the new ids. Unknown members are kept.
    """
    given: dict[int, int] = {}

    def fresh(old: int) -> int:
        given[old] = len(given) + 1
        return given[old]

    members = schema.members()
    fields = _renumber({"type": "struct", "fields": members["fields"]}, fresh)["fields"]
    members.pop("schema-id", None)
    renewed: dict[str, Any] = {"type": "struct", "schema-id": schema_id, **members, "fields": fields}
    if schema.identifier_field_ids:
        renewed["identifier-field-ids"] = [given[old] for old in schema.identifier_field_ids]
    return Schema.of(renewed), len(given)


def _renumber(node: Any, fresh: Callable[[int], int]) -> Any:
    if not isinstance(node, dict):
        return node
    if node["type"] == "struct":
        numbered = [{**field, "id": fresh(field["id"])} for field in node["fields"]]
        return {**node, "fields": [{**field, "type": _renumber(field["type"], fresh)} for field in numbered]}
    if node["type"] == "list":
        element_id = fresh(node["element-id"])
        return {**node, "element-id": element_id, "element": _renumber(node["element"], fresh)}
    key_id, value_id = fresh(node["key-id"]), fresh(node["value-id"])
    key, value = _renumber(node["key"], fresh), _renumber(node["value"], fresh)
    return {**node, "key-id": key_id, "value-id": value_id, "key": key, "value": value}


def _walk(
    kind: Type, path: tuple[str, ...] = (), parents: tuple[tuple[Type, bool], ...] = (), *, required: bool = True
) -> Iterator[Column]:
    if len(parents) > MAX_TYPE_DEPTH:
        raise BadRequestException(f"Invalid schema: types are nested deeper than {MAX_TYPE_DEPTH} levels")
    for field in _inner_fields(kind):
        inner, inner_path = (*parents, (kind, required)), (*path, field.name)
        yield Column(field, inner_path, inner)
        yield from _walk(field.type, inner_path, inner, required=field.required)


def _inner_fields(kind: Type) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type. Elements, keys and values have the names in the specification."""
    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return (NestedField(id=kind.element_id, name="element", required=kind.element_required, type=kind.element),)
        case MapType():
            return (
                NestedField(id=kind.key_id, name="key", required=True, type=kind.key),
                NestedField(id=kind.value_id, name="value", required=kind.value_required, type=kind.value),
            )
        case _:
            return ()


def _check_identifier(schema: Schema, field_id: int) -> None:
    column = schema.columns.get(field_id)
    if column is None:
        raise BadRequestException(f"Cannot add fieldId {field_id} as an identifier field: field does not exist")
    problem = f"Cannot add field {column.dotted} as an identifier field: "
    if not is_primitive(column.field.type):
        raise BadRequestException(problem + "not a primitive type field")
    if not column.field.required:
        raise BadRequestException(problem + "not a required field")
    if type_name(column.field.type) in {"float", "double"}:
        raise BadRequestException(problem + "must not be float or double field")
    for parent, required in column.parents:
        if not isinstance(parent, StructType):
            raise BadRequestException(f"{problem}must not be nested in a {type_name(parent)}")
        if not required:
            raise BadRequestException(f"{problem}must not be nested in an optional struct")


def _check_defaults(column: Column) -> None:
    """Raise `BadRequestException` for a default value that engines cannot read."""
    field = column.field
    for label, default in (("initial", field.initial_default), ("write", field.write_default)):
        if default != ABSENT and not is_value_of(msgspec.json.decode(default), field.type):
            shown = bytes(default).decode()[:80]
            raise BadRequestException(
                f"Invalid {label} default for {column.dotted}: {shown} is not a value of {type_name(field.type)}"
            )
