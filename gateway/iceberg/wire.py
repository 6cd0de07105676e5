# SPDX-License-Identifier: Apache-2.0
"""Request and response bodies of `/catalog/v1`, with the members of the protocol's OpenAPI document.

Unknown members of requests and updates are ignored, because the protocol grows by new members. They are rejected with
400 where ignoring them is not safe: in a requirement, where one would be an unchecked condition, and in the identifier
of a table, where one could make the identifier mean another table than the authorized one. The documents inside
(schemas, specs, orders, snapshots, view versions) stay raw JSON with the members of newer specifications. The functions
that apply them parse them. Optional members may be null. `decode` reports errors as 400 with the JSON path.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.codec import Long, absent
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.iceberg.requirements import TABLE_REQUIREMENTS, VIEW_REQUIREMENTS, TableRequirement, ViewRequirement
from gateway.iceberg.updates import TABLE_ACTIONS, VIEW_ACTIONS, TableUpdate, ViewUpdate
from lakegate.restrictions.literals import Int

Properties = dict[str, str]
Status = Annotated[int, Meta(ge=400, le=600)]


T = TypeVar("T")


def decode(data: bytes, kind: type[T]) -> T:
    """Decode a request body. A top-level member that is null is treated as missing.

    Raises `BadRequestException`. The message contains the JSON path in the spelling of the request.
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


class _Request(Struct, frozen=True, rename="kebab", kw_only=True):
    """Base of request bodies. Unknown members are ignored."""


class _Response(Struct, frozen=True, rename="kebab", kw_only=True, omit_defaults=True):
    """Base of response bodies.

    Members that equal their default are left out; members without a default are always present.
    """


