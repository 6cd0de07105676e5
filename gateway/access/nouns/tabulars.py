# SPDX-License-Identifier: Apache-2.0
"""Tables with their columns, views and generic tables: the objects of a namespace."""

from __future__ import annotations

from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedTable, ResolvedView
from gateway.access.nouns.warehouse import PRIVILEGES_BELOW_PROJECTS
from gateway.iceberg.errors import (
    GenericTableActionForbidden,
    NoSuchGenericTableException,
    NoSuchTableException,
    NoSuchViewException,
    TableActionForbidden,
    ViewActionForbidden,
)


def _operations(type: ObjectType) -> dict[Can, str]:
    """Return the names of operations that the three types have in common."""
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
    # Column grantees see that the table exists, without its metadata.
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

#: Columns have no references and no rows of their own: they are found by the table.
COLUMN = Card(
    type=ObjectType.COLUMN,
    row=ResolvedTable,
    refs=(),
    parents=(ObjectType.TABLE,),
    not_found=NoSuchTableException,
    forbidden=TableActionForbidden,
    privileges=(Privilege.SELECT,),
)

VIEW = Card(
    type=ObjectType.VIEW,
    row=ResolvedView,
    refs=(TabularRef,),
    parents=(ObjectType.NAMESPACE,),
    not_found=NoSuchViewException,
    forbidden=ViewActionForbidden,
    visible_by=Can.GET_METADATA,
    queried_by=Can.INCLUDE_IN_LIST,
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
    visible_by=Can.GET_METADATA,
    queried_by=Can.INCLUDE_IN_LIST,
    privileges=(*PRIVILEGES_BELOW_PROJECTS, Privilege.MODIFY),
    policy_operations={
        **_operations(ObjectType.GENERIC_TABLE),
        Can.READ_DATA: "vend_generic_table_credentials",
        Can.WRITE_DATA: "vend_generic_table_credentials",
    },
)
