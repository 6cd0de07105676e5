# SPDX-License-Identifier: Apache-2.0
"""Read the pages of lists in which the caller sees every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Integer, Select, bindparam, func, literal_column, select, tuple_
from sqlalchemy.dialects.postgresql import aggregate_order_by

from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for
from gateway.db.schema.tables import LIVE, namespaces, tables


class ListedTabular(NamedTuple):
    """A table or view in a list. `name_key` determines its position."""

    id: UUID
    name: str
    name_key: str
    protected: bool


class ListedNamespace(NamedTuple):
    """A namespace in a list. `path_key` determines its position."""

    id: UUID
    levels: Sequence[str]
    path_key: str
    protected: bool


class Names(NamedTuple):
    """The names of several tables or views in one row."""

    names: Sequence[str]


def _in_namespace() -> Select[Any]:
    return (
        select(*columns_for(ListedTabular, tables))
        .where(tables.c.namespace_id == bindparam("namespace_id"), tables.c.kind == bindparam("kind"), LIVE)
        .order_by(tables.c.name_key, tables.c.id)
        .limit(bindparam("limit", type_=Integer))
    )


_FIRST = DirectRead(_in_namespace(), ListedTabular)
_NEXT = DirectRead(
    _in_namespace().where(
        tuple_(tables.c.name_key, tables.c.id)
        > tuple_(bindparam("after_key", type_=tables.c.name_key.type), bindparam("after_id", type_=tables.c.id.type))
    ),
    ListedTabular,
)


def in_namespace(
    *, namespace_id: UUID, kind: str, after: tuple[str, UUID] | None, limit: int
) -> tuple[DirectRead[ListedTabular], Mapping[str, Any]]:
    """Return the read of tables or views, ordered by folded name, and its parameters.

    `after` is the folded name and id of the last row of the previous page.
    """
    values = {"namespace_id": namespace_id, "kind": kind, "limit": limit}
    if after is None:
        return _FIRST, values
    return _NEXT, {**values, "after_key": after[0], "after_id": after[1]}


def _names() -> Select[Any]:
    rows = _in_namespace().subquery()
    ordered = aggregate_order_by(rows.c.name, rows.c.name_key, rows.c.id)
    return select(func.coalesce(func.array_agg(ordered), literal_column("'{}'")).label("names"))


#: All names are one value: as 1,000 rows, 1,000 names take the gateway three times the CPU time.
_NAMES = DirectRead(_names(), Names)


def names_in_namespace(*, namespace_id: UUID, kind: str, limit: int) -> tuple[DirectRead[Names], Mapping[str, Any]]:
    """Return the read of the first names of a namespace, and its parameters.

    The names are in the order of `in_namespace`, in one row with the array `names`.
    """
    return _NAMES, {"namespace_id": namespace_id, "kind": kind, "limit": limit}


def _children(*, at_top: bool, first: bool) -> DirectRead[ListedNamespace]:
    parent = namespaces.c.parent_id
    statement = (
        select(*columns_for(ListedNamespace, namespaces))
        .where(
            namespaces.c.warehouse_id == bindparam("warehouse_id"),
            parent.is_(None) if at_top else parent == bindparam("parent_id"),
        )
        .order_by(namespaces.c.path_key, namespaces.c.id)
        .limit(bindparam("limit", type_=Integer))
    )
    if not first:
        after = (
            bindparam("after_key", type_=namespaces.c.path_key.type),
            bindparam("after_id", type_=namespaces.c.id.type),
        )
        statement = statement.where(tuple_(namespaces.c.path_key, namespaces.c.id) > tuple_(*after))
    return DirectRead(statement, ListedNamespace)


#: The statements by (True for the top level of a warehouse, True for the first page).
_CHILDREN = {
    (at_top, first): _children(at_top=at_top, first=first) for at_top in (True, False) for first in (True, False)
}


def children(
    *, warehouse_id: UUID, parent_id: UUID | None, after: tuple[str, UUID] | None, limit: int
) -> tuple[DirectRead[ListedNamespace], Mapping[str, Any]]:
    """Return the read of direct children, ordered by folded name, and its parameters.

    `after` is the folded path and id of the last row of the previous page.
    """
    values: dict[str, Any] = {"warehouse_id": warehouse_id, "parent_id": parent_id, "limit": limit}
    if after is not None:
        values |= {"after_key": after[0], "after_id": after[1]}
    return _CHILDREN[parent_id is None, after is None], values
