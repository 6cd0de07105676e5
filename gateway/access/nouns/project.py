# SPDX-License-Identifier: Apache-2.0
"""Projects: the objects that contain warehouses, roles, tags and data policies."""

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
    actions=frozenset(
        {
            Can.CONTROL_PROJECT_TASKS,
            Can.CREATE_DATA_POLICY,
            Can.CREATE_ROLE,
            Can.CREATE_TAG,
            Can.CREATE_WAREHOUSE,
            Can.DELEGATE,
            Can.DELETE,
            Can.GET_ENDPOINT_STATISTICS,
            Can.GET_METADATA,
            Can.GET_PROJECT_TASKS,
            Can.GET_TASK_QUEUE_CONFIG,
            Can.GRANT_APPROVE_CHANGES,
            Can.GRANT_CREATE,
            Can.GRANT_DATA_ADMIN,
            Can.GRANT_DELEGATE,
            Can.GRANT_DESCRIBE,
            Can.GRANT_ENFORCER,
            Can.GRANT_INSPECTOR,
            Can.GRANT_MODIFY,
            Can.GRANT_PROJECT_ADMIN,
            Can.GRANT_ROLE_CREATOR,
            Can.GRANT_SECURITY_ADMIN,
            Can.GRANT_SELECT,
            Can.GRANT_TAG_CREATOR,
            Can.INCLUDE_IN_LIST,
            Can.INSPECT,
            Can.LIST_DATA_POLICIES,
            Can.LIST_ROLES,
            Can.LIST_TAGS,
            Can.LIST_WAREHOUSES,
            Can.MANAGE_MAPPING_TABLES,
            Can.MODIFY_TASK_QUEUE_CONFIG,
            Can.READ_ASSIGNMENTS,
            Can.READ_GRANTS,
            Can.RENAME,
            Can.SEARCH_ROLES,
        }
    ),
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
