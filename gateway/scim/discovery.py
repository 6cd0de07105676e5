# SPDX-License-Identifier: Apache-2.0
"""Discovery resources of SCIM: supported features, resource types and schemas (RFC 7643, sections 5 to 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from gateway.scim.errors import NoSuchResource
from gateway.scim.wire import CONFIG, GROUP, RESOURCE_TYPE, SCHEMA, USER, ListOf, Meta, Wire, listed

Named = TypeVar("Named", "ScimResourceType", "ScimSchema")


class Supported(Wire, frozen=True):
    """Support of one feature."""

    supported: bool


class BulkSupport(Wire, frozen=True, omit_defaults=False):
    """Support of bulk requests, with its limits."""

    supported: bool = False
    max_operations: int = 0
    max_payload_size: int = 0


class FilterSupport(Wire, frozen=True):
    """Support of filters, with the maximum number of resources in one response."""

    supported: bool
    max_results: int


class AuthenticationScheme(Wire, frozen=True):
    """One authentication method for callers."""

    type: str
    name: str
    description: str


class ScimConfig(Wire, frozen=True, omit_defaults=False):
    """Body of the response to `GET /ServiceProviderConfig`."""

    schemas: tuple[str, ...]
    patch: Supported
    bulk: BulkSupport
    filter: FilterSupport
    change_password: Supported
    sort: Supported
    etag: Supported
    authentication_schemes: tuple[AuthenticationScheme, ...]
    meta: Meta


class ScimResourceType(Wire, frozen=True):
    """One resource type."""

    schemas: tuple[str, ...]
    id: str
    name: str
    endpoint: str
    schema: str
    meta: Meta


class ScimAttribute(Wire, frozen=True, omit_defaults=False):
    """One attribute of a schema."""

    name: str
    type: str = "string"
    multi_valued: bool = False
    required: bool = False
    case_exact: bool = False
    mutability: str = "readWrite"
    returned: str = "default"
    uniqueness: str = "none"
    reference_types: tuple[str, ...] = ()
    sub_attributes: tuple[ScimAttribute, ...] = ()


class ScimSchema(Wire, frozen=True):
    """One schema, with the attributes that this server stores."""

    schemas: tuple[str, ...]
    id: str
    name: str
    attributes: tuple[ScimAttribute, ...]
    meta: Meta


class ScimResourceTypeList(ListOf, frozen=True):
    """Body of the response to `GET /ResourceTypes`."""

    resources: tuple[ScimResourceType, ...] = msgspec.field(name="Resources")


class ScimSchemaList(ListOf, frozen=True):
    """Body of the response to `GET /Schemas`."""

    resources: tuple[ScimSchema, ...] = msgspec.field(name="Resources")


def config(max_results: int) -> ScimConfig:
    """Return the supported features of this server.

    Patches, equality filters and versions are supported. Bulk requests, sorting and passwords are not. `max_results` is
    the maximum number of resources in one response.
    """
    return ScimConfig(
        schemas=(CONFIG,),
        patch=Supported(supported=True),
        bulk=BulkSupport(),
        filter=FilterSupport(supported=True, max_results=max_results),
        change_password=Supported(supported=False),
        sort=Supported(supported=False),
        etag=Supported(supported=True),
        authentication_schemes=(
            AuthenticationScheme(
                type="oauthbearertoken",
                name="Bearer token",
                description="A token for provisioning that this server issued, or a provider's own access token.",
            ),
        ),
        meta=Meta(resource_type="ServiceProviderConfig", location="/scim/v2/ServiceProviderConfig"),
    )


def resource_types() -> ScimResourceTypeList:
    """Return the resource types: users and groups."""
    found = [
        ScimResourceType(
            schemas=(RESOURCE_TYPE,),
            id=name,
            name=name,
            endpoint=f"/{name}s",
            schema=schema,
            meta=Meta(resource_type="ResourceType", location=f"/scim/v2/ResourceTypes/{name}"),
        )
        for name, schema in (("User", USER), ("Group", GROUP))
    ]
    return listed(ScimResourceTypeList, found)


def resource_type(name: str) -> ScimResourceType:
    """Return the resource type with this name, whose letter case is ignored. Raises NoSuchResource."""
    return _named(name, resource_types().resources)


def schema(urn: str) -> ScimSchema:
    """Return the schema with this URN, whose letter case is ignored. Raises NoSuchResource."""
    return _named(urn, schemas().resources)


def _named(id: str, among: Sequence[Named]) -> Named:
    for each in among:
        if each.id.lower() == id.lower():
            return each
    raise NoSuchResource("The schema or resource type with this name does not exist.")


def schemas() -> ScimSchemaList:
    """Return the schemas of users and groups, with the attributes that this server stores."""
    found = [
        ScimSchema(
            schemas=(SCHEMA,),
            id=id,
            name=name,
            attributes=tuple(attributes),
            meta=Meta(resource_type="Schema", location=f"/scim/v2/Schemas/{id}"),
        )
        for id, name, attributes in ((USER, "User", _USER), (GROUP, "Group", _GROUP))
    ]
    return listed(ScimSchemaList, found)


_USER: Final[Sequence[ScimAttribute]] = (
    ScimAttribute(name="userName", required=True, uniqueness="server"),
    ScimAttribute(name="externalId", case_exact=True, uniqueness="server"),
    ScimAttribute(name="active", type="boolean"),
    ScimAttribute(name="displayName"),
    ScimAttribute(
        name="name",
        type="complex",
        sub_attributes=(
            ScimAttribute(name="formatted"),
            ScimAttribute(name="givenName"),
            ScimAttribute(name="familyName"),
        ),
    ),
    ScimAttribute(
        name="emails",
        type="complex",
        multi_valued=True,
        sub_attributes=(
            ScimAttribute(name="value"),
            ScimAttribute(name="type"),
            ScimAttribute(name="primary", type="boolean"),
        ),
    ),
)
_GROUP: Final[Sequence[ScimAttribute]] = (
    ScimAttribute(name="displayName", required=True, uniqueness="server"),
    ScimAttribute(name="externalId", case_exact=True, uniqueness="server"),
    ScimAttribute(
        name="members",
        type="complex",
        multi_valued=True,
        sub_attributes=(
            ScimAttribute(name="value", mutability="immutable"),
            ScimAttribute(name="$ref", type="reference", reference_types=("User",), mutability="readOnly"),
            ScimAttribute(name="display", mutability="readOnly"),
            ScimAttribute(name="type", mutability="immutable"),
        ),
    ),
)
