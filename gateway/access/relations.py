# SPDX-License-Identifier: Apache-2.0
"""Every relation the gateway demands, by the name it has in the relationship model.

The names are those of the reference system (`lakekeeper.md` 3.5 and 4.2). That each exists on the demanded type, and
that each `can_*` of the model is demanded somewhere or listed as reserved, is tested in
`tests/access/test_model_parity.py`.
"""

from __future__ import annotations

from enum import StrEnum

from gateway.access.refs import ObjectType


class Can(StrEnum):
    """A relation that an operation may demand."""

    ACTIVATE = "can_activate"
    CHANGE_OWNERSHIP = "can_change_ownership"
    COMMIT = "can_commit"
    CREATE_NAMESPACE = "can_create_namespace"
    CREATE_PROJECT = "can_create_project"
    CREATE_ROLE = "can_create_role"
    CREATE_TABLE = "can_create_table"
    CREATE_VIEW = "can_create_view"
    CREATE_WAREHOUSE = "can_create_warehouse"
    DELETE = "can_delete"
    DELETE_USERS = "can_delete_users"
    DROP = "can_drop"
    GET_CONFIG = "can_get_config"
    GET_METADATA = "can_get_metadata"
    GRANT_ADMIN = "can_grant_admin"
    GRANT_ASSIGNEE = "can_grant_assignee"
    GRANT_CREATE = "can_grant_create"
    GRANT_DATA_ADMIN = "can_grant_data_admin"
    GRANT_DESCRIBE = "can_grant_describe"
    GRANT_MANAGE_GRANTS = "can_grant_manage_grants"
    GRANT_MANAGE_TAGS = "can_grant_manage_tags"
    GRANT_MODIFY = "can_grant_modify"
    GRANT_OPERATOR = "can_grant_operator"
    GRANT_PASS_GRANTS = "can_grant_pass_grants"
    GRANT_PROJECT_ADMIN = "can_grant_project_admin"
    GRANT_ROLE_CREATOR = "can_grant_role_creator"
    GRANT_SECURITY_ADMIN = "can_grant_security_admin"
    GRANT_SELECT = "can_grant_select"
    INCLUDE_IN_LIST = "can_include_in_list"
    LIST_EVERYTHING = "can_list_everything"
    LIST_NAMESPACES = "can_list_namespaces"
    LIST_ROLES = "can_list_roles"
    LIST_TABLES = "can_list_tables"
    LIST_USERS = "can_list_users"
    LIST_VIEWS = "can_list_views"
    LIST_WAREHOUSES = "can_list_warehouses"
    PROVISION_USERS = "can_provision_users"
    READ = "can_read"
    READ_ASSIGNMENTS = "can_read_assignments"
    READ_DATA = "can_read_data"
    RENAME = "can_rename"
    UPDATE_PROPERTIES = "can_update_properties"
    UPDATE_STORAGE = "can_update_storage"
    UPDATE_USERS = "can_update_users"
    USE = "can_use"
    WRITE_DATA = "can_write_data"


#: What makes an object of each type visible at all. Servers have no entry: that there is one is no secret.
VISIBLE_BY: dict[ObjectType, Can] = {
    ObjectType.PROJECT: Can.GET_METADATA,
    ObjectType.WAREHOUSE: Can.GET_METADATA,
    ObjectType.NAMESPACE: Can.GET_METADATA,
    ObjectType.TABLE: Can.GET_METADATA,
    ObjectType.VIEW: Can.GET_METADATA,
    ObjectType.ROLE: Can.READ,
}


_GRANTING_BELOW_PROJECT = frozenset(
    {
        Can.CHANGE_OWNERSHIP,
        Can.GRANT_DESCRIBE,
        Can.GRANT_MANAGE_GRANTS,
        Can.GRANT_MANAGE_TAGS,
        Can.GRANT_MODIFY,
        Can.GRANT_PASS_GRANTS,
        Can.GRANT_SELECT,
        Can.READ_ASSIGNMENTS,
    }
)

#: Every relation some operation demands, by type: `serve` refuses a relationship model that lacks one of them.
DEMANDED: dict[ObjectType, frozenset[Can]] = {
    ObjectType.SERVER: frozenset(
        {
            Can.CREATE_PROJECT,
            Can.GRANT_ADMIN,
            Can.GRANT_OPERATOR,
            Can.LIST_USERS,
            Can.PROVISION_USERS,
            Can.READ_ASSIGNMENTS,
        }
    ),
    ObjectType.PROJECT: frozenset(
        {
            Can.CREATE_WAREHOUSE,
            Can.GET_METADATA,
            Can.GRANT_CREATE,
            Can.GRANT_DATA_ADMIN,
            Can.GRANT_DESCRIBE,
            Can.GRANT_MODIFY,
            Can.GRANT_PROJECT_ADMIN,
            Can.GRANT_ROLE_CREATOR,
            Can.GRANT_SECURITY_ADMIN,
            Can.GRANT_SELECT,
            Can.INCLUDE_IN_LIST,
            Can.LIST_WAREHOUSES,
            Can.READ_ASSIGNMENTS,
        }
    ),
    ObjectType.WAREHOUSE: _GRANTING_BELOW_PROJECT
    | {
        Can.CREATE_NAMESPACE,
        Can.GET_CONFIG,
        Can.GET_METADATA,
        Can.GRANT_CREATE,
        Can.INCLUDE_IN_LIST,
        Can.LIST_EVERYTHING,
        Can.LIST_NAMESPACES,
        Can.UPDATE_STORAGE,
    },
    ObjectType.NAMESPACE: _GRANTING_BELOW_PROJECT
    | {
        Can.CREATE_NAMESPACE,
        Can.CREATE_TABLE,
        Can.CREATE_VIEW,
        Can.DELETE,
        Can.GET_METADATA,
        Can.GRANT_CREATE,
        Can.INCLUDE_IN_LIST,
        Can.LIST_EVERYTHING,
        Can.LIST_NAMESPACES,
        Can.LIST_TABLES,
        Can.LIST_VIEWS,
        Can.UPDATE_PROPERTIES,
    },
    ObjectType.TABLE: _GRANTING_BELOW_PROJECT
    | {Can.COMMIT, Can.DROP, Can.GET_METADATA, Can.INCLUDE_IN_LIST, Can.READ_DATA, Can.RENAME, Can.WRITE_DATA},
    ObjectType.VIEW: _GRANTING_BELOW_PROJECT
    | {Can.COMMIT, Can.DROP, Can.GET_METADATA, Can.INCLUDE_IN_LIST, Can.RENAME},
    ObjectType.ROLE: frozenset({Can.CHANGE_OWNERSHIP, Can.GRANT_ASSIGNEE, Can.READ, Can.READ_ASSIGNMENTS}),
    ObjectType.USER: frozenset(),
}
