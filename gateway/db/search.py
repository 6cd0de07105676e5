# SPDX-License-Identifier: Apache-2.0
"""Statements that find objects by similar names.

The similarity is the one of `pg_trgm`: the share of the text's trigrams that a part of the name has. It is computed on
the column `search_key`, which PostgreSQL derives from the folded name (`first_schema.sql`), so that the locale of the
database does not matter.

A search for tables starts from the rows that the caller may see, not from similar names. So its cost is that of a list,
and neither its time nor its result depends on other rows.

For this reason no trigram index is used, even for callers who see a whole warehouse. An index over all warehouses has
posting lists of all of them, so the time would depend on names elsewhere. Trigrams by warehouse would avoid this, but
cost about twenty rows for each creation and rename. A search takes a third of a second in 100,000 tables
(`docs/performance.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.list_visibility import Holders
from gateway.db.list_candidates import HELD
from gateway.db.rows import AnyRow, columns_of
from gateway.db.schema.roles import roles as roles_table
from gateway.db.schema.users import users as users_table
from gateway.iceberg.identifiers import fold

#: Minimum similarity of a result. It is the default of `pg_trgm` for whole strings.
LEAST = 0.3


@dataclass(frozen=True, slots=True)
class Within:
    """Restriction of a search to what the caller may see.

    `leaves` are privileges on tables and views (`table:select`). `inside` are privileges on namespaces that may make
    their contents visible.
    """

    holders: Holders
    leaves: frozenset[str]
    inside: frozenset[str]


_ALL_SPACES = "select n.id from namespaces n where n.warehouse_id = :warehouse_id"

_GRANTED = f"""
    held as materialized (
        {HELD} and ((g.object_type || ':' || g.privilege) = any(cast(:leaves as text[]))
            or g.object_type = 'namespace' and g.privilege = any(cast(:inside as text[])))),
    granted as materialized (
        select h.object_id::uuid as id, min(h.privilege) as by from held h
        where h.object_type <> 'namespace' group by 1),
"""  # noqa: S608 - composed of constants; every value is a bound parameter

# A granted namespace and all below it. `offset 0` makes each lookup use an index and read one row. Other joins, or a
# filter by similarity first, would read whole tables, and the time would depend on rows that the caller does not see.
_GRANTED_SPACES = """
    select n.id from (select distinct h.object_id::uuid as id from held h where h.object_type = 'namespace') g
    cross join lateral (
        select n.id from namespaces n where n.id = g.id and n.warehouse_id = :warehouse_id offset 0) n
    union
    select n.id from spaces s cross join lateral (select n.id from namespaces n where n.parent_id = s.id offset 0) n
"""

_CANDIDATES = """
    select t.id, t.search_key, s.id as namespace_id, null::text as by
    from spaces s cross join lateral (
        select t.id, t.search_key from tables t
        where t.namespace_id = s.id and t.staged_by is null and t.deleted_at is null offset 0) t
"""
_GRANTED_CANDIDATES = """
    union all
    select t.id, t.search_key, t.namespace_id, c.by
    from granted c cross join lateral (
        select t.id, t.search_key, t.namespace_id from tables t
        where t.id = c.id and t.warehouse_id = :warehouse_id and t.staged_by is null and t.deleted_at is null
        offset 0) t
    where t.namespace_id not in (select s.id from spaces s)
"""

_OUT = "t.id, t.kind, t.name, n.levels"

# The first similarity is computed once for each name; the second one, which only orders results, for results alone.
_LIKE = """
    , asked as materialized (select searchable(cast(:text as text)) as key),
    compared as (
        select c.id, c.by, c.key, word_similarity(x.key, c.key) as score
        from (select c.id, c.by, {key} as key from candidates c {path}) c, asked x offset 0
    ),
    near as (
        select c.*, similarity(x.key, c.key) as whole from compared c, asked x where c.score >= :least
    ),
    best as (select * from near order by score desc, whole desc, key, id limit :limit offset :offset)
    select {out}, b.by, b.score from best b join tables t on t.id = b.id join namespaces n on n.id = t.namespace_id
    order by b.score desc, b.whole desc, b.key, b.id
"""

_WITH_ID = """
    select {out}, c.by, null::real as score
    from candidates c join tables t on t.id = c.id join namespaces n on n.id = t.namespace_id
    where t.id = :id or t.table_uuid = :id order by t.id limit :limit offset :offset
