# SPDX-License-Identifier: Apache-2.0
"""Every relation that the gateway demands, by its name in the relationship model.

The names are those of Lakekeeper. `tests/access/test_lock_6_model_parity.py` checks three facts. Each relation exists
on the demanded type. Each `can_*` of the model is demanded somewhere or listed as reserved. ACTIONS equals the actions
of the model.
"""

from __future__ import annotations

from enum import StrEnum

from gateway.access.nouns.refs import ObjectType


class Can(StrEnum):
    """A relation that an operation demands, or that a check is about."""

    ACCEPT_MOVED_NAMESPACE = "can_accept_moved_namespace"
    ACTIVATE = "can_activate"
    ADOPT_FILES = "can_adopt_files"
    APPLY = "can_apply"
    APPROVE_CHANGES = "can_approve_changes"
    ASSUME = "can_assume"
    BE_SUBJECT = "can_be_subject"
    BIND = "can_bind"
    BIND_DATA_POLICY = "can_bind_data_policy"
    CHANGE_OWNERSHIP = "can_change_ownership"
    COMMIT = "can_commit"
    CONTROL_ALL_TASKS = "can_control_all_tasks"
    CONTROL_PROJECT_TASKS = "can_control_project_tasks"
    CONTROL_TASKS = "can_control_tasks"
    CREATE_DATA_POLICY = "can_create_data_policy"
    CREATE_GENERIC_TABLE = "can_create_generic_table"
    CREATE_NAMESPACE = "can_create_namespace"
    CREATE_PROJECT = "can_create_project"
    CREATE_ROLE = "can_create_role"
    CREATE_TABLE = "can_create_table"
    CREATE_TAG = "can_create_tag"
    CREATE_VIEW = "can_create_view"
    CREATE_WAREHOUSE = "can_create_warehouse"
    DEACTIVATE = "can_deactivate"
    DELEGATE = "can_delegate"
    DELETE = "can_delete"
    DELETE_USERS = "can_delete_users"
    DROP = "can_drop"
    ENFORCE = "can_enforce"
    GET_ALL_TASKS = "can_get_all_tasks"
    GET_CONFIG = "can_get_config"
    GET_ENDPOINT_STATISTICS = "can_get_endpoint_statistics"
    GET_METADATA = "can_get_metadata"
    GET_PROJECT_TASKS = "can_get_project_tasks"
    GET_TASK_QUEUE_CONFIG = "can_get_task_queue_config"
    GET_TASKS = "can_get_tasks"
    GRANT_ADMIN = "can_grant_admin"
    GRANT_APPLY = "can_grant_apply"
    GRANT_APPROVE_CHANGES = "can_grant_approve_changes"
    GRANT_ASSIGNEE = "can_grant_assignee"
    GRANT_CREATE = "can_grant_create"
    GRANT_DATA_ADMIN = "can_grant_data_admin"
    GRANT_DELEGATE = "can_grant_delegate"
    GRANT_DESCRIBE = "can_grant_describe"
    GRANT_ENFORCER = "can_grant_enforcer"
    GRANT_EXEMPT = "can_grant_exempt"
    GRANT_INSPECTOR = "can_grant_inspector"
    GRANT_MANAGE_GRANTS = "can_grant_manage_grants"
    GRANT_MANAGE_STORAGE = "can_grant_manage_storage"
    GRANT_MANAGE_TAGS = "can_grant_manage_tags"
    GRANT_MODIFY = "can_grant_modify"
    GRANT_OPERATOR = "can_grant_operator"
    GRANT_PASS_GRANTS = "can_grant_pass_grants"
    GRANT_POLICY_READER = "can_grant_policy_reader"
    GRANT_PROJECT_ADMIN = "can_grant_project_admin"
    GRANT_PROVISIONER = "can_grant_provisioner"
    GRANT_REMOVE = "can_grant_remove"
    GRANT_ROLE_CREATOR = "can_grant_role_creator"
    GRANT_SECURITY_ADMIN = "can_grant_security_admin"
    GRANT_SELECT = "can_grant_select"
    GRANT_SUBJECT = "can_grant_subject"
    GRANT_TAG_CREATOR = "can_grant_tag_creator"
    INCLUDE_IN_LIST = "can_include_in_list"
    INSPECT = "can_inspect"
    LIST_ALL_PROJECTS = "can_list_all_projects"
    LIST_DATA_POLICIES = "can_list_data_policies"
    LIST_DELETED_TABULARS = "can_list_deleted_tabulars"
    LIST_EVERYTHING = "can_list_everything"
    LIST_GENERIC_TABLES = "can_list_generic_tables"
    LIST_NAMESPACES = "can_list_namespaces"
    LIST_ROLES = "can_list_roles"
    LIST_TABLES = "can_list_tables"
    LIST_TAGS = "can_list_tags"
    LIST_USERS = "can_list_users"
    LIST_VIEWS = "can_list_views"
    LIST_WAREHOUSES = "can_list_warehouses"
    MANAGE_EVENTS = "can_manage_events"
    MANAGE_MAPPING_TABLES = "can_manage_mapping_tables"
    MANAGE_ROLE_ASSIGNMENTS = "can_manage_role_assignments"
    MANAGE_TAGS = "can_manage_tags"
    MODIFY_SOFT_DELETION = "can_modify_soft_deletion"
    MODIFY_TASK_QUEUE_CONFIG = "can_modify_task_queue_config"
    MOVE = "can_move"
    PROVISION_USERS = "can_provision_users"
    READ = "can_read"
    READ_AFFECTED = "can_read_affected"
    READ_ASSIGNMENTS = "can_read_assignments"
    READ_ATTACHMENTS = "can_read_attachments"
    READ_COLUMNS = "can_read_columns"
    READ_DATA = "can_read_data"
    READ_EVENTS = "can_read_events"
    READ_GRANTS = "can_read_grants"
    READ_POLICIES = "can_read_policies"
    READ_METADATA = "can_read_metadata"
    READ_ROLE_ASSIGNMENTS = "can_read_role_assignments"
    RELEASE = "can_release"
    REMOVE = "can_remove"
    RENAME = "can_rename"
    SEARCH_ROLES = "can_search_roles"
    SELECT = "can_select"
    SET_FORMAT_VERSION_POLICY = "can_set_format_version_policy"
    SET_MANAGED_ACCESS = "can_set_managed_access"
    SET_PROTECTION = "can_set_protection"
    SKIP_POLICY = "can_skip"
    SYNCHRONIZE_IDENTITIES = "can_synchronize_identities"
    UNDROP = "can_undrop"
    UNREGISTER = "can_unregister"
    UPDATE = "can_update"
    UPDATE_PROPERTIES = "can_update_properties"
    UPDATE_SOURCE_SYSTEM = "can_update_source_system"
    UPDATE_STORAGE = "can_update_storage"
    UPDATE_USERS = "can_update_users"
    USE = "can_use"
    WRITE_DATA = "can_write_data"


