# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about roles."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, ProjectId, Request

#: The provider of roles whose members are managed here.
OWN_PROVIDER = "lakekeeper"

#: The provider of roles that belong to the catalog itself; nobody may make one.
SYSTEM_PROVIDER = "system"

#: `$` alone would let a line feed follow (Python's `re`).
ProviderId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9-]+(?![\s\S])$")]

SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]

Description = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateRoleRequest(Request, frozen=True):
    """`POST /role`. Without a source id the role's own id is it."""

    name: Name
    description: Description | None = None
    provider_id: ProviderId = OWN_PROVIDER
    source_id: SourceId | None = None
    project_id: ProjectId | None = None


class UpdateRoleRequest(Request, frozen=True):
    """`POST /role/{id}`; without a description the role has none afterwards."""

    name: Name
    description: Description | None = None


class RoleSourceRequest(Request, frozen=True):
    """`PUT /role/{id}/source-system`."""

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
    """`GET /role/{id}/metadata`."""

    id: UUID
    ident: str
    name: str
    project_id: str
    provider_id: str
    source_id: str


class RoleList(Answer, frozen=True, omit_defaults=True):
    """`GET /role` and `POST /search/role`."""

    roles: list[Role]
    next_page_token: str | None = None


class NamedRole(Answer, frozen=True):
    """A role among those that somebody is in."""

    id: UUID
    ident: str
    name: str


class NamedRoleList(Answer, frozen=True):
    """`GET /role/{id}/member-of` and `GET /user/{id}/roles`."""

    roles: list[NamedRole]


class RoleMember(Request, frozen=True):
    """A member: a user by `<provider>~<subject>`, a role by its UUID."""

    type: Literal["user", "role"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class RoleMembersRequest(Request, frozen=True):
    """`POST /role/{id}/members`."""

    members: Annotated[tuple[RoleMember, ...], msgspec.Meta(max_length=100)]


class RoleMemberList(Answer, frozen=True, omit_defaults=True):
    """`GET /role/{id}/members`."""

    members: list[RoleMember]
    next_page_token: str | None = None