class TableIdentifierBody(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The namespace and name of a table or view in a request or response body. Unknown members are rejected."""

    namespace: tuple[str, ...]
    name: str

    @property
    def identifier(self) -> TableIdentifier:
        """Return the identifier. Raises the errors of `Namespace` and `TableIdentifier` (400) for invalid names."""
        return TableIdentifier(Namespace(self.namespace), self.name)

    @property
    def key(self) -> str:
        """Return `TableIdentifier.key`. Raises the same errors as `identifier`."""
        return self.identifier.key

    @property
    def dotted(self) -> str:
        """Return `TableIdentifier.dotted`. Raises the same errors as `identifier`."""
        return self.identifier.dotted

    @classmethod
    def of(cls, identifier: TableIdentifier) -> TableIdentifierBody:
        """Build the body from an identifier."""
        return cls(identifier.namespace.levels, identifier.name)


# ---- config, errors ------------------------------------------------------------------------------------------------


class CatalogConfig(_Response, frozen=True):
    """Response of `GET /v1/config`.

    `idempotency_key_lifetime` is an ISO 8601 duration. It is absent if idempotency keys are not supported.
    """

    defaults: Properties
    overrides: Properties
    endpoints: tuple[str, ...]
    idempotency_key_lifetime: str | None = None


class ErrorModel(_Response, frozen=True):
    """The error of a response."""

    message: str
    type: str
    code: Status
    stack: tuple[str, ...] = ()


class ErrorResponse(_Response, frozen=True):
    """The body of every error response."""

    error: ErrorModel


# ---- namespaces ----------------------------------------------------------------------------------------------------


class CreateNamespaceRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/namespaces`."""

    namespace: tuple[str, ...]
    properties: Properties = {}

    @property
    def identifier(self) -> Namespace:
        """Return the namespace. Raises the errors of `Namespace` (400) for an invalid name."""
        return Namespace(self.namespace)


class NamespaceResponse(_Response, frozen=True):
    """A created or loaded namespace."""

    namespace: tuple[str, ...]
    properties: Properties


class ListNamespacesResponse(_Response, frozen=True):
    """The direct children of a namespace.

    `namespace_uuids` and `protection_status` are present only on request, with one value per entry of `namespaces`.
    """

    namespaces: tuple[tuple[str, ...], ...]
    next_page_token: str | None
    namespace_uuids: tuple[str, ...] | None = None
    protection_status: tuple[bool, ...] | None = None


class UpdateNamespacePropertiesRequest(_Request, frozen=True):
    """`POST …/namespaces/{ns}/properties`. A key in both members is an error (422)."""

    removals: tuple[str, ...] = ()
    updates: Properties = {}


class UpdateNamespacePropertiesResponse(_Response, frozen=True):
    """The changed keys. `missing` are keys of `removals` that the namespace did not have."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...] | None = None


# ---- tables --------------------------------------------------------------------------------------------------------


class StorageCredential(_Response, frozen=True):
    """Credentials for all keys below `prefix`, which ends in a slash."""

    prefix: str
    config: Properties


class RemoteSigningConfig(_Response, frozen=True):
    """Properties and headers that a client must repeat in every signing request."""

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
    """A loaded, created or registered table. `metadata` is the stored document, inserted unchanged.

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
    """The tables or views of a namespace.

    `table_uuids` and `protection_status` are present only on request, with one value per entry of `identifiers`.
    """

    identifiers: tuple[TableIdentifierBody, ...]
    next_page_token: str | None
    table_uuids: tuple[str, ...] | None = None
    protection_status: tuple[bool, ...] | None = None


class RenameRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/tables/rename` and `…/views/rename`."""

    source: TableIdentifierBody
    destination: TableIdentifierBody


class UnregisterTableResult(_Response, frozen=True):
    """The last state of a table that the catalog no longer tracks."""

    metadata_location: str
    metadata: Raw


# ---- remote signing ------------------------------------------------------------------------------------------------


class RemoteSignRequest(_Request, frozen=True):
    """`POST …/tables/{t}/sign`: a request to a store. `body` is present only if it contains the keys (DeleteObjects).

    `properties` are those of `RemoteSigningConfig`, which the gateway does not use. `provider` is the scheme of the
    store's locations; None if the client does not name it.
    """

    region: str
    uri: str
    method: str
    headers: dict[str, tuple[str, ...]]
    properties: Properties = {}
    body: str | None = None
    provider: str | None = None

    @property
    def reads(self) -> bool:
        """Return True if the request's method changes nothing in a store."""
        return self.method.upper() in ("GET", "HEAD")


class RemoteSignResult(_Response, frozen=True):
    """The URI and all headers that the client must send, signed and unsigned."""

    uri: str
    headers: dict[str, tuple[str, ...]]


# ---- commits -------------------------------------------------------------------------------------------------------


class CommitTableRequest(_Request, frozen=True):
    """`POST …/tables/{t}`. In a transaction, `identifier` is required for every change."""

    UPDATE_KINDS: ClassVar = TABLE_ACTIONS
    REQUIREMENT_KINDS: ClassVar = TABLE_REQUIREMENTS

    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    identifier: TableIdentifierBody | None = None


class CommitTableResponse(_Response, frozen=True):
    """The committed state of a table."""

    metadata_location: str
    metadata: Raw


class CommitTransactionRequest(_Request, frozen=True):
    """`POST /v1/{prefix}/transactions/commit`. Either all changes are committed or none."""

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
    """A loaded, created, committed or registered view."""

    metadata_location: str
    metadata: Raw
    config: Properties | None = None
    storage_credentials: tuple[StorageCredential, ...] | None = None
    labels: Raw | msgspec.UnsetType = msgspec.UNSET


# ---- metrics -------------------------------------------------------------------------------------------------------


class _Report(Struct, frozen=True, rename="kebab", kw_only=True, tag_field="report-type"):
    """Base of the metrics reports of engines.

    Unknown members are accepted: engines add some, and reports are only recorded.
    """

    table_name: str
    snapshot_id: Long
    metrics: dict[str, Any]
    metadata: Properties | None = None


class ScanReport(_Report, frozen=True, tag="scan-report"):
    """The metrics of one scan."""

    schema_id: Int
    filter: Any = None
    projected_field_ids: tuple[Int, ...] = ()
    projected_field_names: tuple[str, ...] = ()


class CommitReport(_Report, frozen=True, tag="commit-report"):
    """The metrics of one commit."""

    sequence_number: Long
    operation: str


ReportMetricsRequest = ScanReport | CommitReport
