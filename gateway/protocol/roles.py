# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for roles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, ProjectId, Request, StrictRequest

#: The provider of roles whose members this server manages.
OWN_PROVIDER = "lakekeeper"

#: The provider of the catalog's built-in roles. No caller may create such a role.
SYSTEM_PROVIDER = "system"

#: `(?![\s\S])` precedes `$`, because `$` alone accepts a trailing line feed in Python's `re`.
ProviderId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9-]+(?![\s\S])$")]

SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]

Description = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateRoleRequest(Request, frozen=True):
    """Request of `POST /role`. Without a `source-id`, the id of the role is also its source id."""

    name: Name
    description: Description | None = None
    provider_id: ProviderId = OWN_PROVIDER
    source_id: SourceId | None = None
    project_id: ProjectId | None = None


class UpdateRoleRequest(Request, frozen=True):
    """Request of `POST /role/{id}`. Without a `description`, the existing description is removed."""

    name: Name
    description: Description | None = None


class RoleSourceRequest(StrictRequest, frozen=True):
    """Request of `PUT /role/{id}/source-system`."""

    provider_id: ProviderId
    source_id: SourceId


class Role(Answer, frozen=True, omit_defaults=True):
    """A role. `ident` is `<provider>~<source>`."""

    id: UUID
    ident: str
    name: str
    project_id: str
    provider_id: str
    source_id: str
    created_at: datetime
    description: str | None = None
    updated_at: datetime | None = None


class RoleMetadata(Answer, frozen=True):
    """Response of `GET /role/{id}/metadata`."""

    id: UUID
    ident: str
    name: str
    project_id: str
    provider_id: str
    source_id: str


class RoleList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role` and `POST /search/role`."""

    roles: list[Role]
    next_page_token: str | None = None


class NamedRole(Answer, frozen=True):
    """A role that has a user or another role as a member."""

    id: UUID
    ident: str
    name: str


class NamedRoleList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role/{id}/member-of` and `GET /user/{id}/roles`, by name. The second has pages only if the
    request has `pageSize` or `pageToken`.
    """

    roles: list[NamedRole]
    next_page_token: str | None = None


class RoleMember(StrictRequest, frozen=True):
    """A member: a user by `<provider>~<subject>`, a role by its UUID."""

    type: Literal["user", "role"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class RoleMembersRequest(StrictRequest, frozen=True):
    """Request of `POST /role/{id}/members`."""

    members: Annotated[tuple[RoleMember, ...], msgspec.Meta(max_length=100)]


class DescribedMember(Answer, frozen=True, omit_defaults=True):
    """A member. A user has a name, a type and, if it is verified, an address, unless its record is deleted. A role of
    the same project has a name and its `ident`.
    """

    type: str
    id: str
    name: str | None = None
    email: str | None = None
    user_type: str | None = None
    ident: str | None = None


class RoleMemberList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role/{id}/members`."""

    members: list[DescribedMember]
    next_page_token: str | None = None
