# SPDX-License-Identifier: Apache-2.0
"""Declare the object type role: its references, rows and refusals.

A role is a group of users and roles that holds privileges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.nouns.card import Card, ResolvedInProject
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import IdRef, ObjectType
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException


@dataclass(frozen=True, slots=True)
class RoleRef(IdRef):
    """A role by its id."""

    type: ClassVar[ObjectType] = ObjectType.ROLE
    in_path: ClassVar[tuple[str, ...]] = ("role_id",)
    role_id: UUID


class ResolvedRole(ResolvedInProject, frozen=True, kw_only=True):
    """A role row."""

    type: ClassVar[ObjectType] = ObjectType.ROLE


class RoleNotFound(CatalogError, code=404, type="RoleIdNotFound"):
    """The role does not exist, or the caller may not see it."""


class RoleActionForbidden(ForbiddenException):
    """The caller may see a role, and may not take this action on it."""


CARD = Card(
    type=ObjectType.ROLE,
    row=ResolvedRole,
    refs=(RoleRef,),
    parents=(ObjectType.PROJECT,),
    edge="project",
    not_found=RoleNotFound,
    forbidden=RoleActionForbidden,
    grantors="the owner of the role or a security administrator of the project",
    visible_by=Can.READ,
    queried_by=Can.READ_METADATA,
    privileges=(Privilege.ASSIGNEE, Privilege.OWNERSHIP),
    policy_operations={
        Can.MANAGE_ROLE_ASSIGNMENTS: "add_role_members",
        Can.READ_METADATA: "get_role_metadata",
        Can.READ_ROLE_ASSIGNMENTS: "list_role_members",
    },
)
