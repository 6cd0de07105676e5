# SPDX-License-Identifier: Apache-2.0
"""Select the reasons of a decision that the caller may read.

Worlds that differ only in facts that the caller may not read give equal reasons. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Final

from gateway.access.tuples import TupleKey
from gateway.features.answers.world import World, held_tuple
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.provenance import Witness, witnesses_of

#: The most witnesses of one answer.
SHOWN: Final = 10


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
