# SPDX-License-Identifier: Apache-2.0
"""Declare the object types warehouse, namespace, table, column, view and generic table.

Each declaration (card) has the references, rows, refusals and relations of its type.
"""

from __future__ import annotations

from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import (
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    TabularRef,
    WarehouseNameRef,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import (
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.iceberg.errors import (
    GenericTableActionForbidden,
    NamespaceActionForbidden,
    NoSuchGenericTableException,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchViewException,
    NoSuchWarehouseException,
    TableActionForbidden,
    ViewActionForbidden,
    WarehouseActionForbidden,
)

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

WAREHOUSE = Card(
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
        Privilege.AUDITOR,
        Privilege.BREAK_GLASS,
        Privilege.REQUESTER,
    ),
    policy_operations={
        Can.ACCEPT_MOVED_NAMESPACE: "move_namespace",
        Can.ADOPT_FILES: "adopt_table",
        Can.CONTROL_ALL_TASKS: "control_tasks",
        Can.DELEGATE: "exchange_token",
        Can.DESCRIBE_EVERYTHING: "search_tabular",
        Can.ENFORCE: "load_table",
        Can.GET_ALL_TASKS: "list_tasks",
        Can.GET_CONFIG: "get_config",
        Can.GET_METADATA: "get_warehouse",
        Can.GET_TASK_QUEUE_CONFIG: "get_queue_config",
        Can.INSPECT: "batch_check",
        Can.LIST_DELETED_TABULARS: "list_deleted_tabulars",
        Can.MODIFY_SOFT_DELETION: "set_warehouse_delete_profile",
        Can.MODIFY_TASK_QUEUE_CONFIG: "set_queue_config",
        Can.READ_CHANGE_TICKETS: "list_change_tickets",
    },
)


NAMESPACE = Card(
    type=ObjectType.NAMESPACE,
    row=ResolvedNamespace,
    refs=(NamespaceRef, NamespaceIdRef),
    parents=(ObjectType.WAREHOUSE, ObjectType.NAMESPACE),
    not_found=NoSuchNamespaceException,
    forbidden=NamespaceActionForbidden,
    visible_by=Can.GET_METADATA,
    queried_by=Can.INCLUDE_IN_LIST,
    privileges=(
        *PRIVILEGES_BELOW_PROJECTS,
        Privilege.CREATE,
        Privilege.MODIFY,
        Privilege.ENFORCER,
        Privilege.BREAK_GLASS,
        Privilege.REQUESTER,
    ),
    policy_operations={
        Can.ACCEPT_MOVED_NAMESPACE: "move_namespace",
        Can.DELETE: "drop_namespace",
        Can.GET_METADATA: "load_namespace",
    },
)


def _operations(type: ObjectType) -> dict[Can, str]:
    """Return the names of the policy operations that tables, views and generic tables have in common."""
    return {
        Can.CONTROL_TASKS: "control_tasks",
        Can.GET_METADATA: f"load_{type.value}",
        Can.GET_TASKS: "list_tasks",
        Can.MOVE: f"rename_{type.value}",
        Can.UNDROP: "undrop_tabulars",
    }


TABLE = Card(
    type=ObjectType.TABLE,
    row=ResolvedTable,
    refs=(TabularRef,),
    parents=(ObjectType.NAMESPACE,),
    not_found=NoSuchTableException,
    forbidden=TableActionForbidden,
    # Column grantees and auditors see that the table exists, without its metadata.
    visible_by=Can.INCLUDE_IN_LIST,
    privileges=(*PRIVILEGES_BELOW_PROJECTS, Privilege.MODIFY, Privilege.ENFORCER),
    policy_operations={
        **_operations(ObjectType.TABLE),
        Can.ENFORCE: "load_table",
        Can.READ_COLUMNS: "vend_credentials",
        Can.READ_DATA: "vend_credentials",
        Can.WRITE_DATA: "vend_credentials",
    },
)

#: Columns have no references and no rows of their own. They are found through the table.
COLUMN = Card(
    type=ObjectType.COLUMN,
    row=ResolvedTable,
    refs=(),
    parents=(ObjectType.TABLE,),
    not_found=NoSuchTableException,
    forbidden=TableActionForbidden,
    privileges=(Privilege.SELECT,),
    own=True,
)

VIEW = Card(
    type=ObjectType.VIEW,
    row=ResolvedView,
    refs=(TabularRef,),
    parents=(ObjectType.NAMESPACE,),
    not_found=NoSuchViewException,
    forbidden=ViewActionForbidden,
    # Auditors see that it exists, without its metadata.
    visible_by=Can.INCLUDE_IN_LIST,
    privileges=(*PRIVILEGES_BELOW_PROJECTS, Privilege.MODIFY),
    policy_operations={
        **_operations(ObjectType.VIEW),
        Can.SELECT: "load_view",
    },
)

GENERIC_TABLE = Card(
    type=ObjectType.GENERIC_TABLE,
    row=ResolvedGenericTable,
    refs=(TabularRef,),
    parents=(ObjectType.NAMESPACE,),
    not_found=NoSuchGenericTableException,
    forbidden=GenericTableActionForbidden,
    # Auditors see that it exists, without its metadata.
    visible_by=Can.INCLUDE_IN_LIST,
    privileges=(*PRIVILEGES_BELOW_PROJECTS, Privilege.MODIFY),
    policy_operations={
        **_operations(ObjectType.GENERIC_TABLE),
        Can.READ_DATA: "vend_generic_table_credentials",
        Can.WRITE_DATA: "vend_generic_table_credentials",
    },
)
