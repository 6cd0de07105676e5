# SPDX-License-Identifier: Apache-2.0
"""Declare the object types server and user: their references, rows and refusals.

The server is above all projects. Users are people and services that an identity provider knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from gateway.access.nouns.card import Card, Resolved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import IdRef, ObjectType, Ref, Requested
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException


@dataclass(frozen=True, slots=True)
class ServerRef(Ref):
    """The one server of this deployment."""

    type: ClassVar[ObjectType] = ObjectType.SERVER

    def requested(self) -> Requested:
        return Requested()

    def lookup(self) -> dict[str, Any]:
        return {}


class ResolvedServer(Resolved, frozen=True, kw_only=True):
    """The server row."""

    type: ClassVar[ObjectType] = ObjectType.SERVER
    id: UUID
    bootstrapped: bool

    @property
    def in_project(self) -> str | None:
        return None


class ServerActionForbidden(ForbiddenException):
    """The caller may not take this action on the server."""


SERVER = Card(
    type=ObjectType.SERVER,
    row=ResolvedServer,
    refs=(ServerRef,),
    not_found=ServerActionForbidden,
    absent_text="The server is not bootstrapped, or the token is limited to one project. Bootstrap the server, or send "
    "a token that is not limited to a project.",
    forbidden=ServerActionForbidden,
    grantors="an administrator of the server",
    privileges=(
        Privilege.ADMIN,
        Privilege.OPERATOR,
        Privilege.PROVISIONER,
        Privilege.POLICY_READER,
        Privilege.AUDITOR,
    ),
    policy_operations={
        Can.DELETE_USERS: "delete_user",
        Can.LIST_ALL_PROJECTS: "list_projects",
        Can.MANAGE_EVENTS: "replay_events",
        Can.PROVISION_USERS: "provision_user",
        Can.READ_EVENTS: "list_event_sinks",
        Can.READ_POLICIES: "get_policy_bundle",
        Can.SYNCHRONIZE_IDENTITIES: "list_scim_users",
        Can.UPDATE_USERS: "update_user",
    },
)


@dataclass(frozen=True, slots=True)
class UserRef(IdRef):
    """A user by its id `<idp>~<subject>`."""

    type: ClassVar[ObjectType] = ObjectType.USER
    in_path: ClassVar[tuple[str, ...]] = ("user_id",)
    user_id: str


class ResolvedUser(Resolved, frozen=True, kw_only=True):
    """A user row."""

    type: ClassVar[ObjectType] = ObjectType.USER
    id: str
    name: str
    email: str | None
    user_type: str
    created_at: datetime
    updated_at: datetime | None
    last_updated_with: str

    @property
    def in_project(self) -> str | None:
        return None


class UserNotFound(CatalogError, code=404):
    """The user does not exist, or the caller may not see it."""


class UserActionForbidden(ForbiddenException):
    """The caller may see a user, and may not take this action on it."""


USER = Card(
    type=ObjectType.USER,
    row=ResolvedUser,
    refs=(UserRef,),
    not_found=UserNotFound,
    forbidden=UserActionForbidden,
    grantors="an administrator of the server",
)
