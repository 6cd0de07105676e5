# SPDX-License-Identifier: Apache-2.0
"""Limit an answer about the caller's own past to what the caller may see now.

The caller held rights by roles that it may have left, and on objects that it may not see any more. Such objects are
left out, and reasons with such facts are another grant.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from itertools import chain

from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.nouns.relations import Can
from gateway.access.operations.answer_lists import WhatCan
from gateway.access.tuples import Principal
from gateway.features.answers.holdings import Holdings


@dataclass(slots=True)
class SeenNow:
    """The objects that the caller sees now, and those whose assignments it may read.

    `own` are the caller and its current roles, whose grants it may read on objects that it sees.
    """

    checks: HypotheticalChecks
    permit: Permit[WhatCan]
    own: Set[Principal]
    _visible: set[ObjectKey] = field(default_factory=set)
    _readable: set[ObjectKey] = field(default_factory=set)
    _others: set[ObjectKey] = field(default_factory=set)

    async def look(self, paths: Mapping[ObjectKey, Mapping[ObjectKey, int]], holdings: Holdings) -> None:
        """Ask for the caller's rights on the objects of some paths, and on the roles of the holdings."""
        self._others |= holdings.held_by_others(self.own)
        found = dict.fromkeys(map(_row_of, chain(*paths.values(), holdings.roles())))
        for relation in {VISIBLE_BY[key.type] for key in found if key.type in VISIBLE_BY}:
            self._visible |= await self._having(relation, [k for k in found if VISIBLE_BY.get(k.type) is relation])
        self._visible |= {key for key in found if key.type not in VISIBLE_BY}
        self._readable |= await self._having(Can.READ_ASSIGNMENTS, list(found))

    async def _having(self, relation: Can, keys: list[ObjectKey]) -> set[ObjectKey]:
        held = await self.checks.related(self.permit, self.permit.actor, relation, keys)
        return {key for key, yes in zip(keys, held, strict=True) if yes}

    def shows(self, key: ObjectKey) -> bool:
        """Return True if the caller sees the object now, or the table of the column."""
        return _row_of(key) in self._visible

    def reads(self, key: ObjectKey) -> bool:
        """Return True if the caller may know the facts on the object. Its own memberships are always known to it."""
        if key not in self._others:
            return key.type is ObjectType.ROLE or self.shows(key)
        return self.shows(key) and _row_of(key) in self._readable


def _row_of(key: ObjectKey) -> ObjectKey:
    return table_of(key) if key.type is ObjectType.COLUMN else key
