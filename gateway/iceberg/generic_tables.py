# SPDX-License-Identifier: Apache-2.0
"""Generic tables, which have another format than Iceberg: request and response bodies, and stored documents. Pure.

The catalog stores the fields that the creator sends and interprets only `gc.enabled`. `format` is any word, `schema`
and `statistics` are any JSON.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from gateway.iceberg.errors import BadRequestException, MetadataTooLarge
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.limits import Limits
from gateway.iceberg.properties import GC_ENABLED, flag
from gateway.iceberg.wire import Properties, StorageCredential, TableIdentifierBody

_NULL = b"null"


def _left_out() -> Raw:
    """Return the default of a raw JSON member. So a missing member means the same as null."""
    return Raw(_NULL)


Format = Annotated[str, Meta(min_length=1, max_length=128)]


class CreateGenericTableRequest(Struct, frozen=True, rename="kebab", kw_only=True):
    """`POST …/namespaces/{ns}/generic-tables`."""

    name: str
    format: Format
    base_location: str | None = None
    doc: str | None = None
    properties: Properties = {}
    schema: Raw = field(default_factory=_left_out)
    statistics: Raw = field(default_factory=_left_out)


class GenericTableDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a generic table that are stored in its document, and not in columns.

    `adopted` is true if the location contained files when the table was created. The table does not own these files.
    """

    doc: str | None = None
    properties: Properties = {}
    schema: Raw = field(default_factory=_left_out)
    statistics: Raw = field(default_factory=_left_out)
    adopted: bool = False


class GenericTable(Struct, frozen=True, rename="kebab", kw_only=True, omit_defaults=True):
    """A generic table in responses."""

    name: str
    format: str
    base_location: str
    doc: str | None = None
    properties: Properties = {}
    schema: Raw | None = None
    statistics: Raw | None = None


class LoadGenericTableResult(Struct, frozen=True, rename="kebab", kw_only=True, omit_defaults=True):
    """A created or loaded generic table, with credentials if the caller may have them."""

    table: GenericTable
    config: Properties = {}
    storage_credentials: tuple[StorageCredential, ...] = ()


class GenericTableIdentifier(Struct, frozen=True, rename="kebab", kw_only=True):
    """One entry of a list of generic tables."""

    namespace: tuple[str, ...]
    name: str
    id: str
    format: str


class ListGenericTablesResponse(Struct, frozen=True, rename="kebab", kw_only=True):
    """The generic tables of a namespace.

    `protection_status` is present only on request, with one value per entry of `identifiers`.
    """

    identifiers: tuple[GenericTableIdentifier, ...]
    next_page_token: str | None
    protection_status: tuple[bool, ...] | UnsetType = UNSET


class RenameGenericTableRequest(Struct, frozen=True, rename="kebab", kw_only=True):
    """`POST …/generic-tables/rename`."""

    source: TableIdentifierBody
    destination: TableIdentifierBody


def new_document(request: CreateGenericTableRequest, limits: Limits, *, adopted: bool) -> bytes:
    """Return the stored document of a new generic table.

    Raises BadRequestException for a format that is not printable or has white space at its ends. Raises
    MetadataTooLarge for too many properties or too large a document.
    """
    if not request.format.isprintable() or request.format != request.format.strip():
        raise BadRequestException("`format` must be printable text without white space at its ends")
    if len(request.properties) > limits.properties:
        raise MetadataTooLarge(
            f"The table would have {len(request.properties)} properties; at most {limits.properties} are allowed"
        )
    document = msgspec.json.encode(
        GenericTableDocument(
            doc=request.doc,
            properties=request.properties,
            schema=request.schema,
            statistics=request.statistics,
            adopted=adopted,
        )
    )
    if len(document) > limits.document_bytes:
        raise MetadataTooLarge(
            f"The description has {len(document)} bytes; at most {limits.document_bytes} are allowed"
        )
    return document


def read_document(document: bytes) -> GenericTableDocument:
    """Decode a document that `new_document` encoded."""
    return msgspec.json.decode(document, type=GenericTableDocument)


def without_statistics(document: bytes) -> bytes:
    """Return the document without its statistics."""
    return msgspec.json.encode(msgspec.structs.replace(read_document(document), statistics=_left_out()))


def owns_its_files(document: GenericTableDocument) -> bool:
    """Return True if a drop of the table deletes its files unless the request says otherwise.

    The files are kept if the table was created over existing files, or if its property `gc.enabled` is false.
    """
    return not document.adopted and flag(document.properties, GC_ENABLED, default=True)


def load_answer(
    identifier: TableIdentifier, format: str, location: str, document: GenericTableDocument
) -> GenericTable:
    """Return the table for a response. Its name is spelled as in `identifier`."""
    return GenericTable(
        name=identifier.name,
        format=format,
        base_location=location,
        doc=document.doc,
        properties=document.properties,
        schema=_given(document.schema),
        statistics=_given(document.statistics),
    )


def _given(raw: Raw) -> Raw | None:
    return None if bytes(raw).strip() == _NULL else raw