"""


def _statement(find: str, *, granted: bool) -> TextClause:
    spaces = _GRANTED_SPACES if granted else _ALL_SPACES
    candidates = _CANDIDATES + (_GRANTED_CANDIDATES if granted else "")
    begin = _GRANTED if granted else ""
    return text(f"with recursive {begin} spaces as ({spaces}), candidates as ({candidates}) {find}")


_BY_NAME = _LIKE.format(out=_OUT, key="c.search_key", path="")
_BY_PATH = _LIKE.format(
    out=_OUT, key="n.search_key || ' ' || c.search_key", path="join namespaces n on n.id = c.namespace_id"
)
_STATEMENTS = {
    (find, granted): _statement(of.format(out=_OUT) if find == "id" else of, granted=granted)
    for find, of in (("name", _BY_NAME), ("path", _BY_PATH), ("id", _WITH_ID))
    for granted in (False, True)
}


# Without sequential scans, rows that the caller may not see are not read, whatever the planner estimates.
_BY_INDEX = text("set local enable_seqscan = off")


async def tabulars(
    connection: AsyncConnection, within: Within | None, *, warehouse_id: UUID, text: str, limit: int, offset: int
) -> Sequence[AnyRow]:
    """Return tables and views (id, kind, name, levels, by, score) of a warehouse with similar names, the best first.

    `within` None searches all of them. `score` is 1 for a name that contains the text, and None for a lookup by id. A
    text with a dot is compared with the whole path, another one with the name. A UUID is looked up as an id. The
    connection must be in a transaction of its own.
    """
    await connection.execute(_BY_INDEX)
    values: dict[str, Any] = {"warehouse_id": warehouse_id, "limit": limit, "offset": offset}
    if within is not None:
        values |= {"user": within.holders.user, "roles": list(within.holders.roles)}
        values |= {"leaves": list(within.leaves), "inside": list(within.inside)}
    id = _uuid(text)
    if id is not None:
        find = "id"
        values["id"] = id
    else:
        find = "path" if "." in text else "name"
        values |= {"text": fold(text), "least": LEAST}
    return (await connection.execute(_STATEMENTS[find, within is not None], values)).all()


_USERS = text(
    f"""
    select {columns_of(users_table, "u")} from users u, (select searchable(lower(cast(:text as text))) as key) x
    where :text = '' or word_similarity(x.key, u.search_key) >= :least
    order by word_similarity(x.key, u.search_key) desc, similarity(x.key, searchable(lower(u.name))) desc, u.name, u.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)

# Names are not used here, not even for the order: users set them.
_USERS_BY_ADDRESS = text(
    f"""
    select {columns_of(users_table, "u")} from users u, (select searchable(lower(cast(:text as text))) as key) x
    where word_similarity(x.key, u.address_key) >= :least
    order by word_similarity(x.key, u.address_key) desc, similarity(x.key, u.address_key) desc, u.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)

_ROLES = text(
    f"""
    select {columns_of(roles_table, "r")} from roles r, (select searchable(cast(:text as text)) as key) x
    where r.project_id = :project_id and (:text = '' or word_similarity(x.key, r.search_key) >= :least)
    order by word_similarity(x.key, r.search_key) desc, similarity(x.key, r.search_key) desc, r.name_key, r.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)


async def users(connection: AsyncConnection, text: str, *, limit: int) -> Sequence[AnyRow]:
    """Return users with a similar name, verified address or id, the best first; all by name for an empty text.

    A text with an @ is an address. It is only compared with verified addresses and ids.
    """
    statement = _USERS_BY_ADDRESS if "@" in normalize("NFKD", text) else _USERS
    return (await connection.execute(statement, {"text": text.strip(), "limit": limit, "least": LEAST})).all()


async def roles(connection: AsyncConnection, project_id: str, text: str, *, limit: int) -> Sequence[AnyRow]:
    """Return a project's roles with similar names, the best first; all by name for an empty text."""
    values = {"project_id": project_id, "text": fold(text.strip()), "limit": limit, "least": LEAST}
    return (await connection.execute(_ROLES, values)).all()


def _uuid(text: str) -> UUID | None:
    """Return the UUID that the text is, None for other texts. Hyphens are required: 32 digits may be a name."""
    try:
        id = UUID(text.strip())
    except ValueError:
        return None
    return id if str(id) == text.strip().lower() else None
