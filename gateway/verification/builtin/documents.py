# SPDX-License-Identifier: Apache-2.0
"""Read the parts of metadata documents that rules compare: columns by field id, partition fields and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from gateway.iceberg.codec import ABSENT
from gateway.iceberg.generic_tables import read_document
from gateway.iceberg.metadata import TableMetadata, decode_stored_table_metadata
from gateway.iceberg.schema import MAX_TYPE_DEPTH, Schema
from gateway.iceberg.types import ListType, MapType, NestedField, StructType, Type
from gateway.iceberg.views import decode_stored_view_metadata
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import ProposedChange


class DocumentMissing(VerifierFailed):
    """The change has no document that the rule needs. The rule gives no verdict."""


class FlatColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A field at any depth. `path` is its full dotted name, and `parent` the id of the enclosing field, None on top."""

    id: int
    name: str
    path: str
    parent: int | None
    type: Type
    required: bool
    has_default: bool
    is_field: bool
    """False for the element of a list and the key and value of a map, which have no names of their own."""


Columns = Mapping[int, FlatColumn]


def table_before(change: ProposedChange) -> TableMetadata | None:
    """Return the current metadata of a table; None for a new table. Raises DocumentMissing."""
    if change.before is None:
        if change.object_id is not None:
            raise DocumentMissing("the change has no document of the current state")
        return None
    return decode_stored_table_metadata(bytes(change.before))


def table_after(change: ProposedChange) -> TableMetadata:
    """Return the metadata of a table after the change. Raises DocumentMissing."""
    if change.after is None:
        raise DocumentMissing("the change has no document of the new state")
    return decode_stored_table_metadata(bytes(change.after))


def properties_in(object_type: str, text: msgspec.Raw) -> Mapping[str, str]:
    """Return the properties in the document of a table, view or generic table."""
    if object_type == "generic_table":
        return read_document(bytes(text)).properties
    if object_type == "view":
        return decode_stored_view_metadata(bytes(text)).properties
    return decode_stored_table_metadata(bytes(text)).properties


def columns_of(schema: Schema) -> Columns:
    """Return all fields of a schema by id. A parent is before the fields inside it."""
    return {column.id: column for column in _walk(schema.struct, "", None, 0)}


def _walk(kind: Type, prefix: str, parent: int | None, depth: int) -> Iterator[FlatColumn]:
    if depth > MAX_TYPE_DEPTH:
        raise DocumentMissing(f"types are nested deeper than {MAX_TYPE_DEPTH} levels")
    for field in _inner(kind):
        path = f"{prefix}{field.name}"
        yield FlatColumn(
            id=field.id,
            name=field.name,
            path=path,
            parent=parent,
            type=field.type,
            required=field.required,
            has_default=field.initial_default != ABSENT,
            is_field=isinstance(kind, StructType),
        )
        yield from _walk(field.type, f"{path}.", field.id, depth + 1)


def _inner(kind: Type) -> tuple[NestedField, ...]:
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