#: The relation that makes an object visible, by type. Servers have no entry: the existence of a server is no secret.
OTHER_VISIBLE_BY: dict[ObjectType, Can] = {
    ObjectType.PROJECT: Can.GET_METADATA,
    ObjectType.WAREHOUSE: Can.GET_METADATA,
    ObjectType.NAMESPACE: Can.GET_METADATA,
    # Column grantees see that the table exists, without its metadata.
    ObjectType.TABLE: Can.INCLUDE_IN_LIST,
    ObjectType.VIEW: Can.GET_METADATA,
    ObjectType.GENERIC_TABLE: Can.GET_METADATA,
}

_EVERYWHERE_BELOW_PROJECTS = frozenset(
    {
        Can.APPROVE_CHANGES,
        Can.CHANGE_OWNERSHIP,
        Can.GET_METADATA,
        Can.GRANT_APPROVE_CHANGES,
        Can.GRANT_DESCRIBE,
        Can.GRANT_MANAGE_GRANTS,
        Can.GRANT_MANAGE_TAGS,
        Can.GRANT_MODIFY,
        Can.GRANT_PASS_GRANTS,
        Can.GRANT_SELECT,
        Can.INCLUDE_IN_LIST,
        Can.MANAGE_TAGS,
        Can.READ_ASSIGNMENTS,
        Can.READ_GRANTS,
        Can.SET_PROTECTION,
    }
)
_ON_LEAVES = _EVERYWHERE_BELOW_PROJECTS | {
    Can.COMMIT,
    Can.CONTROL_TASKS,
    Can.DROP,
    Can.GET_TASKS,
    Can.MOVE,
    Can.RENAME,
    Can.UNDROP,
}

