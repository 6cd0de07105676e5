# SPDX-License-Identifier: Apache-2.0
"""View metadata: the value type, decoding, and byte-stable encoding. Source: Iceberg view specification, version 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.adoption import view_as_stored
from gateway.iceberg.codec import Count, Part, Parts
from gateway.iceberg.consistency import check_unique
from gateway.iceberg.errors import BadRequestException, EmptyView, IllegalArgumentException
from gateway.iceberg.limits import Limits, Measured, refuse_growth, refuse_large_document
from gateway.iceberg.schema import Schema, check_structure
from lakegate.restrictions.literals import Int

SUPPORTED_VIEW_VERSION: Final = 1


class Representation(Struct, frozen=True, rename="kebab", kw_only=True):
    """One definition of the view's query. `sql` and `dialect` are set for the only specified type, `sql`."""

    type: str
    sql: str | None = None
    dialect: str | None = None


class ViewVersion(Part, frozen=True, kw_only=True):
    """One version of a view's definition."""

    version_id: Int
    timestamp_ms: Count
    schema_id: Int
    summary: dict[str, str]
    representations: tuple[Representation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None

    @property
    def dialects(self) -> frozenset[str]:
        """Return the SQL dialects of the representations in lower case."""
        return frozenset(r.dialect.lower() for r in self.representations if r.dialect is not None)

    @property
    def content(self) -> dict[str, Any]:
        """Return all members except the id and the time. Two versions with equal content count as equal."""
        return {name: v for name, v in self.members().items() if name not in {"version-id", "timestamp-ms"}}

    def with_ids(self, *, version_id: int, schema_id: int) -> ViewVersion:
        """Return the version with other ids. Unknown members are kept."""
        members = {n: v for n, v in self.members().items() if n not in {"version-id", "schema-id"}}
        return ViewVersion.of({"version-id": version_id, "schema-id": schema_id, **members})


class ViewHistoryEntry(Part, frozen=True, kw_only=True):
    """The time at which a version became the current one."""

    version_id: Int
    timestamp_ms: Count


class ViewMetadata(Struct, frozen=True, kw_only=True):
    """One state of a view's metadata. Encode it with `encode_view_metadata` only."""

    view_uuid: str
    format_version: int
    location: str
    properties: Mapping[str, str]
    schemas: Parts[Schema]
    current_version_id: int
    versions: Parts[ViewVersion]
    version_log: Parts[ViewHistoryEntry]
    extra: Mapping[str, Raw]

    @property
    def uuid(self) -> UUID:
        """Return the view's UUID as a UUID object."""
        return UUID(self.view_uuid)

    @property
    def measured(self) -> Measured:
        """Return the sizes of the parts that can grow, for the check of limits."""
        return Measured(
            histories={"version-log entries": self.version_log},
            structures={"schemas": self.schemas, "versions": self.versions},
            properties=self.properties,
        )

    @property
    def current_version(self) -> ViewVersion:
        """Return the current version. Raises `BadRequestException` if the document does not contain it."""
        for version in self.versions:
            if version.version_id == self.current_version_id:
                return version
        raise BadRequestException(
            f"View metadata is inconsistent: current-version-id is {self.current_version_id}, but no such version "
            "exists"
        )


class _Scalars(Struct, frozen=True, rename="kebab", kw_only=True):
    view_uuid: str
    format_version: Int
    location: str
    current_version_id: Int
    properties: dict[str, str] | None = None


_SCALARS: Final = tuple(field.encode_name for field in msgspec.structs.fields(_Scalars))
_KNOWN: Final = frozenset({*_SCALARS, "schemas", "versions", "version-log"})


def decode_stored_view_metadata(data: bytes) -> ViewMetadata:
    """Decode a document that this catalog wrote. Its consistency is not checked.

    Raises `BadRequestException` if the document is not view metadata.
    """
    texts = codec.decode(data, dict[str, Raw])
    scalars = codec.decode(codec.encode({n: texts[n] for n in _SCALARS if n in texts}), _Scalars)
    if scalars.format_version != SUPPORTED_VIEW_VERSION:
        raise BadRequestException(
            f"Unsupported format version {scalars.format_version} of view metadata. Supported version: 1"
        )
    return ViewMetadata(
        view_uuid=scalars.view_uuid,
        format_version=scalars.format_version,
        location=scalars.location,
        properties=scalars.properties or {},
        schemas=Parts(Schema, texts.get("schemas", Raw(b"[]"))),
        current_version_id=scalars.current_version_id,
        versions=Parts(ViewVersion, texts.get("versions", Raw(b"[]"))),
        version_log=Parts(ViewHistoryEntry, texts.get("version-log", Raw(b"[]"))),
        extra={name: text for name, text in texts.items() if name not in _KNOWN},
    )


def decode_view_metadata(data: bytes, *, limits: Limits | None = None) -> ViewMetadata:
    """Decode and validate a document from any source. Duplicate members are resolved and white space is removed.

    Raises `MetadataTooLarge`, `BadRequestException`, `EmptyView` or `IllegalArgumentException`.
    """
    limits = limits or Limits()
    refuse_large_document(data, limits, "View")
    metadata = decode_stored_view_metadata(codec.encode(view_as_stored(codec.canonical_object(data))))
    refuse_growth(limits, metadata.measured, None)
    try:
        UUID(metadata.view_uuid)
    except ValueError:
        raise BadRequestException(
            f"View metadata is inconsistent: view-uuid {metadata.view_uuid[:80]!r} is not a UUID"
        ) from None
    check_unique("version-id", (version.version_id for version in metadata.versions))
    check_unique("schema-id", (schema.schema_id for schema in metadata.schemas))
    schema_ids = {schema.schema_id for schema in metadata.schemas}
    for schema in metadata.schemas:
        check_structure(schema)
    for version in metadata.versions:
        check_representations(version)
        if version.schema_id not in schema_ids:
            raise BadRequestException(f"Cannot add version with unknown schema: {version.schema_id}")
    # Both properties raise an error if the document is malformed.
    _ = (metadata.current_version, metadata.version_log.items)
    return metadata


def encode_view_metadata(metadata: ViewMetadata) -> bytes:
    """Encode the document as JSON with a fixed order of members."""
    m = metadata
    return codec.encode(
        {
            "view-uuid": m.view_uuid,
            "format-version": m.format_version,
            "location": m.location,
            "properties": m.properties,
            "schemas": m.schemas.json,
            "current-version-id": m.current_version_id,
            "versions": m.versions.json,
            "version-log": m.version_log.json,
            **m.extra,
        }
    )


def read_version(text: Raw, *, at: str) -> ViewVersion:
    """Parse a view version from a client. Raises `BadRequestException`, `EmptyView` or `IllegalArgumentException`."""
    members = codec.canonical_object(text, at=at)
    if members.get("default-catalog", "") is None:
        del members["default-catalog"]
    version = ViewVersion.of(members, at=at)
    check_representations(version)
    return version


def check_representations(version: ViewVersion) -> None:
    """Check that a version has a representation, that each SQL text has a dialect, and that no dialect occurs twice.

    Letter case of dialects is ignored. Raises `EmptyView`, `BadRequestException` or `IllegalArgumentException`.
    """
    if not version.representations:
        raise EmptyView("Invalid view version: a view needs at least one representation")
    seen: set[str] = set()
    for representation in version.representations:
        if representation.type != "sql":
            continue
        if not representation.sql or not representation.dialect:
            raise BadRequestException("Invalid view version: a SQL representation must have the fields sql and dialect")
        dialect = representation.dialect.lower()
        if dialect in seen:
            raise IllegalArgumentException(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        seen.add(dialect)
