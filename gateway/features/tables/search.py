# SPDX-License-Identifier: Apache-2.0
"""Search tables and views by name. The result has the best matches among those that the caller can see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from gateway.access.door.list_visibility import holders_of, reach_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.search import FoundTabular, FoundTabulars, SearchTabular, TabularId
from gateway.db.tables import search, tag_search
from gateway.db.tables.search import FoundRow
from gateway.features.kit import UseCases
from gateway.features.principals.roles import MOST_FOUND

#: Searchable object types: those with a row in `tables`.
_KINDS: Final = tuple(type for type in ObjectType if type.value in ("table", "view", "generic_table"))

#: Maximum rows of one read. The first read has MOST_FOUND rows, or this many if OpenFGA must check every row.
_MOST_READ: Final = 1000


class Search(UseCases):
    """Use case of `POST …/search-tabular`."""

    async def tabulars(self, permit: Permit[SearchTabular]) -> FoundTabulars:
        """Return at most MOST_FOUND tables and views with names similar to the text, best match first.

        If the request has a tag, only objects with that tag whose names contain the text are returned, ordered by name.

        If the caller sees everything in the warehouse, one check suffices. Otherwise PostgreSQL ranks the objects that
        live grants can make visible, and OpenFGA checks each. Rows are read until enough are visible, so that better
        matches that the caller cannot see do not shorten the result. Raises DecisionUnavailable during an outage.
        """
        operation = permit.operation
        all_seen = permit.holds(operation.by_all, operation.warehouse)
        within = None if all_seen else await self._within(permit)
        found: list[FoundRow] = []
        offset, limit = 0, MOST_FOUND if all_seen or within is not None else _MOST_READ
        while len(found) < MOST_FOUND:
            find = partial(_statement_of(operation), within=within, limit=limit, offset=offset)
            rows = await self._reads.run(find, in_transaction=True)
            found += rows if all_seen else await self._visible(permit, rows)
            if len(rows) < limit:
                break
            offset, limit = offset + limit, min(4 * limit, _MOST_READ)
        return FoundTabulars(tabulars=[_wire(row) for row in found[:MOST_FOUND]])

    async def _within(self, permit: Permit[SearchTabular]) -> search.Within | None:
        """Return the objects that grants can make visible to the caller.

        Return None if the relationship model can make objects visible without a grant.
        """
        inside = await reach_of(self._reaches, ObjectType.NAMESPACE)
        if inside is None or inside.inside is None:
            return None
        leaves: set[str] = set()
        for type in _KINDS:
            reach = await reach_of(self._reaches, type)
            if reach is None:
                return None
            leaves |= {f"{type.value}:{privilege}" for privilege in reach.own}
        return search.Within(holders_of(permit.actor, permit.resolution), frozenset(leaves), inside.inside)

    async def _visible(self, permit: Permit[SearchTabular], rows: Sequence[FoundRow]) -> list[FoundRow]:
        keys = [ObjectKey(ObjectType(row.kind), str(row.id)) for row in rows]
        # A search by tag reveals tags. They belong to the metadata of the table, which column grantees do not see.
        needed = Can.INCLUDE_IN_LIST if permit.operation.tag is None else Can.GET_METADATA
        seen = await self._door.visible(permit, needed, keys, [row.by for row in rows])
        return [row for row, yes in zip(rows, seen, strict=True) if yes]


def _statement_of(operation: SearchTabular) -> Callable[..., Awaitable[Sequence[FoundRow]]]:
    """Return the function that reads the rows of a search: by the tag if the request has one, else by similar names."""
    warehouse_id, text = operation.warehouse.warehouse_id, operation.text
    if operation.tag is not None:
        return partial(tag_search.tagged, warehouse_id=warehouse_id, text=text, tag=operation.tag)
    return partial(search.tabulars, warehouse_id=warehouse_id, text=text)


def _wire(row: FoundRow) -> FoundTabular:
    return FoundTabular(
        namespace_name=list(row.levels),
        tabular_name=row.name,
        tabular_id=TabularId(type=row.kind.replace("_", "-"), id=row.id),
        distance=None if row.score is None else round(1 - row.score, 4),
    )
