# SPDX-License-Identifier: Apache-2.0
"""The actions that `…/actions` returns equal those that Lakekeeper clients use."""

from __future__ import annotations

import pytest

from gateway.access.nouns.refs import ObjectType
from gateway.features.grants.rights import catalog_actions_of

_BELOW = "get_metadata include_in_list set_protection manage_tags read_grants"
_LEAF = f"{_BELOW} drop commit rename undrop get_tasks control_tasks"

#: The catalog actions of Lakekeeper, by type.
KNOWN = {
    ObjectType.SERVER: "create_project update_users delete_users list_users provision_users read_grants",
    ObjectType.PROJECT: (
        "create_warehouse delete rename get_metadata list_warehouses include_in_list create_role list_roles "
        "search_roles get_endpoint_statistics modify_task_queue_config get_task_queue_config get_project_tasks "
        "control_project_tasks create_tag list_tags read_grants"
    ),
    ObjectType.WAREHOUSE: (
        f"{_BELOW} create_namespace delete update_storage get_config list_namespaces list_everything use deactivate "
        "activate rename list_deleted_tabulars modify_soft_deletion get_task_queue_config modify_task_queue_config "
        "get_all_tasks control_all_tasks set_format_version_policy get_endpoint_statistics accept_moved_namespace"
    ),
    ObjectType.NAMESPACE: (
        f"{_BELOW} create_table create_view create_generic_table create_namespace delete update_properties list_tables "
        "list_views list_generic_tables list_namespaces list_everything move accept_moved_namespace"
    ),
    ObjectType.TABLE: f"{_LEAF} read_data write_data",
    ObjectType.VIEW: f"{_LEAF} select",
    ObjectType.ROLE: (
        "read read_metadata delete update manage_role_assignments read_role_assignments update_source_system"
    ),
}


@pytest.mark.parametrize("type", list(KNOWN))
def test_each_object_type_lists_the_actions_that_clients_know(type: ObjectType) -> None:
    assert {each.value.removeprefix("can_") for each in catalog_actions_of(type)} == set(KNOWN[type].split())
