# SPDX-License-Identifier: Apache-2.0
"""Columns with the former names of the rows that a statement of the resolver finds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Label, any_, func, select
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from gateway.access.nouns.resolved import MAX_FORMER_NAMES, FormerNames
from gateway.db.schema.tables import former_namespace_names, former_table_names, namespaces, tables


def former_names_of_namespace() -> Label[Any]:
    """Return the column `n_former`: the former names of a namespace and of all namespaces above it, newest
    first.
    """
    path = func.array_append(namespaces.c.ancestors, namespaces.c.id)
    return _newest(former_namespace_names, former_namespace_names.c.namespace_id == any_(path)).label("n_former")


def former_names_of_table() -> Label[Any]:
    """Return the column `t_former`: the former full names of a table, newest first."""
    return _newest(former_table_names, former_table_names.c.table_id == tables.c.id).label("t_former")


def former_from(value: Any) -> FormerNames:
    """Return the names in such a column. It holds at most one name more than the limit, which shows that there are
    more.
    """
    names = tuple(tuple(levels) for levels in value or ())
    return FormerNames(names=names[:MAX_FORMER_NAMES], complete=len(names) <= MAX_FORMER_NAMES)


def _newest(table: Any, of: ColumnElement[bool]) -> ColumnElement[Any]:
    newest = (
        select(table.c.levels, table.c.until)
        .where(of)
        .correlate(namespaces, tables)
        .order_by(table.c.until.desc())
        .limit(MAX_FORMER_NAMES + 1)
        .subquery()
    )
    levels = func.to_jsonb(newest.c.levels)
    return select(func.jsonb_agg(aggregate_order_by(levels, newest.c.until.desc()), type_=JSONB)).scalar_subquery()
