# SPDX-License-Identifier: Apache-2.0
"""Statements that find objects by similar names.

The similarity is that of `pg_trgm`: the fraction of the text's trigrams that a part of the name contains. It is
computed on the column `search_key`, which PostgreSQL derives from the folded name (`search.sql`), so that the locale of
the database does not matter.

A search for tables starts from the rows that the caller may see, not from similar names. So its cost is that of a list,
and neither its time nor its result depends on other rows.

For this reason no index over the trigrams of all warehouses is used, even for callers who see a whole warehouse: the
time would depend on names elsewhere. Instead, the index of the names in a namespace contains a signature of each name:
256 bits, each for one or more trigrams (`search.sql`). The bits that a signature has in common with the text give upper
bounds of both similarities. Computing a bound costs a twentieth of a similarity, which is computed only for names that
can be in the result. The result is the same as without signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import normalize
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import Holders
from gateway.db.engine.list_candidates import HELD
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.principals.roles import RoleRow
from gateway.db.principals.users import UserRow
from gateway.iceberg.identifiers import fold

#: Minimum similarity of a result. It is the default of `pg_trgm` for whole strings.
LEAST = 0.3

#: The `bar` is found from this number of names, plus _COMPARED names for each requested result.
_FEWEST_COMPARED = 100
_COMPARED = 4


@dataclass(frozen=True, slots=True)
class Within:
    """The part of a search that the caller may see.

    `leaves` are privileges on tables and views (`table:select`). `inside` are privileges on namespaces that may make
    their contents visible.
    """

    holders: Holders
    leaves: frozenset[str]
    inside: frozenset[str]


class FoundRow(NamedTuple):
    """A table or view, with a relation that a grant may give on it, and its score.

    The score is 1 for a name that contains the text, and None for a lookup by id or tag.
    """

    id: UUID
    kind: str
    name: str
    levels: Sequence[str]
    by: str | None
    score: float | None


_ALL_SPACES = "select n.id from namespaces n where n.warehouse_id = :warehouse_id"

_GRANTED = f"""
    held as materialized (
        {HELD} and ((g.object_type || ':' || g.privilege) = any(cast(:leaves as text[]))
            or g.object_type = 'namespace' and g.privilege = any(cast(:inside as text[])))),
    granted as materialized (
        select h.object_id::uuid as id, min(h.privilege) as by from held h
        where h.object_type <> 'namespace' group by 1),
"""  # noqa: S608 - composed of constants; every value is a bound parameter

# A granted namespace and all namespaces below it. `offset 0` makes each lookup use an index and read one row. Other
# joins, or a filter by similarity first, would read whole tables, and the time would depend on rows that the caller
# does not see.
_GRANTED_SPACES = """
    select n.id from (select distinct h.object_id::uuid as id from held h where h.object_type = 'namespace') g
    cross join lateral (
        select n.id from namespaces n where n.id = g.id and n.warehouse_id = :warehouse_id offset 0) n
    union
    select n.id from spaces s cross join lateral (select n.id from namespaces n where n.parent_id = s.id offset 0) n
"""

# The condition on the signature is always true. It makes the planner use the index that contains the signatures:
# computing a signature takes ten times as long as computing a similarity.
_CANDIDATES = """
    select t.id, t.search_key, t.signature, s.id as namespace_id, null::text as by
    from spaces s cross join lateral (
        select t.id, t.search_key, search_signature(t.search_key) as signature from tables t
        where t.namespace_id = s.id and search_signature(t.search_key) >= 0::bit(256)
            and t.staged_by is null and t.deleted_at is null offset 0) t
"""
# The rows of grants are not read from the index. Computing their signatures would cost more than the comparisons saved.
_GRANTED_CANDIDATES = """
    union all
    select t.id, t.search_key, null::bit(256), t.namespace_id, c.by
    from granted c cross join lateral (
        select t.id, t.search_key, t.namespace_id from tables t
        where t.id = c.id and t.warehouse_id = :warehouse_id and t.staged_by is null and t.deleted_at is null
        offset 0) t
    where t.namespace_id not in (select s.id from spaces s)
