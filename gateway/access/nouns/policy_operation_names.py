# SPDX-License-Identifier: Apache-2.0
"""Map (object type, relation) to the operation name that OPA receives, such as `drop_table`."""

from __future__ import annotations

from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can

#: Actions with another operation name than `<action>_<type>`. If several operations demand one action, it is the one
#: that a catalog client requests first.
_OPERATIONS: dict[tuple[ObjectType, Can], str] = {
    (ObjectType.SERVER, Can.CREATE_PROJECT): "create_project",
    (ObjectType.SERVER, Can.DELETE_USERS): "delete_user",
    (ObjectType.SERVER, Can.LIST_USERS): "list_users",
    (ObjectType.SERVER, Can.PROVISION_USERS): "provision_user",
    (ObjectType.SERVER, Can.SYNCHRONIZE_IDENTITIES): "list_scim_users",
    (ObjectType.SERVER, Can.UPDATE_USERS): "update_user",
    (ObjectType.SERVER, Can.LIST_ALL_PROJECTS): "list_projects",
    (ObjectType.SERVER, Can.MANAGE_EVENTS): "replay_events",
    (ObjectType.SERVER, Can.READ_EVENTS): "list_event_sinks",
    (ObjectType.SERVER, Can.READ_POLICIES): "get_policy_bundle",
    (ObjectType.PROJECT, Can.CONTROL_PROJECT_TASKS): "control_project_tasks",
    (ObjectType.PROJECT, Can.CREATE_ROLE): "create_role",
    (ObjectType.PROJECT, Can.CREATE_TAG): "create_tag",
    (ObjectType.PROJECT, Can.CREATE_WAREHOUSE): "create_warehouse",
    (ObjectType.PROJECT, Can.DELEGATE): "exchange_token",
    (ObjectType.PROJECT, Can.GET_ENDPOINT_STATISTICS): "get_project_endpoint_statistics",
    (ObjectType.PROJECT, Can.GET_METADATA): "get_project",
    (ObjectType.PROJECT, Can.GET_PROJECT_TASKS): "list_project_tasks",
    (ObjectType.PROJECT, Can.GET_TASK_QUEUE_CONFIG): "get_task_log_cleanup_config",
    (ObjectType.PROJECT, Can.INSPECT): "batch_check",
    (ObjectType.PROJECT, Can.LIST_ROLES): "list_roles",
    (ObjectType.PROJECT, Can.LIST_TAGS): "list_tags",
    (ObjectType.PROJECT, Can.LIST_WAREHOUSES): "list_warehouses",
    (ObjectType.PROJECT, Can.MODIFY_TASK_QUEUE_CONFIG): "set_task_log_cleanup_config",
    (ObjectType.PROJECT, Can.SEARCH_ROLES): "search_role",
    (ObjectType.WAREHOUSE, Can.ACCEPT_MOVED_NAMESPACE): "move_namespace",
    (ObjectType.WAREHOUSE, Can.ADOPT_FILES): "adopt_table",
    (ObjectType.WAREHOUSE, Can.CONTROL_ALL_TASKS): "control_tasks",
    (ObjectType.WAREHOUSE, Can.CREATE_NAMESPACE): "create_namespace",
    (ObjectType.WAREHOUSE, Can.DELEGATE): "exchange_token",
    (ObjectType.WAREHOUSE, Can.ENFORCE): "load_table",
    (ObjectType.WAREHOUSE, Can.GET_ALL_TASKS): "list_tasks",
    (ObjectType.WAREHOUSE, Can.GET_CONFIG): "get_config",
    (ObjectType.WAREHOUSE, Can.GET_ENDPOINT_STATISTICS): "get_warehouse_endpoint_statistics",
    (ObjectType.WAREHOUSE, Can.GET_METADATA): "get_warehouse",
    (ObjectType.WAREHOUSE, Can.GET_TASK_QUEUE_CONFIG): "get_queue_config",
    (ObjectType.WAREHOUSE, Can.INSPECT): "batch_check",
    (ObjectType.WAREHOUSE, Can.LIST_DELETED_TABULARS): "list_deleted_tabulars",
    (ObjectType.WAREHOUSE, Can.LIST_NAMESPACES): "list_namespaces",
    (ObjectType.WAREHOUSE, Can.MODIFY_TASK_QUEUE_CONFIG): "set_queue_config",
    (ObjectType.NAMESPACE, Can.ACCEPT_MOVED_NAMESPACE): "move_namespace",
    (ObjectType.WAREHOUSE, Can.MANAGE_TAGS): "attach_warehouse_tag",
    (ObjectType.WAREHOUSE, Can.MODIFY_SOFT_DELETION): "set_warehouse_delete_profile",
    (ObjectType.WAREHOUSE, Can.SET_FORMAT_VERSION_POLICY): "set_warehouse_format_version_policy",
    (ObjectType.WAREHOUSE, Can.UPDATE_STORAGE): "update_warehouse_storage",
    (ObjectType.WAREHOUSE, Can.SET_PROTECTION): "set_warehouse_protection",
    (ObjectType.NAMESPACE, Can.CREATE_NAMESPACE): "create_namespace",
    (ObjectType.NAMESPACE, Can.CREATE_GENERIC_TABLE): "create_generic_table",
    (ObjectType.NAMESPACE, Can.CREATE_TABLE): "create_table",
    (ObjectType.NAMESPACE, Can.CREATE_VIEW): "create_view",
    (ObjectType.NAMESPACE, Can.DELETE): "drop_namespace",
    (ObjectType.NAMESPACE, Can.GET_METADATA): "load_namespace",
    (ObjectType.NAMESPACE, Can.LIST_GENERIC_TABLES): "list_generic_tables",
    (ObjectType.NAMESPACE, Can.LIST_NAMESPACES): "list_namespaces",
    (ObjectType.NAMESPACE, Can.LIST_TABLES): "list_tables",
    (ObjectType.NAMESPACE, Can.LIST_VIEWS): "list_views",
    (ObjectType.NAMESPACE, Can.MANAGE_TAGS): "attach_namespace_tag",
    (ObjectType.NAMESPACE, Can.UPDATE_PROPERTIES): "update_namespace_properties",
    (ObjectType.TABLE, Can.CONTROL_TASKS): "control_tasks",
    (ObjectType.TABLE, Can.ENFORCE): "load_table",
    (ObjectType.TABLE, Can.GET_METADATA): "load_table",
    (ObjectType.TABLE, Can.GET_TASKS): "list_tasks",
    (ObjectType.TABLE, Can.MANAGE_TAGS): "attach_table_tag",
    (ObjectType.TABLE, Can.MOVE): "rename_table",
    (ObjectType.TABLE, Can.READ_COLUMNS): "vend_credentials",
    (ObjectType.TABLE, Can.READ_DATA): "vend_credentials",
    (ObjectType.TABLE, Can.UNDROP): "undrop_tabulars",
    (ObjectType.TABLE, Can.WRITE_DATA): "vend_credentials",
    (ObjectType.GENERIC_TABLE, Can.CONTROL_TASKS): "control_tasks",
    (ObjectType.GENERIC_TABLE, Can.GET_METADATA): "load_generic_table",
    (ObjectType.GENERIC_TABLE, Can.GET_TASKS): "list_tasks",
    (ObjectType.GENERIC_TABLE, Can.MANAGE_TAGS): "attach_generic_table_tag",
    (ObjectType.GENERIC_TABLE, Can.MOVE): "rename_generic_table",
    (ObjectType.GENERIC_TABLE, Can.READ_DATA): "vend_generic_table_credentials",
    (ObjectType.GENERIC_TABLE, Can.UNDROP): "undrop_tabulars",
    (ObjectType.GENERIC_TABLE, Can.WRITE_DATA): "vend_generic_table_credentials",
    (ObjectType.PROJECT, Can.CREATE_DATA_POLICY): "create_data_policy",
    (ObjectType.PROJECT, Can.LIST_DATA_POLICIES): "list_data_policies",
    (ObjectType.PROJECT, Can.MANAGE_MAPPING_TABLES): "list_mapping_tables",
    (ObjectType.VIEW, Can.CONTROL_TASKS): "control_tasks",
    (ObjectType.VIEW, Can.GET_METADATA): "load_view",
    (ObjectType.VIEW, Can.GET_TASKS): "list_tasks",
    (ObjectType.VIEW, Can.MANAGE_TAGS): "attach_view_tag",
    (ObjectType.VIEW, Can.MOVE): "rename_view",
    (ObjectType.VIEW, Can.SELECT): "load_view",
    (ObjectType.VIEW, Can.UNDROP): "undrop_tabulars",
}


def policy_operation_name(type: ObjectType, relation: Can) -> str:
    """Return the operation's name for policies: `drop_table`, `load_table`, `write_table_assignments`."""
    named = CARDS[type].policy_operations.get(relation) if type in CARDS else _OPERATIONS.get((type, relation))
    if named is not None:
        return named
    if relation is Can.BIND_DATA_POLICY:
        return "bind_data_policy"
    if relation is Can.APPROVE_CHANGES:
        return "approve_change"
    if relation is Can.SET_MANAGED_ACCESS:
        return f"set_{type.value}_managed_access"
    if relation is Can.SET_PROTECTION:
        return f"set_{type.value}_protection"
    if relation in (Can.READ_ASSIGNMENTS, Can.READ_GRANTS):
        return f"read_{type.value}_assignments"
    if relation is Can.CHANGE_OWNERSHIP or relation.value.startswith("can_grant_"):
        return f"write_{type.value}_assignments"
    return f"{relation.value.removeprefix('can_')}_{type.value}"
