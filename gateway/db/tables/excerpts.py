# SPDX-License-Identifier: Apache-2.0
"""Store and read excerpts: the small part of metadata documents that decisions need (`gateway.iceberg.excerpts`).

The column `metadata_excerpt` holds the excerpt of the document at `metadata_excerpt_of`. A gateway of an earlier
version changes `metadata_location` without writing these two columns. `metadata_excerpt_of` then differs from the
location, and the excerpt is computed from the document, which is read for this one table after the decision about its
name.

`fill_excerpts` writes the excerpts of tables that an earlier version wrote. It runs in every `lakegate migrate`, after
the migrations. Each batch is limited in rows and bytes and commits by itself. So gateways continue to serve, and the
next run continues an interrupted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, any_, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.resolved import Excerpt
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.tables import tables
from gateway.iceberg.excerpts import excerpt_of

_LARGE: Final = 262_144
"""Documents larger than this (bytes) are parsed in a thread, so that they do not block other requests."""


async def document_values(kind: str, metadata_location: str | None, metadata: bytes | None) -> Mapping[str, Any]:
    """Return the columns of `tables` that a statement sets when it stores a document. It must set all of them.

    Every statement that writes `tables.metadata` takes its values from here, so that no statement omits the excerpt.
    """
    excerpt = None if metadata is None else await _excerpt(kind, metadata)
    return {
        "metadata_location": metadata_location,
        "metadata": metadata,
        "metadata_excerpt": excerpt,
        "metadata_excerpt_of": None if excerpt is None else metadata_location,
    }


class StoredExcerpt(NamedTuple):
    """The excerpt of the current document of a table or view.

    It is None if a gateway of an earlier version wrote the document.
    """

    id: UUID
    metadata_location: str
    excerpt: bytes | None


async def excerpts_of(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, Excerpt]:
    """Return the excerpts of these tables and views. Deleted rows and unreadable documents are left out."""
    if not ids:
        return {}
    rows = await fetch_all(connection, StoredExcerpt, EXCERPTS.statement, {"ids": list(dict.fromkeys(ids))})
    found = current_excerpts(rows)
    for row in rows:
        if row.id in found:
            continue
        at = (await connection.execute(_DOCUMENT, {"id": row.id})).one_or_none()
        made = None if at is None or at.metadata is None else await _excerpt(at.kind, at.metadata)
        if made is not None and at is not None:
            found[row.id] = Excerpt(at.metadata_location, made)
    return found


def current_excerpts(rows: Sequence[StoredExcerpt]) -> dict[UUID, Excerpt]:
    """Return the stored excerpts of rows of `EXCERPTS`."""
    return {row.id: Excerpt(row.metadata_location, row.excerpt) for row in rows if row.excerpt is not None}


async def _excerpt(kind: str, document: bytes) -> bytes | None:
    if len(document) <= _LARGE:
        return excerpt_of(kind, document)
    return await asyncio.to_thread(excerpt_of, kind, document)


_CURRENT = tables.c.metadata_excerpt_of == tables.c.metadata_location
EXCERPTS = DirectRead(
    select(tables.c.id, tables.c.metadata_location, case((_CURRENT, tables.c.metadata_excerpt)).label("excerpt")).where(
        tables.c.id == any_(bindparam("ids", type_=ARRAY(tables.c.id.type))), tables.c.metadata_location.is_not(None)
    ),
    StoredExcerpt,
)
_DOCUMENT = select(tables.c.kind, tables.c.metadata_location, tables.c.metadata).where(tables.c.id == bindparam("id"))


_ROWS: Final = 100
_BYTES: Final = 16 * 1024 * 1024


async def fill_excerpts(connection: AsyncConnection) -> None:
    """Write the excerpt of every document that has none, or has the excerpt of an earlier document.

    If a table is committed concurrently, the excerpt of that commit is kept.
    """
    after = UUID(int=0)
    while rows := await fetch_all(connection, _Sized, _NEXT, {"after": after}):
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


class _Sized(NamedTuple):
    id: UUID
    size: int


def _portions(rows: Sequence[_Sized]) -> list[list[UUID]]:
    """Return the ids in groups, such that one statement can read the documents of a group.

    A large document is a group of its own.
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
