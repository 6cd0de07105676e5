# SPDX-License-Identifier: Apache-2.0
"""Find the columns that grant requests refer to, and the names of columns in grant responses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gateway.access.management_errors import AmbiguousColumn, ColumnNotFound
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.refs import ObjectKey, column_key, field_of
from gateway.access.nouns.resolved import Excerpt, ResolvedTable
from gateway.access.operation import Operation
from gateway.access.operations.grant_lists import OfColumn
from gateway.access.operations.grants import Assignment
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Connection
from gateway.db.grants import grants
from gateway.db.tables.excerpts import excerpts_of
from gateway.db.tuples import outbox
from gateway.iceberg.errors import BadRequestException
from gateway.obligations.projections import Columns, RestrictionNotExpressible, columns_of

#: A column by its field id instead of its name. Revocation needs this: a name may not fit in a path, the name of a
#: dropped column may belong to another column now, and the schema may be gone.
_BY_ID: Final = re.compile(r"field-id:(0|[1-9][0-9]{0,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class GrantObject:
    """The object of the grants of an operation. `column` is the current name of a column, or the last name of a dropped
    column.

    `namesakes` are other columns that also match the name in the request: in another letter case, or by an earlier
    name.
    """

    key: ObjectKey
    column: str | None = None
    namesakes: tuple[ObjectKey, ...] = ()


async def object_of(connection: Connection, operation: Operation, row: Resolved, *, dropped: bool) -> GrantObject:
    """Return the object whose grants the operation reads or changes: the admitted object, or the column in the
    operation.

    With `dropped`, the name may belong to a dropped column, and `field-id:<id>` identifies any column. `dropped` is for
    reading and revoking: new grants need a current name. Raises ColumnNotFound if there is no such column or the
    schemas of the table cannot be read. Raise 400 for a nested field, and for a field id without `dropped`.
    """
    if not isinstance(operation, OfColumn) or not isinstance(row, ResolvedTable):
        return GrantObject(row.key)
    excerpt = (await excerpts_of(connection, [row.id])).get(row.id)
    if excerpt is None:
        raise ColumnNotFound(
            "The columns of the table cannot be determined: its schemas cannot be read. Grant on the whole table "
            "instead."
        )
    columns, name = known_columns(excerpt), operation.column
    field_id = field_named(columns, name, dropped=dropped)
    alike = () if _BY_ID.fullmatch(name) else sorted(columns.ids_of_name(name) - {field_id})
    return GrantObject(
        column_key(row.id, field_id),
        columns.name_of(field_id)[0],
        tuple(column_key(row.id, each) for each in alike),
    )


def known_columns(excerpt: Excerpt) -> Columns:
    """Return the columns of a metadata excerpt. Raises ColumnNotFound if they cannot be determined."""
    try:
        return columns_of(excerpt.text)
    except RestrictionNotExpressible as unreadable:
        raise ColumnNotFound(
            f"The columns of the table cannot be determined: {unreadable}. Grant on the whole table instead."
        ) from None


def field_named(columns: Columns, name: str, *, dropped: bool) -> int:
    """Return the field id of the column with this name. Raises the errors of `object_of`."""
    if (by_id := _BY_ID.fullmatch(name)) is not None:
        # Policies receive the column's name with a new grant, so a new grant must contain the name and not the field
        # id.
        if not dropped:
            raise BadRequestException(
                f"{name} is a field id. Use the name of the column to grant; a field id is only valid to list and "
                "revoke grants."
            )
        return int(by_id[1])
    found = columns.named(name)
    if found is None and columns.nested(name):
        raise BadRequestException(
            f"{name} is a field inside a column. Grants are possible on top-level columns only; name the column."
        )
    if found is None and dropped:
        found = columns.dropped(name)
    if found is None:
        raise ColumnNotFound(f"The table has no column {name}.")
    return found


async def refuse_another_column(connection: Connection, on: GrantObject, entry: Assignment) -> None:
    """Raise AmbiguousColumn if the grant to revoke is not on the column `on`, but on another column with that name.

    The other column has the name in another letter case, or had it earlier. If a revocation on `on` is still pending,
    the request is taken as its retry, and no error is raised.
    """
    key = on.key
    holding = [other for other in on.namesakes if await grants.held_of(connection, other, [entry.key])]
    sought = TupleKey(entry.principal, entry.privilege.value, key)
    if not holding or any(waiting.key == sought for waiting in await outbox.revocations_on(connection, key)):
        return
    raise AmbiguousColumn(
        f"Nothing was revoked: {entry.principal.id} has no {entry.privilege} on the column with this name, "
        f"{_by_field_id(key)}. The grant is on {', '.join(map(_by_field_id, holding))}, which had this name earlier "
        "or has it in another letter case. Name the column by its field id."
    )


def _by_field_id(column: ObjectKey) -> str:
    return f"field-id:{field_of(column)}"
