# SPDX-License-Identifier: Apache-2.0
"""Bodies of the management API, with the names existing scripts use (`lakekeeper.md` section 3).

Requests refuse unknown fields: a mistyped option is an error, not a surprise.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.iceberg.codec import absent

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]
#: No slash: clients name a warehouse `project/warehouse` (`lakekeeper.md` 1.1).
WarehouseName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^/\x00-\x1f\x7f]+(?![\s\S])$")]
ProjectId = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+(?![\s\S])$")]
UserId = Annotated[
    str, msgspec.Meta(min_length=3, max_length=255, pattern=r"^[a-z0-9-]+~[^\x00-\x1f\x7f]{1,127}(?![\s\S])$")
]
UserType = Literal["human", "application"]
ManagedBy = Literal["self-managed", "instance-admin"]
FormatVersions = Annotated[tuple[Literal[1, 2, 3], ...], msgspec.Meta(min_length=1)]


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A request body."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """An answer body."""


class LicenseStatus(Answer, frozen=True):
    """Clients of the reference system read it; everything here is open."""

    license_type: str = "apache-2.0"
    valid: bool = True


class ServerInfo(Answer, frozen=True, omit_defaults=True):
    """`GET /info`. `lakekeeper-version` is what clients compare; it is this server's own version."""

    version: str
    lakekeeper_version: str
    bootstrapped: bool
    server_id: UUID
    authz_backend: str
    aws_system_identities_enabled: bool
    azure_system_identities_enabled: bool
    gcp_system_identities_enabled: bool
    queues: tuple[str, ...]
    license_status: LicenseStatus
    default_project_id: str | None = None


class BootstrapRequest(Request, frozen=True):
    """`POST /bootstrap`."""

    accept_terms_of_use: bool
    is_operator: bool = False
    user_name: Name | None = None
    user_email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None


class User(Answer, frozen=True, omit_defaults=True):
    """A user record."""

    id: str
    name: str
    user_type: str
    created_at: datetime
    last_updated_with: str
    email: str | None = None
    updated_at: datetime | None = None


class WhoAmIAnswer(User, frozen=True, omit_defaults=True):
    """`GET /whoami`."""

    is_instance_admin: bool | None = None


class CreateUserRequest(Request, frozen=True):
    """`POST /user`; without an id the caller registers themselves."""

    id: UserId | None = None
    name: Name | None = None
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None
    update_if_exists: bool = False


class UpdateUserRequest(Request, frozen=True):
    """`PUT /user/{id}`; without an address the user has none afterwards."""

    name: Name
    user_type: UserType
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None


class FoundUser(Answer, frozen=True, omit_defaults=True):
    """A hit of a search."""

    id: str
    name: str
    user_type: str
    email: str | None = None


class FoundUsers(Answer, frozen=True):
    """`POST /search/user`."""

    users: list[FoundUser]


class UserList(Answer, frozen=True, omit_defaults=True):
    """`GET /user`."""

    users: list[User]
    next_page_token: str | None = None


class CreateProjectRequest(Request, frozen=True):
    """`POST /project`."""

    project_name: Name
    project_id: ProjectId | None = None


class CreatedProject(Answer, frozen=True):
    """`POST /project` answers it."""

    project_id: str


class RenameProjectRequest(Request, frozen=True):
    """`POST /project/rename`."""

    new_name: Name


class Project(Answer, frozen=True):
    """A project."""

    project_id: str
    project_name: str


class ProjectList(Answer, frozen=True):
    """`GET /project-list`."""

    projects: list[Project]


class HardDelete(msgspec.Struct, frozen=True, rename="kebab", tag_field="type", tag="hard", forbid_unknown_fields=True):
    """Dropped is gone."""


class SoftDelete(msgspec.Struct, frozen=True, rename="kebab", tag_field="type", tag="soft", forbid_unknown_fields=True):
    """Dropped can be brought back for so many seconds."""

    expiration_seconds: Annotated[int, msgspec.Meta(ge=0, le=31_536_000)]


class CreateWarehouseRequest(Request, frozen=True):
    """`POST /warehouse` and `POST /warehouse-creation-validation`."""

    warehouse_name: WarehouseName
    storage_profile: msgspec.Raw
    storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)
    delete_profile: HardDelete | SoftDelete = HardDelete()
    project_id: ProjectId | None = None
    managed_by: ManagedBy = "self-managed"
    allowed_format_versions: FormatVersions = (1, 2, 3)
    default_format_version: Literal[1, 2, 3] | None = None


class CredentialType(Answer, frozen=True):
    """What kind of credential a warehouse has; never the credential."""

    type: str
    credential_type: str


class Warehouse(Answer, frozen=True, omit_defaults=True):
    """A warehouse. `id` repeats `warehouse-id` for older clients."""

    warehouse_id: UUID
    id: UUID
    name: str
    project_id: str
    status: str
    protected: bool
    storage_profile: msgspec.Raw
    delete_profile: dict[str, Any]
    managed_by: str
    allowed_format_versions: list[int]
    storage_credential_type: CredentialType | None = None
    default_format_version: int | None = None
    updated_at: datetime | None = None


class WarehouseList(Answer, frozen=True):
    """`GET /warehouse`."""

    warehouses: list[Warehouse]
