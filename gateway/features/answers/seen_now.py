# SPDX-License-Identifier: Apache-2.0
"""Limit an answer about the past to what the caller may see now.

The caller held rights by roles that it may have left, and on objects that it may not see any more. Such objects are
left out, and reasons with such facts are another grant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import compress

from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import ACTIONS, VISIBLE_BY
from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.nouns.relations import Can
from gateway.access.operations.answer_lists import WhatCan
from gateway.access.operations.answers import Explaining
from gateway.access.principals import own_principal
from gateway.access.tuples import Principal, PrincipalType


def own_holders(permit: Permit[Explaining] | Permit[WhatCan]) -> set[Principal]:
    """Return the caller and its current roles, or only the role that it assumed."""
    own = {own_principal(permit.actor)}
    if permit.actor.assumed_role is None:
        own |= {Principal(PrincipalType.ROLE, role) for role in permit.resolution.caller_roles}
    return own


@dataclass(slots=True)
class SeenNow:
    """The objects that the caller sees now, and those whose assignments it may read.

    `own` are the caller and its current roles, whose grants it may read on objects that it sees.
    """

    checks: HypotheticalChecks
    permit: Permit[Explaining] | Permit[WhatCan]
    own: Set[Principal]
    _visible: set[ObjectKey] = field(default_factory=set)
    _readable: set[ObjectKey] = field(default_factory=set)

    async def look(self, objects: Iterable[ObjectKey]) -> None:
        """Ask for the caller's rights on the objects."""
        found = dict.fromkeys(map(_row_of, objects))
        for relation in {VISIBLE_BY[key.type] for key in found if key.type in VISIBLE_BY}:
            self._visible |= await self._having(relation, [k for k in found if VISIBLE_BY.get(k.type) is relation])
        self._visible |= {key for key in found if key.type not in VISIBLE_BY}
        self._readable |= await self._having(Can.READ_ASSIGNMENTS, list(found))

    async def _having(self, relation: Can, objects: Sequence[ObjectKey]) -> set[ObjectKey]:
        keys = [key for key in objects if relation in ACTIONS.get(key.type, ())]
        return set(compress(keys, await self.checks.related(self.permit, self.permit.actor, relation, keys)))

    def shows(self, key: ObjectKey) -> bool:
        """Return True if the caller sees the object now, or the table of the column."""
        return _row_of(key) in self._visible

    def reads(self, key: ObjectKey, *, own: bool) -> bool:
        """Return True if the caller may know facts on the object: its own ones, or also those of others.

        Its own memberships are always known to it.
        """
        if _row_of(key) in self._readable:
            return True
        return own and (key.type is ObjectType.ROLE or self.shows(key))


def _row_of(key: ObjectKey) -> ObjectKey:
    return table_of(key) if key.type is ObjectType.COLUMN else key
