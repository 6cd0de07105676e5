# SPDX-License-Identifier: Apache-2.0
"""Find the grants that are missing for a relation: candidates, minimal sets of them, and their order. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.access.nouns.cards import ACTIONS, GRANTABLE, LEVELS
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.features.answers.world import ASSIGNEE, World, held_tuple
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules
from gateway.fga.provenance import repairs_of

#: The most repairs that an answer has.
SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Repair:
    """A minimal set of grants that would give a relation."""

    grants: tuple[TupleKey, ...]


def candidates_for(principal: Principal, objects: Collection[ObjectKey], roles: Collection[str] = ()) -> list[TupleKey]:
    """Return every grant on one of the `objects`, and every membership in one of the `roles`, that can be given to the
    principal.
    """
    found = [
        TupleKey(principal, privilege.value, key)
        for key in sorted(objects, key=lambda key: (key.type.value, key.id))
        for privilege in GRANTABLE.get(key.type, ())
        if granting(privilege) in ACTIONS.get(key.type, ()) and privilege is not Privilege.ASSIGNEE
    ]
    if principal.type is PrincipalType.USER:
        found += [TupleKey(principal, ASSIGNEE, ObjectKey(ObjectType.ROLE, role)) for role in sorted(roles)]
    return found


def find_repairs(
    rules: ModelRules,
    world: World,
    candidates: Sequence[TupleKey],
    further: Sequence[HeldTuple],
    relation: str,
    object: str,
    now: datetime,
) -> tuple[list[Repair], bool]:
    """Return (the minimal repairs, those that open least first; True if there are more of them).

    `further` are tuples of roles that the principal is not a member of. Raises UnknownRule.
    """
    by_tuple = {held_tuple(key): key for key in candidates}
    absent = by_tuple.keys() - {held._replace(until=None) for held in world.tuples}
    sets, was_cut = repairs_of(rules, [*world.tuples, *further], absent, world.user, now, relation, object)
    width = {held: _width(rules, world, further, held, by_tuple[held], now) for each in sets for held in each}
    ordered = sorted(sets, key=lambda each: (len(each), sorted(width[held] for held in each)))
    repairs = [Repair(tuple(by_tuple[held] for held in sorted(each))) for each in ordered if each]
    return repairs[:SHOWN], was_cut or len(repairs) > SHOWN


def _width(
    rules: ModelRules, world: World, further: Sequence[HeldTuple], held: HeldTuple, key: TupleKey, now: datetime
) -> tuple[int, int, str, str]:
    """Return a key that is smaller for a grant that gives less: lower in the hierarchy, then with fewer actions.

    A membership gives what the role has on the path. It counts as wide as the highest of these objects.
    """
    edges = [each for each in world.tuples if each.user.partition("#")[0] in world.objects]
    objects = [key.object]
    if key.object.type is ObjectType.ROLE:
        objects = [world.objects[each.object] for each in further if each.object in world.objects]
    evaluation = Evaluation(rules, [*edges, *further, held], world.user, now)
    top = min(objects, key=lambda each: LEVELS[each.type], default=key.object)
    name = f"{top.type.value}:{top.id}"
    actions = sum(evaluation.holds(each.value, name) for each in ACTIONS.get(top.type, ()))
    return -LEVELS[top.type], actions, key.relation, key.object.id
