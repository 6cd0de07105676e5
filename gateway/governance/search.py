# SPDX-License-Identifier: Apache-2.0
"""Finding tables and views by name, as far as the caller sees them: the best of what is visible, and all of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.access.door import Door
from gateway.access.list_visibility import ReachesInUse, holders_of, reach_of
from gateway.access.operations.search import SearchTabular
from gateway.access.permit import Permit
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.db import search
from gateway.db.read_pool import ReadPool
from gateway.db.rows import AnyRow
from gateway.governance.roles import MOST_FOUND
from gateway.protocol.search import FoundTabular, FoundTabulars, TabularId

#: What can be found: whatever has a row in `tables`.
_KINDS: Final = tuple(type for type in ObjectType if type.value in ("table", "view", "generic_table"))

#: Rows of a later read; the first has as many as are answered with. Who is asked about row by row gets long ones.
_MOST_READ: Final = 1000


class Search:
    """`POST …/search-tabular`."""

    def __init__(self, *, reads: ReadPool, door: Door, reaches: ReachesInUse) -> None:
        self._reads = reads
        self._door = door
        self._reaches = reaches

    async def tabulars(self, permit: Permit[SearchTabular]) -> FoundTabulars:
        """At most MOST_FOUND tables and views of the warehouse whose names are like the text, the best first.

        Who sees everything in the warehouse is asked about once. Otherwise PostgreSQL ranks what a live grant to the
        caller speaks for, and OpenFGA confirms each hit; what it does not confirm makes room for the next one, so the
        answer is the best of what is visible however much else is more alike. Raises the refusal for an outage.
        """
        operation = permit.operation
        all_seen = permit.holds(Can.LIST_EVERYTHING, operation.warehouse)
        within = None if all_seen else await self._within(permit)
        found: list[AnyRow] = []
        offset, limit = 0, MOST_FOUND if all_seen or within is not None else _MOST_READ
        while len(found) < MOST_FOUND:
            ask = partial(
                search.tabulars,
                within=within,
                warehouse_id=operation.warehouse.warehouse_id,
                text=operation.text,
                limit=limit,
                offset=offset,
            )
            rows = await self._reads.run(ask, in_transaction=True)
            found += rows if all_seen else await self._visible(permit, rows)
            if len(rows) < limit:
                break
            offset, limit = offset + limit, min(4 * limit, _MOST_READ)
        return FoundTabulars(tabulars=[_wire(row) for row in found[:MOST_FOUND]])

    async def _within(self, permit: Permit[SearchTabular]) -> search.Within | None:
        """What can be visible to the caller by grants; None when a model shows rows in other ways too."""
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

    async def _visible(self, permit: Permit[SearchTabular], rows: Sequence[AnyRow]) -> list[AnyRow]:
        keys = [ObjectKey(ObjectType(row.kind), str(row.id)) for row in rows]
        seen = await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys, [row.by for row in rows])
        return [row for row, yes in zip(rows, seen, strict=True) if yes]


def _wire(row: AnyRow) -> FoundTabular:
    return FoundTabular(
        namespace_name=list(row.levels),
        tabular_name=row.name,
        tabular_id=TabularId(type=row.kind.replace("_", "-"), id=row.id),
        distance=None if row.score is None else round(1 - row.score, 4),
    )
