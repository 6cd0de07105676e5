# SPDX-License-Identifier: Apache-2.0
"""Determine what the caller of a question may read: objects, facts and policies. Answers leave out everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from itertools import compress
from typing import Final

from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import ACTIONS, VISIBLE_BY
from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.relations import Can
from gateway.access.operations.answers import ExplainAccess, Explaining
from gateway.access.tuples import MANAGED_ACCESS, Principal, TupleKey
from gateway.features.answers.seen_now import SeenNow, own_holders
from gateway.features.answers.world import World, held_tuple
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.provenance import Witness, witnesses_of

#: The most witnesses of one answer.
SHOWN: Final = 10

Sight = tuple[frozenset[ObjectKey], frozenset[HeldTuple]]
"""(objects of the path that the caller sees, facts that it may not read)."""


class Asker:
    """Ask for the rights of the callers of questions. `checks` are those of the door."""

    def __init__(self, checks: HypotheticalChecks) -> None:
        self._checks = checks

    async def having(
        self, permit: Permit[Explaining], relation: Can, objects: Iterable[ObjectKey]
    ) -> frozenset[ObjectKey]:
        """Return the objects on which the caller has the relation, and whose type has it."""
        keys = [key for key in objects if relation in ACTIONS.get(key.type, ())]
        return frozenset(compress(keys, await self._checks.related(permit, permit.actor, relation, keys)))

    async def sight(self, permit: Permit[Explaining], world: World) -> Sight:
        """Return what the caller may know of the facts of a decision."""
        visible = self.visible(permit, world.facts.path)
        return await asyncio.gather(visible, self.unreadable(permit, world, world.keys))

    async def visible(self, permit: Permit[Explaining], path: Collection[ObjectKey]) -> frozenset[ObjectKey]:
        """Return the objects of the path that the caller sees. Servers are no secret."""
        asked = [(VISIBLE_BY[key.type], key) for key in path if key.type in VISIBLE_BY]
        seen = compress(asked, await self._checks.related_each(permit, permit.actor, asked))
        return frozenset(key for key in path if key.type not in VISIBLE_BY) | {key for _, key in seen}

    async def unreadable(
        self, permit: Permit[Explaining], world: World, facts: Iterable[HeldTuple]
    ) -> frozenset[HeldTuple]:
        """Return those of the facts that the caller may not read.

        Readable are edges and flags, grants to the caller and to its roles, and grants on objects with
        `can_read_assignments`. In an answer about the past, `SeenNow` decides about the grants.
        """
        own = own_holders(permit)
        about = {
            fact: key
            for fact in facts
            if (key := world.keys.get(fact)) is not None
            and isinstance(key.subject, Principal)
            and key.relation != MANAGED_ACCESS
        }
        if isinstance(permit.operation, ExplainAccess) and permit.operation.at is not None:
            seen = SeenNow(self._checks, permit, own)
            await seen.look(key.object for key in about.values())
            return frozenset(fact for fact, key in about.items() if not seen.reads(key.object, own=key.subject in own))
        others = {fact: key.object for fact, key in about.items() if key.subject not in own}
        readable = await self.having(permit, Can.READ_ASSIGNMENTS, set(others.values()))
        return frozenset(fact for fact, on in others.items() if on not in readable)


def readable_witnesses(
    rules: ModelRules,
    world: World,
    unreadable: Set[HeldTuple],
    found: Sequence[Witness],
    more: bool,
    relation: str,
    object: str,
    now: datetime,
) -> tuple[list[Witness], bool]:
    """Return (the witnesses without unreadable facts; True if there may be more of them).

    `found` and `more` are the result of `witnesses_of` for the whole world. Raises UnknownRule.
    """
    if more and unreadable:
        # Smaller witnesses with unreadable facts may have displaced readable ones, and `more` may count them.
        found, more = witnesses_of(rules, world.without(unreadable).tuples, world.user, now, relation, object)
    readable = [each for each in found if unreadable.isdisjoint(each.facts)]
    return readable[:SHOWN], bool(readable) and (more or len(readable) > SHOWN)


def grants_of_roles(known: World, grants: Mapping[TupleKey, datetime | None]) -> list[HeldTuple]:
    """Return the tuples of the grants of roles that are not in the known world, each with its expiry."""
    held = [held_tuple(key, until) for key, until in grants.items()]
    return [each for each in held if each not in known.tuples]
