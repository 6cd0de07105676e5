# SPDX-License-Identifier: Apache-2.0
"""Fill the excerpts of tables that an earlier version wrote (`gateway.db.tables.excerpts`).

It runs in every `lakegate migrate`, after the migrations. Each batch is limited in rows and bytes and commits by
itself. So gateways continue to serve, and the next run continues an interrupted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import AnyRow
from gateway.db.schema.tables import tables
from gateway.db.tables.excerpts import document_values

_ROWS: Final = 100
_BYTES: Final = 16 * 1024 * 1024


async def fill_excerpts(connection: AsyncConnection) -> None:
    """Write the excerpt of every document without one, or with the excerpt of an earlier document.

    A concurrent commit of a table keeps its own excerpt.
    """
    after = UUID(int=0)
    while rows := (await connection.execute(_NEXT, {"after": after})).all():
        for some in _portions(rows):
            await _fill(connection, some)
            await connection.commit()
        after = rows[-1].id


async def _fill(connection: AsyncConnection, ids: Sequence[UUID]) -> None:
    made = []
    for row in (await connection.execute(_DOCUMENTS, {"ids": list(ids)})).all():
        values = await document_values(row.kind, row.metadata_location, row.metadata)
        if (excerpt := values["metadata_excerpt"]) is not None:
            made.append({"of": row.id, "at": row.metadata_location, "excerpt": excerpt})
    if made:
        await connection.execute(_FILL, made)


def _portions(rows: Sequence[AnyRow]) -> list[list[UUID]]:
    """Return the ids in groups. One statement reads the documents of a group; a large document is a group of
    its own.
    """
    portions: list[list[UUID]] = []
    left = 0
    for row in rows:
        if not portions or row.size > left:
            portions.append([])
            left = _BYTES
        portions[-1].append(row.id)
        left -= row.size
    return portions


_NEXT = (
    select(tables.c.id, func.octet_length(tables.c.metadata).label("size"))
    .where(
        tables.c.id > bindparam("after"),
        tables.c.kind != "generic_table",
        tables.c.metadata_location.is_not(None),
        tables.c.metadata.is_not(None),
        tables.c.metadata_excerpt_of.is_distinct_from(tables.c.metadata_location),
    )
    .order_by(tables.c.id)
    .limit(_ROWS)
)
_DOCUMENTS = select(tables.c.id, tables.c.kind, tables.c.metadata_location, tables.c.metadata).where(
    tables.c.id.in_(bindparam("ids", expanding=True))
)
_FILL = (
    update(tables)
    .where(tables.c.id == bindparam("of"), tables.c.metadata_location == bindparam("at"))
    .values(metadata_excerpt=bindparam("excerpt"), metadata_excerpt_of=bindparam("at"))
)
