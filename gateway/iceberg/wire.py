# SPDX-License-Identifier: Apache-2.0
"""Request and response bodies of `/catalog/v1`, member for member as in the protocol's OpenAPI document.

Requests are strict at their top level, in updates and in requirements: an unknown member there is an instruction we
would silently not follow, so it is a 400. The documents inside (schemas, specs, orders, snapshots, view versions) stay
raw JSON here, with members of newer specifications, and are read by the functions that apply them. Members a client may
leave out may also be null. `decode` turns what is wrong into a 400 that names the JSON path.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.codec import Int, Long, absent
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.iceberg.requirements import TABLE_REQUIREMENTS, VIEW_REQUIREMENTS, TableRequirement, ViewRequirement
from gateway.iceberg.updates import TABLE_ACTIONS, VIEW_ACTIONS, TableUpdate, ViewUpdate

Properties = dict[str, str]
Status = Annotated[int, Meta(ge=400, le=600)]


T = TypeVar("T")


def decode(data: bytes, kind: type[T]) -> T:
    """Decode a request body; a member sent as null counts as left out.

    Raises `BadRequestException` naming the JSON path of what is wrong, in the spelling of the wire.
    """
    codec.refuse_nul(data)
    try:
        return codec.decode(data, kind)
    except BadRequestException:
        if b"null" not in data:
            raise
        members = codec.canonical_object(data)
        if None not in members.values():
            raise
        return codec.decode(codec.encode({name: v for name, v in members.items() if v is not None}), kind)


class _Request(Struct, frozen=True, rename="kebab", kw_only=True, forbid_unknown_fields=True):
    """Base of request bodies."""


class _Response(Struct, frozen=True, rename="kebab", kw_only=True, omit_defaults=True):
    """Base of response bodies: members at their default are left out, those without one are always written."""


class TableIdentifierBody(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table or view by name, as it stands in bodies."""

    namespace: tuple[str, ...]
    name: str

    @property
    def identifier(self) -> TableIdentifier:
        """As a value; raises the 400 errors of `identifiers` for names that cannot exist."""
        return TableIdentifier(Namespace(self.namespace), self.name)

    @property
    def key(self) -> str:
        """As `TableIdentifier.key`."""
        return self.identifier.key

    @property
    def dotted(self) -> str:
        """As `TableIdentifier.dotted`."""
        return self.identifier.dotted

    @classmethod
    def of(cls, identifier: TableIdentifier) -> TableIdentifierBody:
        """From the value."""
        return cls(identifier.namespace.levels, identifier.name)


# ---- config, errors ------------------------------------------------------------------------------------------------


class CatalogConfig(_Response, frozen=True):
    """`GET /v1/config`. `idempotency_key_lifetime` is an ISO 8601 duration; absent when not supported."""

    defaults: Properties
    overrides: Properties
    endpoints: tuple[str, ...]
    idempotency_key_lifetime: str | None = None


class ErrorModel(_Response, frozen=True):
    """The one form of every refusal."""

    message: str
    type: str
    code: Status
    stack: tuple[str, ...] = ()


class ErrorResponse(_Response, frozen=True):
    """Wrapper of the error."""

    error: ErrorModel


# ---- namespaces ----------------------------------------------------------------------------------------------------


class CreateNamespaceRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/namespaces`."""

    namespace: tuple[str, ...]
    properties: Properties = {}

    @property
    def identifier(self) -> Namespace:
        """As a value; raises the 400 errors of `identifiers`."""
        return Namespace(self.namespace)


class NamespaceResponse(_Response, frozen=True):
    """A namespace created or loaded."""

    namespace: tuple[str, ...]
    properties: Properties


class ListNamespacesResponse(_Response, frozen=True):
    """Direct children. The last two members are filled on request only, parallel to `namespaces`."""

    namespaces: tuple[tuple[str, ...], ...]
    next_page_token: str | None
    namespace_uuids: tuple[str, ...] | None = None
    protection_status: tuple[bool, ...] | None = None


class UpdateNamespacePropertiesRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/properties`; a key in both members is the caller's 422."""

    removals: tuple[str, ...] = ()
    updates: Properties = {}