#: Every action that the relationship model decides, by type. Checks can be about these, and `serve` requires a model to
#: have them. `tests/access/reserved_relations.txt` lists those that no operation demands yet.
OTHER_ACTIONS: dict[ObjectType, frozenset[Can]] = {
    ObjectType.SERVER: frozenset(
        {
            Can.CREATE_PROJECT,
            Can.DELETE_USERS,
            Can.GRANT_ADMIN,
            Can.GRANT_OPERATOR,
            Can.GRANT_POLICY_READER,
            Can.GRANT_PROVISIONER,
            Can.LIST_ALL_PROJECTS,
            Can.LIST_USERS,
            Can.MANAGE_EVENTS,
            Can.PROVISION_USERS,
            Can.READ_ASSIGNMENTS,
            Can.READ_EVENTS,
            Can.READ_GRANTS,
            Can.READ_POLICIES,
            Can.SYNCHRONIZE_IDENTITIES,
            Can.UPDATE_USERS,
        }
    ),
    ObjectType.PROJECT: frozenset(
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
    ObjectType.WAREHOUSE: _EVERYWHERE_BELOW_PROJECTS
    | {
        Can.ACCEPT_MOVED_NAMESPACE,
        Can.ACTIVATE,
        Can.ADOPT_FILES,
        Can.BIND_DATA_POLICY,
        Can.CONTROL_ALL_TASKS,
        Can.CREATE_NAMESPACE,
        Can.DEACTIVATE,
        Can.DELEGATE,
        Can.DELETE,
        Can.ENFORCE,
        Can.GET_ALL_TASKS,
        Can.GET_CONFIG,
        Can.GET_ENDPOINT_STATISTICS,
        Can.GET_TASK_QUEUE_CONFIG,
        Can.GRANT_CREATE,
        Can.GRANT_DELEGATE,
        Can.GRANT_ENFORCER,
        Can.GRANT_INSPECTOR,
        Can.GRANT_MANAGE_STORAGE,
        Can.INSPECT,
        Can.LIST_DELETED_TABULARS,
        Can.LIST_EVERYTHING,
        Can.LIST_NAMESPACES,
        Can.MODIFY_SOFT_DELETION,
        Can.MODIFY_TASK_QUEUE_CONFIG,
        Can.RENAME,
        Can.SET_FORMAT_VERSION_POLICY,
        Can.SET_MANAGED_ACCESS,
        Can.UPDATE_STORAGE,
        Can.USE,
    },
    ObjectType.NAMESPACE: _EVERYWHERE_BELOW_PROJECTS
    | {
        Can.ACCEPT_MOVED_NAMESPACE,
        Can.BIND_DATA_POLICY,
        Can.CREATE_GENERIC_TABLE,
        Can.CREATE_NAMESPACE,
        Can.CREATE_TABLE,
        Can.CREATE_VIEW,
        Can.DELETE,
        Can.ENFORCE,
        Can.GRANT_CREATE,
        Can.GRANT_ENFORCER,
        Can.LIST_EVERYTHING,
        Can.LIST_GENERIC_TABLES,
        Can.LIST_NAMESPACES,
        Can.LIST_TABLES,
        Can.LIST_VIEWS,
        Can.MOVE,
        Can.SET_MANAGED_ACCESS,
        Can.UPDATE_PROPERTIES,
    },
    ObjectType.TABLE: _ON_LEAVES
    | {
        Can.BIND_DATA_POLICY,
        Can.ENFORCE,
        Can.GRANT_ENFORCER,
        Can.READ_COLUMNS,
        Can.READ_DATA,
        Can.UNREGISTER,
        Can.WRITE_DATA,
    },
    ObjectType.COLUMN: frozenset({Can.READ_DATA}),
    ObjectType.VIEW: _ON_LEAVES | {Can.SELECT},
    ObjectType.GENERIC_TABLE: _ON_LEAVES - {Can.COMMIT} | {Can.READ_DATA, Can.WRITE_DATA},
    ObjectType.USER: frozenset(),
}
