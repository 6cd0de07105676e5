# SPDX-License-Identifier: Apache-2.0
"""Decide which objects are rows of an answer about one principal, and find the reasons of its actions there.

An object is a row if the actions on it, or on its contents, differ from those that its container gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.answers.held_objects import HeldObject, derived_tuples
from gateway.db.answers.path_grants import Sought, held_grants
from gateway.db.engine.database import Connection
from gateway.db.tuples.held_tuples import structure_above
from gateway.features.answers.holdings import Holding, Holdings, structural
from gateway.features.answers.listed_principals import distances
from gateway.features.answers.reasons import Reason, Reasons
from gateway.features.answers.seen_now import SeenNow
from gateway.fga.access_profiles import Profiles
from gateway.fga.answer_checks import ActiveModel, AnswerCheck
from gateway.fga.evaluation import HeldTuple
from gateway.fga.held_actions import HeldActions, HeldOn
from gateway.fga.relationships import object_name

Readable = Callable[[ObjectKey], bool]
"""Return whether the caller may read the assignments of an object or the members of a role."""


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """The actions of the principal on an object and on its contents, each with its reason."""

    held: HeldOn
    reasons: Mapping[Reason, tuple[Can, ...]]
    holdings: Holdings


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPrincipal:
    """The principal of a question. `groups` are the roles that it has by the groups in its token.

    `only` limits the answer to one action.
    """

    principal: Principal
    model: ActiveModel
    now: datetime
    groups: tuple[str, ...] = ()
    only: Can | None = None

    @property
    def holders(self) -> list[Principal]:
        """The principals whose grants count, before those of the roles that contain them."""
        return [self.principal, *(Principal(PrincipalType.ROLE, role) for role in self.groups)]


@dataclass(slots=True)
class ObjectListing:
    """Judges objects. `rows` collects the rows, `checks` the checks that confirm them.

    `worlds` has the tuples behind each check. `seen` limits an answer about the caller's own past.
    """

    asked: AskedPrincipal
    root: ObjectKey
    readable: Readable
    rows: dict[ObjectKey, ObjectRow] = field(default_factory=dict)
    checks: list[AnswerCheck] = field(default_factory=list)
    worlds: list[tuple[HeldTuple, ...]] = field(default_factory=list)
    seen: SeenNow | None = None

    async def judge(self, connection: Connection, objects: Sequence[HeldObject]) -> list[bool]:
        """Return for each object whether it is a row, in order. Raises UnknownRule."""
        keys = [each.key for each in objects]
        structure, _ = await structure_above(connection, keys)
        paths = {key: distances(key, structure) for key in keys}
        found = await self._holdings(connection, keys, paths)
        if self.seen is not None:
            await self.seen.look(chain(*paths.values(), found.roles()))
        parents = {
            key: min((each for each, far in paths[key].items() if far == 1), key=str, default=None) for key in keys
        }
        containers = dict.fromkeys([*keys, *(each for each in parents.values() if each is not None)])
        held_tuples = found.tuples_of(self.asked.principal)
        tuples = [*structural(structure), *held_tuples]
        actions = HeldActions(self.asked.model, tuples, containers, self.asked.now, self.asked.only)
        listed = []
        for key in keys:
            held, parent = actions.on(key), parents[key]
            if key == self.root or parent is None:
                is_row = bool(held.actions or held.contents)
            else:
                is_row = held != actions.inherited(key.type, parent)
            is_row = is_row and (self.seen is None or self.seen.shows(key))
            if is_row:
                self._add(key, held, actions, structure, paths[key], found)
            listed.append(is_row)
        return listed

    def _add(
        self,
        key: ObjectKey,
        held: HeldOn,
        actions: HeldActions,
        structure: Sequence[TupleKey],
        path: Mapping[ObjectKey, int],
        holdings: Holdings,
    ) -> None:
        own = structural(each for each in structure if each.object in path)
        near = holdings.within(path)
        of_others = set() if self.seen is None else near.held_by_others(self.seen.own)
        readable = frozenset(
            each
            for each in [*path, *near.roles()]
            if self.readable(each) and (self.seen is None or self.seen.reads(each, own=each not in of_others))
        )
        world = (*own, *near.tuples_of(self.asked.principal))
        reasons: dict[Reason, tuple[Can, ...]] = {}
        for group in actions.groups(key.type):
            if group[0] not in held.actions:
                continue
            self.checks.append(AnswerCheck(self.asked.principal, group[0].value, key, self.asked.groups))
            self.worlds.append(world)
            profiles = Profiles(self.asked.model.rules, own, group[0].value, object_name(key), self.asked.now)
            reason = Reasons(profiles, near, path, readable).of(self.asked.principal)
            reasons[reason] = (*reasons.get(reason, ()), *group)
        self.rows[key] = ObjectRow(held, reasons, near)

    async def _holdings(
        self, connection: Connection, keys: Sequence[ObjectKey], paths: Mapping[ObjectKey, Mapping[ObjectKey, int]]
    ) -> Holdings:
        asked = self.asked
        places = dict.fromkeys(each for path in paths.values() for each in path)
        sought = Sought(tuple((each, privilege) for each in places for privilege in GRANTABLE.get(each.type, ())))
        grants = await held_grants(connection, asked.holders, sought, now=asked.now)
        derived: dict[Holding, datetime | None] = {
            (asked.principal, "assignee", ObjectKey(ObjectType.ROLE, role)): None for role in asked.groups
        }
        containers = [each for each in places if each.type in DERIVING]
        for each in await derived_tuples(connection, asked.holders, containers, now=asked.now):
            derived[each.principal, each.relation, each.object] = each.until
        return Holdings(grants, derived, keys)


DERIVING = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE, ObjectType.TABLE})
"""Types of objects on which tuples follow from grants on their contents."""
