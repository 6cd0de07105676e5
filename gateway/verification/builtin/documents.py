# SPDX-License-Identifier: Apache-2.0
"""Read the parts of metadata documents that the rules compare: columns by field id, partition fields and properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from gateway.iceberg.generic_tables import read_document
from gateway.iceberg.metadata import TableMetadata, decode_stored_table_metadata
from gateway.iceberg.schema import Schema
from gateway.iceberg.views import decode_stored_view_metadata
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import ProposedChange
from lakegate.restrictions.literals import ABSENT, StructType, Type


class DocumentMissing(VerifierFailed):
    """The change lacks a document that the rule needs, so the rule gives no verdict."""


class FlatColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A field at any depth. `path` is its full dotted name. `parent` is the id of the enclosing field, None at the top
    level.
    """

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
    return _parsed(change, "before", change.before)


def table_after(change: ProposedChange) -> TableMetadata:
    """Return the metadata of a table after the change. Raises DocumentMissing."""
    if change.after is None:
        raise DocumentMissing("the change has no document of the new state")
    return _parsed(change, "after", change.after)


def keep_parsed(change: ProposedChange, *, after: TableMetadata) -> None:
    """Keep the parsed form of a table's new document with the change, so that the rules need not parse it again."""
    change.__dict__["parsed_after"] = after


def _parsed(change: ProposedChange, member: Literal["before", "after"], text: msgspec.Raw) -> TableMetadata:
    """Return the parsed document, which all rules on a change share. Two threads can parse it at the same time."""
    kept: TableMetadata | None = change.__dict__.get(f"parsed_{member}")
    if kept is None:
        kept = change.__dict__[f"parsed_{member}"] = decode_stored_table_metadata(bytes(text))
    return kept


def properties_before(change: ProposedChange) -> Mapping[str, str] | None:
    """Return the current properties of a table, view or generic table. Return None if there is no document."""
    if change.object_type == "table" and change.before is not None:
        return _parsed(change, "before", change.before).properties
    return None if change.before is None else _properties_in(change.object_type, change.before)


def properties_after(change: ProposedChange) -> Mapping[str, str]:
    """Return the new properties of a table, view or generic table. Raises DocumentMissing."""
    if change.object_type == "table" or change.after is None:
        return table_after(change).properties
    return _properties_in(change.object_type, change.after)


def _properties_in(object_type: str, text: msgspec.Raw) -> Mapping[str, str]:
    """Return the properties in the document of a view or generic table."""
    if object_type == "generic_table":
        return read_document(bytes(text)).properties
    return decode_stored_view_metadata(bytes(text)).properties


def columns_of(schema: Schema) -> Columns:
    """Return {id: field} of all fields of a schema. A parent precedes the fields inside it. Raises
    BadRequestException.
    """
    found: dict[int, FlatColumn] = {}
    enclosing: list[int] = []
    for column in schema.columns.values():
        field = column.field
        del enclosing[len(column.path) - 1 :]
        found[field.id] = FlatColumn(
            id=field.id,
            name=field.name,
            path=column.dotted,
            parent=enclosing[-1] if enclosing else None,
            type=field.type,
            required=field.required,
            has_default=field.initial_default != ABSENT,
            is_field=isinstance(column.parents[-1][0], StructType),
        )
        enclosing.append(field.id)
    return found
