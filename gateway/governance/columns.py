# SPDX-License-Identifier: Apache-2.0
"""Columns that requests about grants name, and how grants on columns are told."""

from __future__ import annotations

import re
from typing import Final

from gateway.access.operation import Operation
from gateway.access.operations.column_grants import OfColumn
from gateway.access.operations.grants import Assignment
from gateway.access.refs import ObjectKey, column_key, field_of
from gateway.access.resolved import Excerpt, Resolved, ResolvedTable
from gateway.access.tuples import TupleKey
from gateway.db import grants, outbox
from gateway.db.engine import Connection
from gateway.db.excerpts import excerpts_of
from gateway.governance.errors import AmbiguousColumn, ColumnNotFound
from gateway.iceberg.errors import BadRequestException
from gateway.obligations.columns import Columns, Inexpressible, columns_of

#: A column by its field id, whatever it is or was called. What cannot be named could not be taken away: a column may
#: get a name that stands in no path, a dropped one's name may be another column's by now, and its schema may be gone.
_BY_ID: Final = re.compile(r"field-id:(0|[1-9][0-9]{0,9})", re.ASCII)


async def columns_for(connection: Connection, operation: Operation, row: Resolved) -> Columns | None:
    """Return the columns of the table when the operation names one of them, else None. Raises ColumnNotFound when the
    table has none that can be read.
    """
    if not isinstance(operation, OfColumn) or not isinstance(row, ResolvedTable):
        return None
    excerpt = (await excerpts_of(connection, [row.id])).get(row.id)
    if excerpt is None:
        raise ColumnNotFound("The table has no columns to name: its schemas cannot be read.")
    return known_columns(excerpt)


def object_of(operation: Operation, row: Resolved, columns: Columns | None, *, dropped: bool) -> ObjectKey:
    """What the grants of an operation are on: what it was admitted on, or the column of it that it names. `columns`
    come from `columns_for`.

    With `dropped` a name that the current schema does not have may be that of a column that was dropped: its grants can
    be read and taken away, and new ones are not given. So it is with `field-id:<id>`, which names any column. Raises
    ColumnNotFound, and 400 for a field below the top and for giving by field id.
    """
    if columns is None or not isinstance(operation, OfColumn) or not isinstance(row, ResolvedTable):
        return row.key
    return column_key(row.id, field_named(columns, operation.column, dropped=dropped))


def known_columns(excerpt: Excerpt) -> Columns:
    """The columns of a table's document. Raises ColumnNotFound when it tells of none."""
    try:
        return columns_of(excerpt.text)
    except Inexpressible as unreadable:
        raise ColumnNotFound(f"The table has no columns to name: {unreadable}.") from None


def field_named(columns: Columns, name: str, *, dropped: bool) -> int:
    """The field id of the column with this name; raises as `object_of`."""
    if (by_id := _BY_ID.fullmatch(name)) is not None:
        # Policies are told what is given on by its name, so it is not given by anything else.
        if not dropped:
            raise BadRequestException(f"{name} is a field id: by it rights are read and taken away, by names given.")
        return int(by_id[1])
    found = columns.named(name)
    if found is None and columns.nested(name):
        raise BadRequestException(f"{name} lies within a column: rights are given on whole columns.")
    if found is None and dropped:
        found = columns.dropped(name)
    if found is None:
        raise ColumnNotFound(f"The table has no column {name}.")
    return found


async def refuse_another_column(
    connection: Connection,
    operation: Operation,
    row: Resolved,
    columns: Columns | None,
    key: ObjectKey,
    entry: Assignment,
) -> None:
    """Raise AmbiguousColumn where `entry` was to be taken from the column `key`, which does not have it, and another
    one has it that the name may have been meant for: it has the name in another letter case, or had it once.

    Who takes away again what is not yet in force means the column that is named.
    """
    holding = [
        on for on in _namesakes(operation, row, columns, key) if await grants.held_of(connection, on, [entry.key])
    ]
    sought = TupleKey(entry.principal, entry.privilege.value, key)
    if not holding or any(waiting.key == sought for waiting in await outbox.revocations_on(connection, key)):
        return
    raise AmbiguousColumn(
        f"Nothing was taken: {entry.principal.id} has no {entry.privilege} on the column that this names, "
        f"{_by_field_id(key)}, but on {', '.join(map(_by_field_id, holding))}, which had the name once or has it in "
        "another letter case. Name the column by its field id."
    )


def _namesakes(operation: Operation, row: Resolved, columns: Columns | None, key: ObjectKey) -> list[ObjectKey]:
    if columns is None or not isinstance(operation, OfColumn) or not isinstance(row, ResolvedTable):
        return []
    if _BY_ID.fullmatch(operation.column):
        return []
    alike = columns.alike(operation.column) - {field_of(key)}
    return [column_key(row.id, field_id) for field_id in sorted(alike)]


def _by_field_id(column: ObjectKey) -> str:
    return f"field-id:{field_of(column)}"