"""

_OUT = "t.id, t.kind, t.name, n.levels"

# With Q and K as the trigrams of the text and of a name, `score` is at most |Q and K| / |Q|, and `whole` is
# |Q and K| / |Q or K|. A bit can stand for several trigrams: `shared` is at least |Q and K|, and `size` is at most |K|
# or equals `shared`, which gives the highest bound.
#
# `first` has some names with the highest bounds. The similarities of the last of its results are the `bar`: a name with
# lower bounds is not in the result. All others are compared exactly. Bounds and similarities are quotients of integers
# of type `real`, in `pg_trgm` too, so rounding changes no order. Before that, integers rule out most of the names.
_LIKE = """
    , asked as materialized (
        select x.key, x.signature, x.trigrams, x.trigrams - bit_count(x.signature) as lost,
            ceil(cast(:least as float8) * x.trigrams - 0.001)::bigint as fewest
        from (select y.key, search_signature(y.key) as signature, cardinality(show_trgm(y.key))::bigint as trigrams
            from (select searchable(cast(:text as text)) as key offset 0) y offset 0) x
    ),
    possible as materialized (
        select c.id, c.by, c.key collate "C" as key, c.shared, greatest(c.size, c.shared) as size
        from asked x cross join lateral (
            select c.id, c.by, {key} as key,
                coalesce(bit_count({signature} & x.signature) + x.lost, x.trigrams) as shared,
                coalesce(bit_count({signature}), 0) as size
            from candidates c {path} offset 0) c
        where c.shared >= x.fewest and x.trigrams > 0
    ),
    first as materialized (
        select f.id, f.key, word_similarity(x.key, f.key) as score, similarity(x.key, f.key) as whole
        from (select p.id, p.key from possible p order by p.shared desc, p.size, p.key, p.id limit :few) f, asked x
    ),
    bar as materialized (
        select f.*, ceil(f.score * x.trigrams - 0.001)::bigint as fewest
        from (select * from first order by score desc, whole desc, key, id offset :last limit 1) f, asked x
    ),
    compared as (
        select p.id, p.by, p.key, word_similarity(x.key, p.key) as score
        from possible p cross join asked x
        where p.shared >= coalesce((select fewest from bar), 0) and (
            p.shared > coalesce((select fewest from bar), 0)
            or (p.shared::real / x.trigrams::real, p.shared::real / (x.trigrams + p.size - p.shared)::real,
                (select key from bar), (select id from bar))
                >= ((select score from bar), (select whole from bar), p.key, p.id))
        offset 0
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


def statement(find: str, *, granted: bool) -> TextClause:
    """Return a statement that begins with the common table expressions `spaces` and `candidates` and ends with `find`.

    With `granted`, they contain only rows that grants can make visible.
    """
    spaces = _GRANTED_SPACES if granted else _ALL_SPACES
    candidates = _CANDIDATES + (_GRANTED_CANDIDATES if granted else "")
    begin = _GRANTED if granted else ""
    return text(f"with recursive {begin} spaces as ({spaces}), candidates as ({candidates}) {find}")


_BY_NAME = _LIKE.format(out=_OUT, key="c.search_key", signature="c.signature", path="")
# The trigrams of a path are the trigrams of its parts. So the signature of each namespace is computed only once.
_PATHS = """
    join namespaces n on n.id = c.namespace_id
    left join (
        select s.id, search_signature(m.search_key) as signature from spaces s join namespaces m on m.id = s.id offset 0
    ) p on p.id = c.namespace_id
"""
_BY_PATH = _LIKE.format(
    out=_OUT, key="n.search_key || ' ' || c.search_key", signature="(p.signature | c.signature)", path=_PATHS
)
_STATEMENTS = {
    (find, granted): statement(of.format(out=_OUT) if find == "id" else of, granted=granted)
    for find, of in (("name", _BY_NAME), ("path", _BY_PATH), ("id", _WITH_ID))
    for granted in (False, True)
}


# Sequential scans are disabled, so that rows which the caller may not see are not read, whatever the planner estimates.
# Bitmap scans are disabled, because they would compute the signatures again. JIT is disabled, because compiling takes
# longer than the statement. The work memory holds the names of a large warehouse.
_BY_INDEX = text(
    "select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), "
    "set_config('jit', 'off', true), set_config('work_mem', '32MB', true)"
)


async def set_planner(connection: AsyncConnection) -> None:
    """Let the rest of the transaction use the indexes of this module."""
    await connection.execute(_BY_INDEX)


def values_of(within: Within | None) -> dict[str, Any]:
    """Return the parameters of the expressions that select what the caller may see."""
    if within is None:
        return {}
    of = {"user": within.holders.user, "roles": list(within.holders.roles)}
    return {**of, "leaves": list(within.leaves), "inside": list(within.inside)}


async def tabulars(
    connection: AsyncConnection, within: Within | None, *, warehouse_id: UUID, text: str, limit: int, offset: int
) -> Sequence[FoundRow]:
    """Return tables and views of a warehouse with similar names, best first.

    With `within` None, all are searched. A text with a dot is compared with the whole path, a text without a dot with
    the name. A UUID is looked up as an id. The connection must be in a transaction of its own.
    """
    await set_planner(connection)
    values: dict[str, Any] = {"warehouse_id": warehouse_id, "limit": limit, "offset": offset, **values_of(within)}
    id = _uuid(text)
    if id is not None:
        find = "id"
        values["id"] = id
    else:
        find = "path" if "." in text else "name"
        values |= {"text": fold(text), "least": LEAST, "last": offset + limit - 1}
        values["few"] = _FEWEST_COMPARED + _COMPARED * (offset + limit)
    return await fetch_all(connection, FoundRow, _STATEMENTS[find, within is not None], values)


_USERS = text(
    f"""
    select {columns_of(UserRow, "u")} from users u, (select searchable(lower(cast(:text as text))) as key) x
    where :text = '' or word_similarity(x.key, u.search_key) >= :least
    order by word_similarity(x.key, u.search_key) desc, similarity(x.key, searchable(lower(u.name))) desc, u.name, u.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)

# The names of users are used neither for the search nor for the order, because users set their names themselves.
_USERS_BY_ADDRESS = text(
    f"""
    select {columns_of(UserRow, "u")} from users u, (select searchable(lower(cast(:text as text))) as key) x
    where word_similarity(x.key, u.address_key) >= :least
    order by word_similarity(x.key, u.address_key) desc, similarity(x.key, u.address_key) desc, u.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)

_ROLES = text(
    f"""
    select {columns_of(RoleRow, "r")} from roles r, (select searchable(cast(:text as text)) as key) x
    where r.project_id = :project_id and (:text = '' or word_similarity(x.key, r.search_key) >= :least)
    order by word_similarity(x.key, r.search_key) desc, similarity(x.key, r.search_key) desc, r.name_key, r.id
    limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)


async def users(connection: AsyncConnection, text: str, *, limit: int) -> Sequence[UserRow]:
    """Return users with a similar name, verified address or id, best first. An empty text returns all, ordered by name.

    A text with an @ is an address. It is compared with verified addresses and ids only.
    """
    statement = _USERS_BY_ADDRESS if "@" in normalize("NFKD", text) else _USERS
    return await fetch_all(connection, UserRow, statement, {"text": text.strip(), "limit": limit, "least": LEAST})


async def roles(connection: AsyncConnection, project_id: str, text: str, *, limit: int) -> Sequence[RoleRow]:
    """Return a project's roles with similar names, best first. An empty text returns all, ordered by name."""
    values = {"project_id": project_id, "text": fold(text.strip()), "limit": limit, "least": LEAST}
    return await fetch_all(connection, RoleRow, _ROLES, values)


def _uuid(text: str) -> UUID | None:
    """Return the UUID in the text, None for other texts. Hyphens are required, because 32 digits may be a name."""
    try:
        id = UUID(text.strip())
    except ValueError:
        return None
    return id if str(id) == text.strip().lower() else None
