# SPDX-License-Identifier: Apache-2.0
"""The statement that finds tables and views by a tag.

Like the search by name, it starts from the rows that the caller may see, so neither its time nor its result depends on
other rows (`search.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_all
from gateway.db.tables.search import FoundRow, Within, set_planner, statement, values_of
from gateway.iceberg.identifiers import fold

_TAGGED: Final = """
    , tagged as materialized (
        select a.object_id from tags d
            join warehouses w on w.project_id = d.project_id
            join tag_attachments a on a.tag_id = d.id and a.warehouse_id = w.id
        where w.id = :warehouse_id and d.name_key = :tag),
    asked as materialized (select searchable(cast(:text as text)) as key)
    select t.id, t.kind, t.name, n.levels, c.by, null::real as score
    from candidates c
        cross join asked x
        join tables t on t.id = c.id
        join namespaces n on n.id = t.namespace_id
    where strpos(c.search_key, x.key) > 0 and exists (
        select 1 from tagged a
        where a.object_id in (t.id, n.id, t.warehouse_id) or a.object_id = any(n.ancestors))
    order by c.search_key collate "C", t.id limit :limit offset :offset
"""
_STATEMENTS: Final = {granted: statement(_TAGGED, granted=granted) for granted in (False, True)}


async def tagged(
    connection: AsyncConnection,
    within: Within | None,
    *,
    warehouse_id: UUID,
    tag: str,
    text: str,
    limit: int,
    offset: int,
) -> Sequence[FoundRow]:
    """Return the tables and views that have the tag and whose names contain the text, ordered by name.

    The tag is attached to the object, to one of its columns, to a namespace above it or to its warehouse. With `within`
    None, the whole warehouse is searched. The connection must be in a transaction of its own.
    """
    await set_planner(connection)
    values: dict[str, Any] = {"warehouse_id": warehouse_id, "limit": limit, "offset": offset, **values_of(within)}
    values |= {"tag": fold(tag), "text": fold(text)}
    return await fetch_all(connection, FoundRow, _STATEMENTS[within is not None], values)
