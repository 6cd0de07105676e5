# SPDX-License-Identifier: Apache-2.0
"""The resolver's statement for each kind of reference: the columns for the lookup, and the containers of an absent
object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar, cast
from uuid import UUID

import msgspec
from sqlalchemy import Boolean, Column, ColumnElement, Select, Text, any_, bindparam, case, func, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB

from gateway.access.nouns import refs
from gateway.access.nouns.card import Card
from gateway.access.nouns.cards import CARDS, OUTSIDE
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.resolver.caller import BETWEEN, ClockRow, with_database_time, word
from gateway.db.schema.objects import TABLES
from gateway.db.schema.tables import namespaces, tables
from gateway.db.schema.warehouses import server, warehouses
from gateway.db.tables.former_names import former_names_of_namespace, former_names_of_table
from gateway.iceberg.identifiers import Namespace

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
    # Null for a live table. Only the user that dropped a table may purge it, and only within a day of the drop.
    case(
        (tables.c.deleted_at > func.clock_timestamp() - literal_column("interval '1 day'"), tables.c.deleted_by),
        (tables.c.deleted_at.is_not(None), literal_column("''", Text)),
    ).label("t_purged_by"),
    former_names_of_table(),
)


class WarehouseRow(ClockRow, frozen=True):
    """The columns of `with_database_time` and of a warehouse.

    `w_id` is a UUID. If the statement found nothing, all columns of the warehouse are None.
    """

    w_id: Any
    w_project_id: str
    w_name: str
    w_active: bool
    w_profile: bytes
    w_profile_version: int
    w_revision: UUID
    w_secret_id: UUID | None
    w_allowed: list[int]
    w_default: int | None
    w_scope_verdict: str | None
    w_scope_version: int | None
    w_soft_deletion: bool
    w_data_policy_revision: UUID | None


class NamespaceRow(WarehouseRow, frozen=True):
    """A namespace, with its warehouse. `n_former` is JSON (`former_from`)."""

    n_id: Any
    n_levels: list[str]
    n_ancestors: list[UUID]
    n_former: Any


class TabularRow(NamespaceRow, frozen=True):
    """A table, view or generic table, with its namespace.

    `t_format` is set for a generic table, which has no metadata file.
    """

    t_id: Any
    t_name: str
    t_location: str
    t_metadata_location: str
    t_format: str
    t_version: int
    t_purged_by: str | None
    t_former: Any


def _direct(query: Select[Any], kind: type[ClockRow]) -> DirectRead[ClockRow]:
    return DirectRead(with_database_time(query), kind)


def _named_direct(query: Select[Any], kind: type[ClockRow], key: str) -> DirectRead[ClockRow]:
    """Return a read as `_direct` does, for a reference by path.

    If the object is absent, the read also returns the containers that it would have.
    """
    above = namespaces.c.path_key == any_(func.string_to_array(bindparam("above_keys", type_=Text), BETWEEN))
    path = (
        select(func.to_jsonb(func.array_append(namespaces.c.ancestors, namespaces.c.id)))
        .where(namespaces.c.warehouse_id == warehouses.c.id, above)
        .order_by(func.cardinality(namespaces.c.ancestors).desc())
        .limit(1)
        .scalar_subquery()
    )
    return _located_direct(query, kind, key, func.coalesce(path, _NO_PATH))


_NO_PATH = literal_column("cast('[]' as jsonb)", JSONB)


def _located_direct(
    query: Select[Any], kind: type[ClockRow], key: str, path: ColumnElement[Any] = _NO_PATH
) -> DirectRead[ClockRow]:
    """Return a read as `_direct` does.

    For an absent object it also returns the project of the warehouse, and `path`.
    """
    always = with_database_time(query)
    where = (
        select(func.jsonb_build_array(warehouses.c.project_id, path))
        .where(warehouses.c.id == bindparam("warehouse_id", type_=warehouses.c.id.type))
        .scalar_subquery()
    )
    absent = case((always.selected_columns[key].is_(None), where)).label("absent")
    columns = (absent if each.key == "absent" else each for each in always.selected_columns)
    return DirectRead(always.with_only_columns(*columns), kind)


_WAREHOUSES = select(*_WAREHOUSE)
_NAMESPACES = select(*_WAREHOUSE, *_NAMESPACE).join_from(
    namespaces, warehouses, warehouses.c.id == namespaces.c.warehouse_id
)


def table_columns(kind: str = "table") -> Select[Any]:
    """Return the select of live tables of this kind (neither staged nor dropped), with their namespaces and
    warehouses.
    """
    return _kept_columns(kind).where(tables.c.deleted_at.is_(None))


def _kept_columns(kind: str) -> Select[Any]:
    """Return the select of `table_columns` that also finds dropped tables that can be restored."""
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
    """Return the kind of lookup that a reference needs: the key of STATEMENTS and SEVERAL."""
    if isinstance(ref, refs.TabularRef):
        return ref.type, "name" if ref.named else "kept" if ref.dropped else "id"
    return type(ref)


def _tabulars(make: Callable[[str, str], Read]) -> dict[Lookup, Read]:
    return {(kind, key): make(kind.value, key) for kind in refs.TABULARS for key in ("name", "id", "kept")}


def _tabular_statement(kind: str, key: str) -> DirectRead[ClockRow]:
    if key == "name":
        return _named_direct(_named(kind), TabularRow, "t_id")
    return _located_direct(_by_id(kind, kept=key == "kept"), TabularRow, "t_id")


_Outside = tuple[Select[Any], dict[str, Column[Any]], type[ClockRow]]


def _outside(card: Card) -> Iterator[tuple[type[refs.Ref], _Outside]]:
    """Yield (type of references, (select, lookup columns by parameter, type of its rows)) for a type outside of
    warehouses.

    A row has the fields of `ClockRow`, and then those of the card's row. Objects are looked up by their id, or by their
    name in the project of a warehouse. There is only one server.
    """
    table = TABLES[card.type]
    columns: Mapping[str, ColumnElement[Any]] = {**table.c, "bootstrapped": _BOOTSTRAPPED}
    fields = card.row.__struct_fields__
    query = select(*(columns[name] for name in fields))
    kind = cast(type[ClockRow], msgspec.defstruct("OutsideRow", fields, bases=(ClockRow,), frozen=True))
    for ref in card.refs:
        if card.type is refs.ObjectType.SERVER:
            yield ref, (query, {}, kind)
        elif issubclass(ref, refs.IdRef):
            yield ref, (query, {"id": table.c.id}, kind)
        else:
            of_warehouses = query.join_from(table, warehouses, warehouses.c.project_id == table.c.project_id)
            yield ref, (of_warehouses, {"warehouse_id": warehouses.c.id, "name_key": table.c.name_key}, kind)


_BOOTSTRAPPED = server.c.bootstrapped_at.is_not(None).label("bootstrapped")


def _matching(query: Select[Any], columns: Mapping[str, Column[Any]]) -> Select[Any]:
    return query.where(*(column == bindparam(name) for name, column in columns.items()))


_OUTSIDE = dict(chain.from_iterable(_outside(CARDS[type]) for type in OUTSIDE))

#: One statement for each lookup. They are built once, because building one takes longer than executing it.
STATEMENTS: dict[Lookup, DirectRead[ClockRow]] = {
    **_tabulars(_tabular_statement),
    refs.NamespaceRef: _named_direct(
        _NAMESPACES.where(
            namespaces.c.warehouse_id == bindparam("warehouse_id"),
            namespaces.c.path_key == bindparam("path_key"),
        ),
        NamespaceRow,
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
        NamespaceRow,
        "n_id",
    ),
    refs.WarehouseRef: _direct(_WAREHOUSES.where(warehouses.c.id == bindparam("id")), WarehouseRow),
    refs.WarehouseNameRef: _direct(
        _WAREHOUSES.where(
            warehouses.c.project_id == bindparam("project_id"),
            warehouses.c.name_key == bindparam("name_key"),
        ),
        WarehouseRow,
    ),
    **{ref: _direct(_matching(query, columns), kind) for ref, (query, columns, kind) in _OUTSIDE.items()},
}
_KEYS_OF_TABULAR = (namespaces.c.warehouse_id, namespaces.c.path_key, tables.c.name_key)
_ID_OF_TABULAR = (tables.c.id, tables.c.warehouse_id)


def _several_tabulars(kind: str, key: str) -> tuple[Select[Any], tuple[Column[Any], ...]]:
    columns = _kept_columns(kind) if key == "kept" else table_columns(kind)
    return columns, _KEYS_OF_TABULAR if key == "name" else _ID_OF_TABULAR


#: The statement for several references of one kind: the select, and the lookup columns in the order of `parameters_of`.
SEVERAL: dict[Lookup, tuple[Select[Any], tuple[Column[Any], ...]]] = {
    **_tabulars(_several_tabulars),
    refs.NamespaceRef: (_NAMESPACES, _KEYS_OF_TABULAR[:2]),
    refs.NamespaceIdRef: (_NAMESPACES, (namespaces.c.id,)),
    refs.WarehouseRef: (_WAREHOUSES, (warehouses.c.id,)),
    refs.WarehouseNameRef: (_WAREHOUSES, (warehouses.c.project_id, warehouses.c.name_key)),
    **{ref: (query, tuple(columns.values())) for ref, (query, columns, _) in _OUTSIDE.items() if columns},
}


def parameters_of(ref: refs.Ref) -> dict[str, Any]:
    """Return the parameters of the statement for `ref`.

    They begin with the values of its lookup columns in `SEVERAL`.
    """
    match ref:
        case refs.TabularRef() if ref.named:
            return {**ref.lookup(), "above_keys": _keys_above(ref.identifier.namespace)}
        case refs.NamespaceRef():
            return {**ref.lookup(), "above_keys": _keys_above(ref.namespace.parent)}
        case _:
            return ref.lookup()


def _keys_above(namespace: Namespace | None) -> str:
    """Return the keys of a namespace and of all namespaces above it, joined to one text."""
    levels = () if namespace is None else namespace.levels
    return BETWEEN.join(Namespace(levels[: depth + 1]).key for depth in range(len(levels)))
