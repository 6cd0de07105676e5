# SPDX-License-Identifier: Apache-2.0
"""Warehouses: storage locations with namespaces, tables and views."""

from __future__ import annotations

from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType, WarehouseNameRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.iceberg.errors import NoSuchWarehouseException, WarehouseActionForbidden

#: Privileges on warehouses and on everything in them, except columns.
PRIVILEGES_BELOW_PROJECTS = (
    Privilege.OWNERSHIP,
    Privilege.PASS_GRANTS,
    Privilege.MANAGE_GRANTS,
    Privilege.MANAGE_TAGS,
    Privilege.APPROVE_CHANGES,
    Privilege.DESCRIBE,
    Privilege.SELECT,
)

CARD = Card(
    type=ObjectType.WAREHOUSE,
    row=ResolvedWarehouse,
    refs=(WarehouseRef, WarehouseNameRef),
    parents=(ObjectType.PROJECT,),
    edge="project",
    not_found=NoSuchWarehouseException,
    forbidden=WarehouseActionForbidden,
    grantors="a security administrator of the project",
    visible_by=Can.GET_METADATA,
    queried_by=Can.INCLUDE_IN_LIST,
    privileges=(
        *PRIVILEGES_BELOW_PROJECTS,
        Privilege.CREATE,
        Privilege.MODIFY,
        Privilege.DELEGATE,
        Privilege.ENFORCER,
        Privilege.INSPECTOR,
        Privilege.MANAGE_STORAGE,
    ),
    policy_operations={
        Can.ACCEPT_MOVED_NAMESPACE: "move_namespace",
        Can.ADOPT_FILES: "adopt_table",
        Can.CONTROL_ALL_TASKS: "control_tasks",
        Can.DELEGATE: "exchange_token",
        Can.ENFORCE: "load_table",
        Can.GET_ALL_TASKS: "list_tasks",
        Can.GET_CONFIG: "get_config",
        Can.GET_METADATA: "get_warehouse",
        Can.GET_TASK_QUEUE_CONFIG: "get_queue_config",
        Can.INSPECT: "batch_check",
        Can.LIST_DELETED_TABULARS: "list_deleted_tabulars",
        Can.MODIFY_SOFT_DELETION: "set_warehouse_delete_profile",
        Can.MODIFY_TASK_QUEUE_CONFIG: "set_queue_config",
    },
)
