# SPDX-License-Identifier: Apache-2.0
"""The statement for each kind of reference: its lookup columns, and the path in which an absent object would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Boolean, Column, ColumnElement, Select, Text, any_, bindparam, case, func, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB

from gateway.access.nouns import refs
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.resolver.caller import BETWEEN, with_database_time, word
from gateway.db.schema.policies import data_policies, tags
from gateway.db.schema.principals import roles, users
from gateway.db.schema.tables import namespaces, tables
from gateway.db.schema.warehouses import projects, server, warehouses
from gateway.db.tables.former_names import former_names_of_namespace, former_names_of_table
from gateway.iceberg.identifiers import Namespace, fold

Read = TypeVar("Read")

_WAREHOUSE = (
    warehouses.c.id.label("w_id"),
    warehouses.c.project_id.label("w_project_id"),
    warehouses.c.name.label("w_name"),
    warehouses.c.active.label("w_active"),
    warehouses.c.profile.label("w_profile"),
    warehouses.c.profile_version.label("w_profile_version"),
    warehouses.c.revision.label("w_revision"),
    warehouses.c.secret_id.label("w_secret_id"),
    warehouses.c.allowed_format_versions.label("w_allowed"),
    warehouses.c.default_format_version.label("w_default"),
    warehouses.c.scope_verdict.label("w_scope_verdict"),
    warehouses.c.scope_version.label("w_scope_version"),
    literal_column("warehouses.delete_profile ->> 'type' = 'soft'", Boolean).label("w_soft_deletion"),
    warehouses.c.data_policy_revision.label("w_data_policy_revision"),
)

_NAMESPACE = (
    namespaces.c.id.label("n_id"),
    namespaces.c.levels.label("n_levels"),
    namespaces.c.ancestors.label("n_ancestors"),
    former_names_of_namespace(),
)

_TABLE = (
    tables.c.id.label("t_id"),
    tables.c.name.label("t_name"),
    tables.c.location.label("t_location"),
    tables.c.metadata_location.label("t_metadata_location"),
    tables.c.format.label("t_format"),
    tables.c.version.label("t_version"),
    # Null for a live table. Only those who dropped it may purge it, and only for a day.
    case(
        (tables.c.deleted_at > func.clock_timestamp() - literal_column("interval '1 day'"), tables.c.deleted_by),
        (tables.c.deleted_at.is_not(None), literal_column("''", Text)),
    ).label("t_purged_by"),
    former_names_of_table(),
)


def _direct(query: Select[Any]) -> DirectRead:
    return DirectRead(with_database_time(query))


def _named_direct(query: Select[Any], key: str) -> DirectRead:
    """Return a read as `_direct` does, for a reference by path. For an absent object it also reads its would-be
    containers.
    """
    above = namespaces.c.path_key == any_(func.string_to_array(bindparam("above_keys", type_=Text), BETWEEN))
    path = (
        select(func.to_jsonb(func.array_append(namespaces.c.ancestors, namespaces.c.id)))
        .where(namespaces.c.warehouse_id == warehouses.c.id, above)
        .order_by(func.cardinality(namespaces.c.ancestors).desc())
        .limit(1)
        .scalar_subquery()
    )
    return _located_direct(query, key, func.coalesce(path, _NO_PATH))


_NO_PATH = literal_column("cast('[]' as jsonb)", JSONB)


def _located_direct(query: Select[Any], key: str, path: ColumnElement[Any] = _NO_PATH) -> DirectRead:
    """Return a read as `_direct` does. For an absent object it also reads the project of the warehouse, and `path`."""
    always = with_database_time(query)
    where = (
        select(func.jsonb_build_array(warehouses.c.project_id, path))
        .where(warehouses.c.id == bindparam("warehouse_id", type_=warehouses.c.id.type))
        .scalar_subquery()
    )
    missing = always.selected_columns[key].is_(None)
    return DirectRead(always.add_columns(case((missing, where)).label("absent")))


_WAREHOUSES = select(*_WAREHOUSE)
_NAMESPACES = select(*_WAREHOUSE, *_NAMESPACE).join_from(
    namespaces, warehouses, warehouses.c.id == namespaces.c.warehouse_id
)
_PROJECTS = select(projects.c.id, projects.c.name)
_USERS = select(users)
_DATA_POLICIES = select(data_policies.c.id, data_policies.c.project_id, data_policies.c.name)
_ROLES = select(roles.c.id, roles.c.project_id, roles.c.name)
_TAGS = select(tags.c.id, tags.c.project_id, tags.c.name)
_TAGS_OF_WAREHOUSES = _TAGS.join_from(tags, warehouses, warehouses.c.project_id == tags.c.project_id)


def table_columns(kind: str = "table") -> Select[Any]:
    """Return the select of live tables of a kind, neither staged nor dropped, with their namespaces and warehouses."""
    return _kept_columns(kind).where(tables.c.deleted_at.is_(None))


def _kept_columns(kind: str) -> Select[Any]:
    """Return the select as `table_columns` does, also for dropped tables that can be restored."""
    return (
        select(*_WAREHOUSE, *_NAMESPACE, *_TABLE)
        .join_from(tables, namespaces, namespaces.c.id == tables.c.namespace_id)
        .join(warehouses, warehouses.c.id == tables.c.warehouse_id)
        .where(tables.c.staged_by.is_(None), tables.c.kind == word(kind))
    )


def _named(kind: str) -> Select[Any]:
    return table_columns(kind).where(
        namespaces.c.warehouse_id == bindparam("warehouse_id"),
        namespaces.c.path_key == bindparam("path_key"),
        tables.c.name_key == bindparam("name_key"),
    )


def _by_id(kind: str, *, kept: bool = False) -> Select[Any]:
    return (_kept_columns(kind) if kept else table_columns(kind)).where(
        tables.c.id == bindparam("id"), tables.c.warehouse_id == bindparam("warehouse_id")
    )


#: Key of a lookup: the type of the reference, or for tables, views and generic tables the object type and the key.
Lookup = type[refs.Ref] | tuple[refs.ObjectType, str]


def lookup_of(ref: refs.Ref) -> Lookup:
    """Return the lookup of a reference: the key of STATEMENTS and SEVERAL."""
    if isinstance(ref, refs.TabularRef):
        return ref.type, "name" if ref.named else "kept" if ref.dropped else "id"
    return type(ref)


def _tabulars(make: Callable[[str, str], Read]) -> dict[Lookup, Read]:
    return {(kind, key): make(kind.value, key) for kind in refs.TABULARS for key in ("name", "id", "kept")}


def _tabular_statement(kind: str, key: str) -> DirectRead:
    if key == "name":
        return _named_direct(_named(kind), "t_id")
    return _located_direct(_by_id(kind, kept=key == "kept"), "t_id")


#: One statement for each lookup, built once, because building one takes longer than executing it.
STATEMENTS: dict[Lookup, DirectRead] = {
    **_tabulars(_tabular_statement),
    refs.NamespaceRef: _named_direct(
        _NAMESPACES.where(
            namespaces.c.warehouse_id == bindparam("warehouse_id"),
            namespaces.c.path_key == bindparam("path_key"),
        ),
        "n_id",
    ),
    refs.NamespaceIdRef: _located_direct(
        _NAMESPACES.where(
            namespaces.c.id == bindparam("id"),
            # Null if the reference names no warehouse.
            namespaces.c.warehouse_id
            == func.coalesce(
                bindparam("warehouse_id", type_=namespaces.c.warehouse_id.type), namespaces.c.warehouse_id
            ),
        ),
        "n_id",
    ),
    refs.WarehouseRef: _direct(_WAREHOUSES.where(warehouses.c.id == bindparam("id"))),
    refs.WarehouseNameRef: _direct(
        _WAREHOUSES.where(
            warehouses.c.project_id == bindparam("project_id"),
            warehouses.c.name_key == bindparam("name_key"),
        )
    ),
    refs.ProjectRef: _direct(_PROJECTS.where(projects.c.id == bindparam("id"))),
    refs.UserRef: _direct(_USERS.where(users.c.id == bindparam("id"))),
    refs.RoleRef: _direct(_ROLES.where(roles.c.id == bindparam("id"))),
    refs.DataPolicyRef: _direct(_DATA_POLICIES.where(data_policies.c.id == bindparam("id"))),
    refs.TagRef: _direct(_TAGS.where(tags.c.id == bindparam("id"))),
    refs.TagNameRef: _direct(
        _TAGS_OF_WAREHOUSES.where(
            warehouses.c.id == bindparam("warehouse_id"),
            tags.c.name_key == bindparam("name_key"),
        )
    ),
    refs.ServerRef: _direct(select(server.c.id, server.c.bootstrapped_at)),
}
_KEYS_OF_TABULAR = (namespaces.c.warehouse_id, namespaces.c.path_key, tables.c.name_key)
_ID_OF_TABULAR = (tables.c.id, tables.c.warehouse_id)


def _several_tabulars(kind: str, key: str) -> tuple[Select[Any], tuple[Column[Any], ...]]:
    columns = _kept_columns(kind) if key == "kept" else table_columns(kind)
    return columns, _KEYS_OF_TABULAR if key == "name" else _ID_OF_TABULAR


#: For several references of one lookup: the select, and the lookup columns in the order of `parameters_of`.
SEVERAL: dict[Lookup, tuple[Select[Any], tuple[Column[Any], ...]]] = {
    **_tabulars(_several_tabulars),
    refs.NamespaceRef: (_NAMESPACES, _KEYS_OF_TABULAR[:2]),
    refs.NamespaceIdRef: (_NAMESPACES, (namespaces.c.id,)),
    refs.WarehouseRef: (_WAREHOUSES, (warehouses.c.id,)),
    refs.WarehouseNameRef: (_WAREHOUSES, (warehouses.c.project_id, warehouses.c.name_key)),
    refs.ProjectRef: (_PROJECTS, (projects.c.id,)),
    refs.UserRef: (_USERS, (users.c.id,)),
    refs.RoleRef: (_ROLES, (roles.c.id,)),
    refs.DataPolicyRef: (_DATA_POLICIES, (data_policies.c.id,)),
    refs.TagRef: (_TAGS, (tags.c.id,)),
    refs.TagNameRef: (_TAGS_OF_WAREHOUSES, (warehouses.c.id, tags.c.name_key)),
}


def parameters_of(ref: refs.Ref) -> dict[str, Any]:
    """Return the parameters of the statement for `ref`. The first are the values of its lookup columns in `SEVERAL`."""
    match ref:
        case refs.TabularRef(key=UUID()):
            return {"id": ref.id, "warehouse_id": ref.warehouse_id}
        case refs.TabularRef():
            identifier = ref.identifier
            named = {"path_key": identifier.namespace.key, "name_key": fold(identifier.name)}
            return {"warehouse_id": ref.warehouse_id, **named, "above_keys": _keys_above(identifier.namespace)}
        case refs.NamespaceRef():
            above = _keys_above(ref.namespace.parent)
            return {"warehouse_id": ref.warehouse_id, "path_key": ref.namespace.key, "above_keys": above}
        case refs.NamespaceIdRef():
            return {"id": ref.namespace_id, "warehouse_id": ref.warehouse_id}
        case refs.WarehouseNameRef():
            return {"project_id": ref.project_id, "name_key": fold(ref.name)}
        case refs.TagNameRef():
            return {"warehouse_id": ref.warehouse_id, "name_key": fold(ref.name)}
        case _:
            return _parameters_above(ref)


def _keys_above(namespace: Namespace | None) -> str:
    """Return the keys of a namespace and of all namespaces above it, as one text."""
    levels = () if namespace is None else namespace.levels
    return BETWEEN.join(Namespace(levels[: depth + 1]).key for depth in range(len(levels)))


def _parameters_above(
    ref: refs.WarehouseRef
    | refs.ProjectRef
    | refs.UserRef
    | refs.RoleRef
    | refs.DataPolicyRef
    | refs.TagRef
    | refs.ServerRef,
) -> dict[str, Any]:
    match ref:
        case refs.WarehouseRef():
            return {"id": ref.warehouse_id}
        case refs.ProjectRef():
            return {"id": ref.project_id}
        case refs.UserRef():
            return {"id": ref.user_id}
        case refs.RoleRef():
            return {"id": ref.role_id}
        case refs.DataPolicyRef():
            return {"id": ref.policy_id}
        case refs.TagRef():
            return {"id": ref.tag_id}
        case refs.ServerRef():
            return {}