class UpdateNamespacePropertiesResponse(_Response, frozen=True):
    """What changed; `missing` are keys to be removed that were not there."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...] | None = None


# ---- tables --------------------------------------------------------------------------------------------------------


class StorageCredential(_Response, frozen=True):
    """Credentials for all keys below `prefix`, which ends in a slash."""

    prefix: str
    config: Properties


class RemoteSigningConfig(_Response, frozen=True):
    """What a client must echo in every request to sign."""

    properties: Properties = {}
    headers: dict[str, tuple[str, ...]] = {}


class CreateTableRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/tables`."""

    name: str
    schema: Raw
    location: str | None = None
    partition_spec: Raw = msgspec.field(default_factory=absent)
    write_order: Raw = msgspec.field(default_factory=absent)
    stage_create: bool = False
    properties: Properties = {}


class RegisterTableRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/register`."""

    name: str
    metadata_location: str
    overwrite: bool = False


class LoadTableResult(_Response, frozen=True):
    """A table loaded, created or registered; `metadata` is the stored document, spliced in as it is.

    `metadata_location` is None for a staged table. Members without a value are left out.
    """

    metadata: Raw
    metadata_location: str | None = None
    config: Properties | None = None
    storage_credentials: tuple[StorageCredential, ...] | None = None
    remote_signing_config: RemoteSigningConfig | None = None
    read_restrictions: Raw | msgspec.UnsetType = msgspec.UNSET
    labels: Raw | msgspec.UnsetType = msgspec.UNSET


class LoadCredentialsResponse(_Response, frozen=True):
    """`GET …/tables/{t}/credentials`."""

    storage_credentials: tuple[StorageCredential, ...]


class ListTablesResponse(_Response, frozen=True):
    """Tables or views of a namespace. The last two members are filled on request only, parallel to `identifiers`."""

    identifiers: tuple[TableIdentifierBody, ...]
    next_page_token: str | None
    table_uuids: tuple[str, ...] | None = None
    protection_status: tuple[bool, ...] | None = None


class RenameRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/tables/rename` and `…/views/rename`."""

    source: TableIdentifierBody
    destination: TableIdentifierBody


class UnregisterTableResult(_Response, frozen=True):
    """The last state of a table that is no longer tracked."""

    metadata_location: str
    metadata: Raw


# ---- commits -------------------------------------------------------------------------------------------------------


class CommitTableRequest(_Request, frozen=True):
    """`POST …/tables/{t}`; in a transaction every change must carry its identifier."""

    UPDATE_KINDS: ClassVar = TABLE_ACTIONS
    REQUIREMENT_KINDS: ClassVar = TABLE_REQUIREMENTS

    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    identifier: TableIdentifierBody | None = None


class CommitTableResponse(_Response, frozen=True):
    """The committed state."""

    metadata_location: str
    metadata: Raw


class CommitTransactionRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/transactions/commit`: all or nothing."""

    UPDATE_KINDS: ClassVar = TABLE_ACTIONS
    REQUIREMENT_KINDS: ClassVar = TABLE_REQUIREMENTS

    table_changes: tuple[CommitTableRequest, ...]


# ---- views ---------------------------------------------------------------------------------------------------------


class CreateViewRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/views`."""

    name: str
    schema: Raw
    view_version: Raw
    location: str | None = None
    properties: Properties = {}


class CommitViewRequest(_Request, frozen=True):
    """`POST …/views/{v}`."""

    UPDATE_KINDS: ClassVar = VIEW_ACTIONS
    REQUIREMENT_KINDS: ClassVar = VIEW_REQUIREMENTS

    updates: tuple[ViewUpdate, ...]
    requirements: tuple[ViewRequirement, ...] = ()
    identifier: TableIdentifierBody | None = None


class RegisterViewRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/register-view`."""

    name: str
    metadata_location: str


class LoadViewResult(_Response, frozen=True):
    """A view loaded, created, committed or registered."""

    metadata_location: str
    metadata: Raw
    config: Properties | None = None
    storage_credentials: tuple[StorageCredential, ...] | None = None
    labels: Raw | msgspec.UnsetType = msgspec.UNSET


# ---- metrics -------------------------------------------------------------------------------------------------------


class _Report(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="report-type"):
    """Base of the reports engines send; lenient, since they are only recorded and engines add to them freely."""

    table_name: str
    snapshot_id: Long
    metrics: dict[str, Any]
    metadata: Properties | None = None


class ScanReport(_Report, frozen=True, tag="scan-report"):
    """What one scan read."""

    schema_id: Int
    filter: Any = None
    projected_field_ids: tuple[Int, ...] = ()
    projected_field_names: tuple[str, ...] = ()


class CommitReport(_Report, frozen=True, tag="commit-report"):
    """What one commit wrote."""

    sequence_number: Long
    operation: str


ReportMetricsRequest = ScanReport | CommitReport
