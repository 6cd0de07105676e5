# SPDX-License-Identifier: Apache-2.0
"""Declare the object type project: its references, rows and refusals.

A project contains warehouses, roles, tags and data policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.nouns.card import Card, Resolved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import IdRef, ObjectType
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException


@dataclass(frozen=True, slots=True)
class ProjectRef(IdRef):
    """A project by its id."""

    type: ClassVar[ObjectType] = ObjectType.PROJECT
    in_path: ClassVar[tuple[str, ...]] = ("project_id",)
    project_id: str


class ResolvedProject(Resolved, frozen=True, kw_only=True):
    """A project row."""

    type: ClassVar[ObjectType] = ObjectType.PROJECT
    id: str
    name: str

    @property
    def in_project(self) -> str | None:
        return self.id


class ProjectNotFound(CatalogError, code=404):
    """The project does not exist, or the caller may not see it."""


class ProjectActionForbidden(ForbiddenException):
    """The caller may see a project, and may not take this action on it."""


CARD = Card(
    type=ObjectType.PROJECT,
    row=ResolvedProject,
    refs=(ProjectRef,),
    parents=(ObjectType.SERVER,),
    edge="server",
    not_found=ProjectNotFound,
    forbidden=ProjectActionForbidden,
    grantors="a security administrator or an administrator of the project",
    visible_by=Can.GET_METADATA,
    privileges=(
        Privilege.PROJECT_ADMIN,
        Privilege.SECURITY_ADMIN,
        Privilege.DATA_ADMIN,
        Privilege.ROLE_CREATOR,
        Privilege.TAG_CREATOR,
        Privilege.DELEGATE,
        Privilege.ENFORCER,
        Privilege.INSPECTOR,
        Privilege.APPROVE_CHANGES,
        Privilege.AUDITOR,
        Privilege.DESCRIBE,
        Privilege.SELECT,
        Privilege.CREATE,
        Privilege.MODIFY,
    ),
    policy_operations={
        Can.CONTROL_PROJECT_TASKS: "control_project_tasks",
        Can.DELEGATE: "exchange_token",
        Can.GET_METADATA: "get_project",
        Can.GET_PROJECT_TASKS: "list_project_tasks",
        Can.GET_TASK_QUEUE_CONFIG: "get_task_log_cleanup_config",
        Can.INSPECT: "batch_check",
        Can.MANAGE_MAPPING_TABLES: "list_mapping_tables",
        Can.MODIFY_TASK_QUEUE_CONFIG: "set_task_log_cleanup_config",
        Can.SEARCH_ROLES: "search_role",
    },
)
